package object

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"

	"holdfast/internal/id"
	"holdfast/release/driver"
)

// part is what an object is to a record.
type part string

const (
	partHead  part = "head"
	partChunk part = "chunk"
	partStage part = "stage"
	partMark  part = "mark"
)

// names is what the names of these objects begin with.
func (p part) names() string { return Names + string(p[0]) + "-" }

// name makes the name of an object: at most 64 characters, whatever the words, and another one
// for other words. A word has no NUL.
func (p part) name(words ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{string(p)}, words...), "\x00")))
	hash := base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:])
	return p.names() + strings.ToLower(hash)
}

func headName(k driver.Key) string {
	return partHead.name(k.Namespace, k.Name, strconv.FormatInt(k.Revision, 10))
}

func markName(k driver.Key) string { return partMark.name(k.Namespace, k.Name) }

func chunkName(upload string, i int) string { return partChunk.name(upload, strconv.Itoa(i)) }

func stageName(upload string) string { return partStage.name(upload) }

// idOf makes the ID of a chunk or a stage of its name, so that it can be removed without being
// read. Their names never come again, as an upload's ID does not.
func idOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return formID(sum[:idBytes])
}

// idBytes is the width of the number behind an ID.
const idBytes = 16

// newID makes an ID of random bytes.
func newID(random io.Reader) (string, error) {
	var b [idBytes]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("make an ID: %w", err)
	}
	return formID(b[:]), nil
}

func formID(b []byte) string {
	s := new(big.Int).SetBytes(b).Text(36)
	return strings.Repeat("0", id.Length-len(s)) + s
}
