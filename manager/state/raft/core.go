package raft

import (
	"fmt"

	etcdraft "go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"holdfast/internal/errkind"
	"holdfast/internal/mutant"
	"holdfast/manager/state"
)

// Bounds of the core.
const (
	heartbeatTicks    = 1
	maxEntriesInRaft  = 4        // entries proposed and not committed
	maxReadsInRaft    = 4        // read indexes asked for and not answered
	maxMessageBytes   = 1 << 20  // of entries in one append message
	maxApplyingBytes  = 16 << 20 // of committed entries that are being applied
	maxUncommitted    = 64 << 20 // above what maxEntriesInRaft entries can hold, so it never refuses
	maxInflight       = 256      // append messages to one follower
	maxInflightBytes  = 64 << 20
	learnerCheckTicks = 5
)

// core is the deterministic part of a member: the raw node, and the state that only the loop
// sees. Feed it events with its methods, then call ready for the effects, until there are none.
//
// It asks the machine and peerProcess, and depends on nothing else that changes by itself.
type core struct {
	id            uint64
	electionTicks int
	raw           *etcdraft.RawNode
	log           *logView
	machine       state.Machine
	peerProcess   func(raftID uint64) uint64
	planted       mutant.Set

	clock int            // ticks so far
	heard map[uint64]int // the tick at which a peer was heard last; only looked up

	term       uint64 // present one
	lead       uint64 // raft ID of the leader, or 0
	leading    bool
	ledTerm    uint64 // term that this member leads in, if it does
	inRaft     int    // entries of this leader that are not committed
	applied    uint64 // index
	appliedTo  uint64 // term of the entry there
	leaderless int    // ticks without a leader
	handover   bool   // a leadership transfer is under way
	transfers  []*state.Outcome
	asked      int // how often, for them

	reads  reads
	change *changeCall // the change of membership under way
	rounds []round     // of learners

	snapshot *pb.Message // from the leader: waits until nothing is being applied
	applies  int         // apply messages that are not done
	appends  int         // log writes that are not done
	stalled  int         // ticks without one done
}

// coreConfig is what a core is made of.
type coreConfig struct {
	id            uint64
	electionTicks int
	storage       etcdraft.Storage
	applied       uint64 // index of the state that the machine has
	appliedTerm   uint64
	machine       state.Machine
	// process tells this process from those before it of the same member.
	process uint64
	// peerProcess tells a peer's process from those before it, as far as it is known.
	peerProcess func(raftID uint64) uint64
	logger      etcdraft.Logger
	planted     mutant.Set
}

// effects is what the loop has to do after an event, in this order; the appends and applies
// of successive effects are done in order, each kind for itself.
type effects struct {
	messages []*pb.Message // to peers
	append   *pb.Message   // write the log, then deliver its responses
	apply    *pb.Message   // apply entries, then deliver its responses
	snapshot bool          // take a snapshot: a member that is newer than the last one needs it
	reads    bool          // read indexes were answered
}

func (fx effects) empty() bool {
	return fx.append == nil && fx.apply == nil && len(fx.messages) == 0 && !fx.snapshot && !fx.reads
}

// logView is the log as raft sees it: at least what is on disk. It gives out no snapshot that is
// older than the newest member, which raft would refuse there, again and again.
type logView struct {
	etcdraft.Storage
	added  uint64 // index of the newest change that added a member
	wanted bool   // raft asked for a snapshot at which that one is a member
}

// Snapshot implements etcdraft.Storage.
func (v *logView) Snapshot() (*pb.Snapshot, error) {
	snap, err := v.Storage.Snapshot()
	if err == nil && snap.GetMetadata().GetIndex() < v.added {
		v.wanted = true
		return nil, etcdraft.ErrSnapshotTemporarilyUnavailable // raft asks again
	}
	return snap, err
}

func newCore(cfg coreConfig) (*core, error) {
	view := &logView{Storage: cfg.storage}
	raw, err := etcdraft.NewRawNode(&etcdraft.Config{
		ID: cfg.id, ElectionTick: cfg.electionTicks, HeartbeatTick: heartbeatTicks,
		Storage: view, Applied: cfg.applied, AsyncStorageWrites: true,
		MaxSizePerMsg: maxMessageBytes, MaxCommittedSizePerReady: maxApplyingBytes,
		MaxUncommittedEntriesSize: maxUncommitted,
		MaxInflightMsgs:           maxInflight, MaxInflightBytes: maxInflightBytes,
		CheckQuorum: true, PreVote: true, ReadOnlyOption: etcdraft.ReadOnlySafe,
		DisableProposalForwarding: true, StepDownOnRemoval: true, Logger: cfg.logger,
	})
	if err != nil {
		return nil, fmt.Errorf("start raft: %w", err)
	}
	c := &core{
		id: cfg.id, electionTicks: cfg.electionTicks, raw: raw, log: view, machine: cfg.machine,
		peerProcess: cfg.peerProcess, planted: cfg.planted, heard: map[uint64]int{},
		applied: cfg.applied, appliedTo: cfg.appliedTerm, reads: reads{process: cfg.process, planted: cfg.planted},
	}
	c.term = raw.BasicStatus().GetTerm()
	return c, nil
}

// appended takes the responses of a log write that is done.
func (c *core) appended(responses []*pb.Message) (toPeers []*pb.Message) {
	c.appends--
	c.stalled = 0
	return c.deliver(responses)
}

// deliver steps responses to this member and returns those to others.
func (c *core) deliver(responses []*pb.Message) (toPeers []*pb.Message) {
	for _, m := range responses {
		if m.GetTo() == c.id {
			c.step(m)
		} else {
			toPeers = append(toPeers, m)
		}
	}
	return toPeers
}

// appliedEntries takes entries that were applied. Changes of membership come into force
// before raft hears that their entry is applied.
func (c *core) appliedEntries(entries []*pb.Entry, responses []*pb.Message) error {
	c.applies--
	for _, e := range entries {
		c.applied, c.appliedTo = e.GetIndex(), e.GetTerm()
		cc, err := decodeChange(e)
		if err != nil {
			return err
		}
		if cc == nil {
			continue
		}
		c.raw.ApplyConfChange(cc)
		if t := cc.GetType(); t == pb.ConfChangeAddNode || t == pb.ConfChangeAddLearnerNode {
			c.log.added = e.GetIndex()
		}
		c.changed(cc)
	}
	c.deliver(responses)
	c.reads.reached(c.applied)
	return nil
}

// restored takes a snapshot that replaced the state. It comes before the responses of the log
// write that had the snapshot.
func (c *core) restored(index, term uint64) {
	c.applied, c.appliedTo = index, term
	c.reads.reached(c.applied)
}

// ready returns what there is to do.
func (c *core) ready() effects {
	c.stepSnapshot()
	c.follow()
	c.propose()
	if c.mayAsk() {
		c.reads.ask(c.raw)
	}
	fx := effects{snapshot: c.log.wanted}
	c.log.wanted = false
	if !c.raw.HasReady() {
		return fx
	}
	rd := c.raw.Ready()
	for _, rs := range rd.ReadStates {
		c.reads.confirmed(rs, c.applied)
		fx.reads = true
	}
	for _, m := range rd.Messages {
		switch m.GetTo() {
		case etcdraft.LocalAppendThread:
			c.appends++
			fx.append = m
		case etcdraft.LocalApplyThread:
			c.applies++
			c.countCommitted(m.GetEntries())
			fx.apply = m
		default:
			fx.messages = append(fx.messages, m)
		}
	}
	c.checkChange(rd.Entries)
	c.follow()
	return fx
}

// follow tells the store when this member begins and ends to lead. The term is compared too:
// leadership can be lost and won between two looks.
func (c *core) follow() {
	st := c.raw.BasicStatus()
	c.term, c.lead, c.handover = st.GetTerm(), st.Lead, st.LeadTransferee != 0
	leads := st.RaftState == etcdraft.StateLeader
	if c.leading && (!leads || c.ledTerm != c.term) {
		c.machine.Lost(c.ledTerm)
		c.leading, c.rounds, c.inRaft = false, nil, 0
		c.endChange(errChangeLost())
		c.endTransfers(nil)
	}
	if leads && !c.leading {
		c.leading, c.ledTerm = true, c.term
		c.machine.Elected(c.term)
	}
	if !c.handover && len(c.transfers) > 0 {
		c.notTakenOver()
	}
}

// noLeader is the error of a call that needs a leader.
func (c *core) noLeader() error {
	return &errkind.Error{
		Kind: errkind.NoLeader, Msg: "there is no leader: too few managers are online, or an election is under way",
		Hint: "see which managers cannot be reached with: ctl member ls",
	}
}

// ownTermApplied tells whether this member leads, and an entry of the present term is applied
// here: from then on it knows all that was committed before, the membership too.
func (c *core) ownTermApplied() bool { return c.leading && c.appliedTo == c.term }
