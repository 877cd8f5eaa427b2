package sim

import (
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"holdfast/api/holdfast"
	"holdfast/manager/state/raft"
	"holdfast/manager/state/raft/storage"
	"holdfast/manager/state/raft/storage/memfs"
)

const dir = "/raft"

// machine is a computer: a disk, and a process that dies and is started again.
type machine struct {
	*cluster
	id        uint64 // raft ID
	disk      *memfs.FS
	proc      *process // nil while it is down
	processes uint64
	gone      bool          // the member was removed, and its machine is no more
	skew      time.Duration // of its clock

	// What it has told others, so what must be on its disk.
	votes map[uint64]uint64 // by term
	acked promise
}

// promise is a log up to an index, acknowledged to the leader of a term.
type promise struct{ leaderTerm, index, term uint64 }

func identity(id uint64) storage.Identity {
	return storage.Identity{ClusterID: "sim", NodeID: fmt.Sprint("n", id), RaftID: id}
}

func peer(id uint64) holdfast.Peer {
	return holdfast.Peer{RaftID: id, NodeID: fmt.Sprint("n", id), Addr: fmt.Sprint("a", id), Hostname: fmt.Sprint("h", id)}
}

// newMachine makes a machine whose disk is empty.
func (c *cluster) newMachine(id uint64) *machine {
	m := &machine{
		cluster: c, id: id, disk: memfs.New(c.rng.Uint64()), votes: map[uint64]uint64{},
		skew: c.upTo(c.profile.skew),
	}
	m.disk.SetFault(m.diskFault)
	c.machines = append(c.machines, m)
	return m
}

// errDisk is what a disk that fails says.
var errDisk = errors.New("sim: the disk failed")

func (m *machine) diskFault(op memfs.Op, _ string) error {
	if m.calm || op != memfs.OpSync && op != memfs.OpWrite && op != memfs.OpSyncDir || !m.chance(m.profile.diskFails) {
		return nil
	}
	m.stats.DiskFaults++
	return errDisk
}

// startLater starts the machine again after a while, if nobody does it by hand.
func (m *machine) startLater() {
	if m.profile.byHand {
		return
	}
	d := m.upTo(m.profile.down)
	if m.calm {
		d = time.Second
	}
	m.after(d, m.start)
}

// start begins a process.
func (m *machine) start() {
	if m.gone || m.proc != nil {
		return
	}
	if !m.calm && m.chance(m.profile.crashInStart) {
		m.disk.CrashAt(m.between(1, 12))
	}
	m.processes++
	p := newProcess(m)
	err := p.open()
	switch {
	case m.disk.Crashed():
		m.tell("n%d crashes while it starts", m.id)
		m.powerLoss()
	case errors.Is(err, errDisk):
		m.tell("n%d does not start: its disk fails", m.id)
		m.disk.Restart()
		m.startLater()
	case err != nil:
		m.fail("a member starts", "n%d: %v", m.id, err)
	default:
		m.proc = p
		m.began(p)
	}
}

// began looks at a process that has read its disk: what was told to others is there.
func (m *machine) began(p *process) {
	log := p.steps.Log()
	hard, _, err := log.InitialState()
	if err != nil {
		m.fail("a member starts", "n%d: %v", m.id, err)
	}
	if torn := p.node.Torn(); torn > 0 {
		m.stats.Torn++
		m.tell("n%d cuts off a torn write", m.id)
	}
	m.tell("n%d starts: term %d commit %d applied %d", m.id, hard.GetTerm(), hard.GetCommit(), p.store.Applied().Index)
	for _, term := range sortedKeys(m.votes) {
		if hard.GetTerm() < term || hard.GetTerm() == term && hard.GetVote() != m.votes[term] {
			m.fail("a vote is on disk", "n%d voted for n%d in term %d and has on disk term %d, vote %d",
				m.id, m.votes[term], term, hard.GetTerm(), hard.GetVote())
		}
	}
	if a := m.acked; a.index > 0 && hard.GetTerm() <= a.leaderTerm {
		first, err := log.FirstIndex()
		if err == nil && a.index >= first {
			var term uint64
			if term, err = log.Term(a.index); err != nil || term != a.term {
				m.fail("what was acknowledged is on disk", "n%d acknowledged entry %d of term %d, and has one of term %d there: %v",
					m.id, a.index, a.term, term, err)
			}
		}
		if hard.GetTerm() < a.leaderTerm {
			m.fail("what was acknowledged is on disk", "n%d spoke in term %d and has term %d on disk", m.id, a.leaderTerm, hard.GetTerm())
		}
	}
	m.checkLog(log)
	p.poke()
	p.tick()
}

// promises notes what a message to another member promises.
func (m *machine) promises(p *process, msg *pb.Message) {
	if msg.GetReject() {
		return
	}
	switch msg.GetType() {
	case pb.MsgVoteResp:
		if old, ok := m.votes[msg.GetTerm()]; ok && old != msg.GetTo() {
			m.fail("one vote a term", "n%d votes for n%d and n%d in term %d", m.id, old, msg.GetTo(), msg.GetTerm())
		}
		m.votes[msg.GetTerm()] = msg.GetTo()
	case pb.MsgAppResp:
		if msg.GetTerm() < m.acked.leaderTerm || msg.GetTerm() == m.acked.leaderTerm && msg.GetIndex() <= m.acked.index {
			return
		}
		if term, err := p.steps.Log().Term(msg.GetIndex()); err == nil {
			m.acked = promise{msg.GetTerm(), msg.GetIndex(), term}
		}
	default:
	}
}

// powerLoss ends the process, and the disk keeps what was synced and some of the rest.
func (m *machine) powerLoss() {
	m.end()
	m.disk.Crash()
	m.stats.Crashes++
	m.startLater()
}

// kill ends the process; the disk is as it was written.
func (m *machine) kill() {
	m.end()
	m.disk.Restart()
	m.stats.Crashes++
	m.startLater()
}

func (m *machine) end() {
	p := m.proc
	m.proc = nil
	if p != nil {
		p.die()
	}
}

// retire takes the machine of a removed member away.
func (m *machine) retire() {
	if m.gone {
		return
	}
	m.tell("n%d is taken away", m.id)
	m.gone = true
	m.end()
}

// stopped decides about an error of one of the node's steps.
func (m *machine) stopped(err error) {
	switch {
	case m.disk.Crashed():
		m.tell("n%d loses power: %d", m.id, m.disk.Effects())
		m.powerLoss()
	case errors.Is(err, raft.ErrRemoved):
		m.tell("n%d knows that it was removed", m.id)
		m.retire()
	case errors.Is(err, errDisk), errors.Is(err, errApply):
		m.tell("n%d ends: %v", m.id, err)
		if m.chance(2) {
			m.powerLoss()
			return
		}
		m.kill()
	default:
		m.fail("a member goes on", "n%d: %v", m.id, err)
	}
}
