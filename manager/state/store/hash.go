package store

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"holdfast/api"
	"holdfast/manager/state"
)

// actionDigest is the length and SHA-256 of an encoded action, as it was proposed.
type actionDigest struct {
	size int
	sum  [sha256.Size]byte
}

func digestAction(data []byte) actionDigest {
	return actionDigest{size: len(data), sum: sha256.Sum256(data)}
}

// chain gives the state hash after a transaction: SHA-256 over the hash before it, the
// revision, and for each change the kind, the action, the ID, the Meta as it stands in the
// new state, and the length and digest of the action as it was proposed. It tells apart
// members that applied different changes, and members that stored one differently.
func chain(tx ReadTx, before []byte, revision uint64, changes []state.Change, digests []actionDigest) ([]byte, error) {
	const usual = 256 // bytes for one change
	b := make([]byte, 0, len(before)+8+usual*len(changes))
	b = append(b, before...)
	b = binary.BigEndian.AppendUint64(b, revision)
	for i, c := range changes {
		id := c.Object().GetID()
		b = binary.BigEndian.AppendUint32(b, uint32(c.Kind)) //nolint:gosec // kinds are small
		b = append(b, byte(c.Action()))
		b = binary.BigEndian.AppendUint32(b, uint32(len(id))) //nolint:gosec // at most an object's size
		b = append(b, id...)
		var meta api.Meta
		if stored := tableOf(c.Kind).Get(tx, id); stored != nil {
			meta = stored.GetMeta()
		}
		n := meta.Size()
		b = binary.BigEndian.AppendUint32(b, uint32(n)) //nolint:gosec // a Meta is small
		start := len(b)
		b = append(b, make([]byte, n)...)
		if _, err := meta.MarshalToSizedBuffer(b[start:]); err != nil {
			return nil, fmt.Errorf("encode meta of %s: %w", id, err)
		}
		b = binary.BigEndian.AppendUint64(b, uint64(digests[i].size)) //nolint:gosec // a length
		b = append(b, digests[i].sum[:]...)
	}
	sum := sha256.Sum256(b)
	return sum[:], nil
}
