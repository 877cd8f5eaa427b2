package manager

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"time"

	"holdfast/internal/errkind"
	"holdfast/manager/agreement"
	"holdfast/manager/state"
	"holdfast/manager/state/raft/transport"
)

// hashInterval is how often the members' state hashes are compared.
const hashInterval = time.Second

// hashes is what was found when they were compared last.
type hashes struct {
	mu      sync.Mutex
	finding agreement.Finding
}

func (h *hashes) set(f agreement.Finding) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.finding = f
}

// of tells how a peer's state hash compares with this manager's.
func (h *hashes) of(raftID uint64) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case slices.Contains(h.finding.Differ, raftID):
		return "differs"
	case slices.Contains(h.finding.Equal, raftID):
		return "equal"
	}
	return ""
}

// position is what this manager tells the others of its state.
func (m *Manager) position() transport.Position {
	at := m.store.Applied()
	p := transport.Position{Revision: at.Revision, Hash: at.Hash}
	p.Checkpoint, p.CheckpointHash = m.store.Checkpoint()
	return p
}

// compareHashes compares this manager's state hash with what the others tell, until ctx ends. It
// returns an error if most of them have another state.
func (m *Manager) compareHashes(ctx context.Context) error {
	record := agreement.NewRecord()
	ticker := time.NewTicker(hashInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
		self := m.node.Identity().RaftID
		f := compare(record, self, m.position(), m.store.Applied(), m.transport.Heard)
		m.hashes.set(f)
		switch {
		case f.Minority:
			return errOtherState(self, f)
		case f.Split:
			m.cfg.Logger.Error("the managers have different states, and no majority has the same: "+
				"stop all but one, and let the others join again with empty state folders",
				"revision", f.Revision, "differ", f.Differ)
		case len(f.Differ) > 0:
			m.cfg.Logger.Warn("a manager has another state than this one", "revision", f.Revision, "differ", f.Differ)
		}
	}
}

// compare takes what this manager and its peers tell now, and judges it.
func compare(record *agreement.Record, self uint64, own transport.Position, at state.Applied,
	heard func(raftID uint64) (transport.Heard, bool),
) agreement.Finding {
	var members, voters, others []uint64
	for _, p := range at.Peers {
		members = append(members, p.RaftID)
		if !p.Learner {
			voters = append(voters, p.RaftID)
		}
		if p.RaftID != self {
			others = append(others, p.RaftID)
		}
	}
	record.Keep(append(members, self))
	note := func(member uint64, p transport.Position) {
		record.Note(member, agreement.Point{Revision: p.Checkpoint, Hash: hex.EncodeToString(p.CheckpointHash)})
		record.Note(member, agreement.Point{Revision: p.Revision, Hash: hex.EncodeToString(p.Hash)})
	}
	note(self, own)
	for _, id := range others {
		if h, ok := heard(id); ok {
			note(id, h.Position)
		}
	}
	return record.Judge(self, voters, others)
}

func errOtherState(self uint64, f agreement.Finding) error {
	return errkind.New(errkind.Internal,
		"has another state than most managers at revision %d, by a fault of its memory, its disk or its program", f.Revision).
		On("member", fmt.Sprint(self)).
		WithHint("remove it with: ctl member rm %d, empty its state folder, and let it join again", self)
}
