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
	tokenList = 1   // the form of a Token
	tokenSum  = 4   // bytes of the checksum at the end
	maxAfter  = 128 // bytes of an ID
)

// Encode gives the token's opaque form.
func (t Token) Encode() string {
	b := binary.AppendUvarint(nil, t.Revision)
	return SealToken(tokenList, append(b, t.After...))
}

// DecodeToken reads what Encode gave. It fails with errkind.Invalid on the field continue.
func DecodeToken(s string) (Token, error) {
	body, err := OpenToken(tokenList, s, binary.MaxVarintLen64+maxAfter)
	if err != nil {
		return Token{}, err
	}
	revision, n := binary.Uvarint(body)
	if n <= 0 {
		return Token{}, ErrToken()
	}
	t := Token{Revision: revision, After: string(body[n:])}
	if t.After == "" || t.Encode() != s { // another form of the same token
		return Token{}, ErrToken()
	}
	return t, nil
}

// SealToken gives the opaque form of a token: of what it is for, and what is in it. tokenList is
// for lists; other forms have other numbers.
func SealToken(form byte, body []byte) string {
	b := make([]byte, 0, 1+len(body)+tokenSum)
	b = append(append(b, form), body...)
	b = binary.BigEndian.AppendUint32(b, checksum(b))
	return base64.RawURLEncoding.EncodeToString(b)
}

// OpenToken returns what is in a token of one form, of which there are most bytes at most. It
// fails as ErrToken says.
func OpenToken(form byte, s string, most int) ([]byte, error) {
	if len(s) > base64.RawURLEncoding.EncodedLen(1+most+tokenSum) {
		return nil, ErrToken()
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) < 1+tokenSum || b[0] != form {
		return nil, ErrToken()
	}
	body, sum := b[:len(b)-tokenSum], b[len(b)-tokenSum:]
	if checksum(body) != binary.BigEndian.Uint32(sum) {
		return nil, ErrToken()
	}
	return body[1:], nil
}

// ErrToken is the errkind.Invalid error, on the field continue, of what is not a token of ours.
func ErrToken() error {
	return errkind.Field("continue", "is not a token of this cluster's lists").
		WithHint("start the list again without it")
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }
