package object

import "holdfast/release/driver"

// What tests of this package look into.

// HeadName is the name of a head's object.
func HeadName(k driver.Key) string { return headName(k) }

// MarkName is the name of a mark.
func MarkName(k driver.Key) string { return markName(k) }

// ChunkName is the name of a chunk.
func ChunkName(upload string, i int) string { return chunkName(upload, i) }

// Labels that tests read.
const (
	LabelForm   = labelForm
	LabelMark   = labelMark
	LabelUpload = labelUpload
)

// DecodeHead reads a head's object and tells the labels that it would be written with.
func DecodeHead(o Object) (driver.Head, map[string]string, error) {
	h, err := decodeHead(o)
	return h.Head, h.labels(), err
}
