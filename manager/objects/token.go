package objects

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"

	"holdfast/internal/errkind"
)

// Token says where a page of a list ended: what the field continue holds.
type Token struct {
	Revision uint64 // that all pages show
	After    string // the last ID of the page
}

const (
	tokenVersion = 1
	tokenSum     = 4   // bytes of the checksum at the end
	maxAfter     = 128 // bytes of an ID
)

// Encode gives the token's opaque form.
func (t Token) Encode() string {
	b := make([]byte, 0, 1+binary.MaxVarintLen64+len(t.After)+tokenSum)
	b = append(b, tokenVersion)
	b = binary.AppendUvarint(b, t.Revision)
	b = append(b, t.After...)
	b = binary.BigEndian.AppendUint32(b, checksum(b))
	return base64.RawURLEncoding.EncodeToString(b)
}

// DecodeToken reads what Encode gave. It fails with errkind.Invalid on the field continue.
func DecodeToken(s string) (Token, error) {
	wrong := errkind.Field("continue", "is not a token of this cluster's lists").
		WithHint("start the list again without it")
	if len(s) > base64.RawURLEncoding.EncodedLen(1+binary.MaxVarintLen64+maxAfter+tokenSum) {
		return Token{}, wrong
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) < 1+tokenSum || b[0] != tokenVersion {
		return Token{}, wrong
	}
	body, sum := b[:len(b)-tokenSum], b[len(b)-tokenSum:]
	if checksum(body) != binary.BigEndian.Uint32(sum) {
		return Token{}, wrong
	}
	revision, n := binary.Uvarint(body[1:])
	if n <= 0 {
		return Token{}, wrong
	}
	t := Token{Revision: revision, After: string(body[1+n:])}
	if t.After == "" || t.Encode() != s { // another form of the same token
		return Token{}, wrong
	}
	return t, nil
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }
