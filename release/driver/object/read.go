package object

import (
	"strconv"

	"holdfast/release/driver"
)

// What follows reads the objects of records where there is no Store to ask: within a transaction,
// or in a view of one revision.

const (
	// Names is what the names of all objects of records begin with.
	Names = "release-"
	// Heads is what the names of heads' objects begin with.
	Heads = Names + "h-"
)

// NamesOf returns what the names of all parts with these labels begin with, for a store that finds
// objects by their names.
func NamesOf(labels map[string]string) string {
	if is := part(labels[LabelPart]); is != "" {
		return is.names()
	}
	return Names
}

// Part is what an object is to a record, as far as its labels tell. What is damaged has it, too;
// what cannot be read is empty.
type Part struct {
	Head, Mark bool
	Key        driver.Key // of a head and, without the revision, of a mark
	Upload     string     // of a head and of a chunk
}

// PartOf tells what an object with these labels is to a record. ok is false if it is nothing.
func PartOf(labels map[string]string) (p Part, ok bool) {
	is := labels[LabelPart]
	if is == "" {
		return Part{}, false
	}
	p = Part{Head: is == string(partHead), Mark: is == string(partMark), Upload: labels[labelUpload]}
	p.Key.Namespace, p.Key.Name = labels[labelNamespace], labels[labelName]
	if n, err := strconv.ParseInt(labels[labelRevision], 10, 64); err == nil && n >= 0 {
		p.Key.Revision = n
	}
	return p, true
}

// ReadHead reads the head of a record from its object. One that was damaged is an error that is
// driver.ErrCorrupt; one of a later form is errkind.Invalid.
func ReadHead(o Object) (driver.Head, error) {
	h, err := decodeHead(o)
	return h.Head, err
}

// ReadBody reads the body of the record whose head is in an object. get gives the data of the
// object with a name. It fails as ReadHead does.
func ReadBody(o Object, get func(name string) (data []byte, ok bool)) ([]byte, error) {
	h, err := decodeHead(o)
	if err != nil {
		return nil, err
	}
	body := make([]byte, 0, h.Size)
	for i := range h.chunks {
		name := chunkName(h.upload, i)
		data, ok := get(name)
		if !ok {
			return nil, driver.Corrupt(h.Key, "body", "%s is missing, which is a chunk of it", name)
		}
		body = append(body, data...)
	}
	return body, h.CheckBody(body)
}
