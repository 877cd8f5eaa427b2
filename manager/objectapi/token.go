package objectapi

import (
	"encoding/binary"
	"hash/crc32"
	"strings"

	"holdfast/api/holdfast"
	"holdfast/manager/objects"
)

// Forms of tokens, beside that of lists.
const (
	tokenHistory = 2
	tokenDiff    = 3
)

// maxTokenBytes bounds what is in a token: some numbers, and an ID.
const maxTokenBytes = 5*binary.MaxVarintLen64 + 128

// historyToken says where a page of a history ended.
type historyToken struct {
	revision uint64 // that all pages show
	floor    uint64 // of the page
	objects  uint64 // checksum of the IDs whose history it is
	last     uint64 // revision of the last version
	id       string // its object's
}

// diffToken says where a page of a diff ended.
type diffToken struct {
	from, to uint64 // that all pages compare
	kind     holdfast.Kind
	id       string
}

func (t historyToken) encode() string {
	return encodeToken(tokenHistory, t.id, t.revision, t.floor, t.objects, t.last)
}

func (t diffToken) encode() string {
	return encodeToken(tokenDiff, t.id, t.from, t.to, uint64(t.kind)) //nolint:gosec // kinds are small
}

func decodeHistoryToken(s string) (t historyToken, err error) {
	t.id, err = decodeToken(tokenHistory, s, &t.revision, &t.floor, &t.objects, &t.last)
	return t, err
}

func decodeDiffToken(s string) (t diffToken, err error) {
	var kind uint64
	t.id, err = decodeToken(tokenDiff, s, &t.from, &t.to, &kind)
	if t.kind = holdfast.Kind(kind); err == nil && uint64(t.kind) != kind { //nolint:gosec // that is what is tested
		return diffToken{}, objects.ErrToken()
	}
	return t, err
}

func encodeToken(form byte, id string, numbers ...uint64) string {
	var b []byte
	for _, n := range numbers {
		b = binary.AppendUvarint(b, n)
	}
	return objects.SealToken(form, append(b, id...))
}

// decodeToken reads what encodeToken gave. It fails with errkind.Invalid on the field continue.
func decodeToken(form byte, s string, numbers ...*uint64) (id string, err error) {
	b, err := objects.OpenToken(form, s, maxTokenBytes)
	if err != nil {
		return "", err
	}
	values := make([]uint64, len(numbers))
	for i, n := range numbers {
		size := 0
		if *n, size = binary.Uvarint(b); size <= 0 {
			return "", objects.ErrToken()
		}
		values[i], b = *n, b[size:]
	}
	if id = string(b); id == "" || encodeToken(form, id, values...) != s { // another form of the same
		return "", objects.ErrToken()
	}
	return id, nil
}

// sumOf gives the checksum of IDs.
func sumOf(ids []string) uint64 {
	return uint64(crc32.Checksum([]byte(strings.Join(ids, "\x00")), crc32.MakeTable(crc32.Castagnoli)))
}
