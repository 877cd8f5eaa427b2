// Package token makes and checks join tokens: SWMTKN-1-DIGEST-SECRET, where DIGEST is the
// base-36 SHA-256 of the cluster's ID and SECRET is 25 base-36 characters.
package token

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"math/big"
	"strings"
)

const prefix = "SWMTKN-1-"

// digestLength is the length of a SHA-256 in base 36.
const digestLength = 50

// Digest gives the part of a token that names its cluster.
func Digest(clusterID string) string {
	sum := sha256.Sum256([]byte(clusterID))
	text := new(big.Int).SetBytes(sum[:]).Text(36)
	return strings.Repeat("0", digestLength-len(text)) + text
}

// Format makes a token.
func Format(clusterID, secret string) string { return prefix + Digest(clusterID) + "-" + secret }

// Of tells whether a token is one of the cluster, as far as its form and digest tell.
func Of(clusterID, token string) error {
	digest, _, ok := strings.Cut(strings.TrimPrefix(token, prefix), "-")
	switch {
	case !strings.HasPrefix(token, prefix) || !ok:
		return fmt.Errorf("the token is not of the form %sDIGEST-SECRET", prefix)
	case digest != Digest(clusterID):
		return fmt.Errorf("the token is of another cluster than %s", clusterID)
	}
	return nil
}

// Equal compares two tokens in a time that does not depend on where they differ.
func Equal(a, b string) bool {
	return a != "" && subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}
