package manager

import (
	"strings"
	"testing"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/agreement"
	"holdfast/manager/state"
	"holdfast/manager/state/raft/transport"
)

// Members are compared at what they tell, wherever each of them is.
func TestHashesAreCompared(t *testing.T) {
	at := state.Applied{Peers: []holdfast.Peer{{RaftID: 1}, {RaftID: 2}, {RaftID: 3}, {RaftID: 4, Learner: true}}}
	position := func(revision uint64, hash, checkpoint string) transport.Position {
		return transport.Position{
			Revision: revision, Hash: []byte(hash), Checkpoint: revision / 64 * 64, CheckpointHash: []byte(checkpoint),
		}
	}
	for name, c := range map[string]struct {
		told     map[uint64]transport.Position
		want     map[uint64]string
		minority bool
	}{
		"equal": {
			map[uint64]transport.Position{2: position(130, "n", "c"), 3: position(140, "x", "c"), 4: position(128, "c", "c")},
			map[uint64]string{2: "equal", 3: "equal", 4: "equal", 5: ""},
			false,
		},
		"one differs": {
			map[uint64]transport.Position{2: position(150, "o", "other"), 3: position(130, "n", "c")},
			map[uint64]string{2: "differs", 3: "equal", 4: ""},
			false,
		},
		"this one differs": {
			map[uint64]transport.Position{2: position(150, "o", "other"), 3: position(140, "x", "other")},
			map[uint64]string{2: "differs", 3: "differs", 4: ""},
			true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			heard := func(id uint64) (transport.Heard, bool) {
				p, ok := c.told[id]
				return transport.Heard{Position: p}, ok
			}
			f := compare(agreement.NewRecord(), 1, position(130, "n", "c"), at, heard)
			var h hashes
			h.set(f)
			for id, want := range c.want {
				if got := h.of(id); got != want {
					t.Errorf("member %d: %q, want %q", id, got, want)
				}
			}
			if f.Minority != c.minority {
				t.Errorf("%+v", f)
			}
		})
	}
	err := errOtherState(7, agreement.Finding{Revision: 128})
	if !strings.Contains(err.Error(), "member 7") || !strings.Contains(err.Error(), "128") || !strings.Contains(errkind.Hint(err), "rm 7") {
		t.Error(err)
	}
}
