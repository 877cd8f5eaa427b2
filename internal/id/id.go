// Package id makes the identifiers of objects: 25 characters of lower-case base 36, as
// SwarmKit has them. It keeps no state; New may be called from anywhere but from apply,
// which is deterministic.
package id

import (
	"crypto/rand"
	"math/big"
	"strings"
)

const (
	// Length is the number of characters of an ID.
	Length = 25

	// randomBytes is the width of the number behind an ID: 128 bits are at most 25 digits.
	randomBytes = 16
	base        = 36
)

// New returns a new random ID.
func New() string {
	var b [randomBytes]byte
	rand.Read(b[:]) // never returns an error: it ends the process if it cannot read
	s := new(big.Int).SetBytes(b[:]).Text(base)
	return strings.Repeat("0", Length-len(s)) + s
}

// Valid tells whether s has the form of an ID.
func Valid(s string) bool { return len(s) == Length && ValidPrefix(s) }

// ValidPrefix tells whether s can be the beginning of an ID.
func ValidPrefix(s string) bool {
	if s == "" || len(s) > Length {
		return false
	}
	for _, r := range s {
		if (r < '0' || r > '9') && (r < 'a' || r > 'z') {
			return false
		}
	}
	return true
}
