package raft

import (
	"fmt"

	etcdraft "go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"holdfast/internal/errkind"
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
// sees. Feed it events with its methods, then call ready for the effects.
type core struct {
	id            uint64
	electionTicks int
	raw           *etcdraft.RawNode
	machine       state.Machine

	term       uint64 // present one
	lead       uint64 // raft ID of the leader, or 0
	leading    bool
	ledTerm    uint64 // term that this member leads in, if it does
	inRaft     int    // entries of this leader that are not committed
	applied    uint64 // index
	appliedTo  uint64 // term of the entry there
	leaderless int    // ticks without a leader
	handover   bool   // a leadership transfer is under way

	reads  reads
	change *changeCall // the change of membership under way
	rounds []round     // of learners

	appends int // log writes that are not done
	stalled int // ticks without one done
}

// effects is what the loop has to do after an event, in this order; the appends and applies
// of successive effects are done in order, each kind for itself.
type effects struct {
	append   *pb.Message   // write the log, then deliver its responses
	apply    *pb.Message   // apply entries, then deliver its responses
	messages []*pb.Message // to peers
	reads    bool          // read indexes were answered
}

func newCore(id uint64, electionTicks int, storage etcdraft.Storage, applied uint64, m state.Machine,
	logger etcdraft.Logger,
) (*core, error) {
	raw, err := etcdraft.NewRawNode(&etcdraft.Config{
		ID: id, ElectionTick: electionTicks, HeartbeatTick: heartbeatTicks,
		Storage: storage, Applied: applied, AsyncStorageWrites: true,
		MaxSizePerMsg: maxMessageBytes, MaxCommittedSizePerReady: maxApplyingBytes,
		MaxUncommittedEntriesSize: maxUncommitted,
		MaxInflightMsgs:           maxInflight, MaxInflightBytes: maxInflightBytes,
		CheckQuorum: true, PreVote: true, ReadOnlyOption: etcdraft.ReadOnlySafe,
		DisableProposalForwarding: true, StepDownOnRemoval: true, Logger: logger,
	})
	if err != nil {
		return nil, fmt.Errorf("start raft: %w", err)
	}
	c := &core{id: id, electionTicks: electionTicks, raw: raw, machine: m, applied: applied}
	c.term = raw.BasicStatus().GetTerm()
	return c, nil
}

// tick is one unit of time.
func (c *core) tick() {
	if c.appends > 0 {
		c.stalled++
	} else {
		c.stalled = 0
	}
	if c.stalled > c.electionTicks {
		// The disk hangs. A leader hands over; whoever stays silent is voted out.
		if c.leading && !c.handover {
			c.transfer(0)
		}
		return
	}
	c.raw.Tick()
	if c.lead == 0 && c.alone() {
		c.campaign()
	}
	if c.lead == 0 {
		c.leaderless++
	} else {
		c.leaderless = 0
	}
	c.reads.tick(c.electionTicks)
	if c.leaderless > c.electionTicks {
		c.reads.fail(c.noLeader())
	}
	c.checkLearners()
}

// alone tells whether this member is the only one that votes: it has nobody to wait for.
func (c *core) alone() bool {
	voters := confState(c.machine.Applied().Peers).GetVoters()
	return len(voters) == 1 && voters[0] == c.id
}

// campaign begins an election. raft refuses while a change of membership is not applied, and
// is asked again with the next tick.
func (c *core) campaign() {
	err := c.raw.Campaign()
	_ = err
}

// receive takes a message from a peer. Messages that only a member sends to itself are
// dropped, and so are proposals: a follower never forwards one.
func (c *core) receive(m *pb.Message) {
	if m.GetTo() != c.id || m.GetType() == pb.MsgProp || etcdraft.IsLocalMsg(m.GetType()) {
		return
	}
	c.step(m)
}

// step ignores raft's errors: they say that a message does not fit the state, such as one
// from a peer that was removed.
func (c *core) step(m *pb.Message) {
	err := c.raw.Step(m)
	_ = err
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
		c.changed(cc)
	}
	c.deliver(responses)
	c.reads.reached(c.applied)
	return nil
}

// restored takes a snapshot that replaced the state.
func (c *core) restored(index, term uint64) {
	c.applied, c.appliedTo = index, term
	c.reads.reached(c.applied)
}

// ready returns what there is to do.
func (c *core) ready() effects {
	c.follow()
	c.propose()
	c.reads.ask(c.raw, c.lead)
	var fx effects
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
		c.leading, c.rounds = false, nil
		c.endChange(errChangeLost())
	}
	if leads && !c.leading {
		c.leading, c.ledTerm, c.inRaft = true, c.term, 0
		c.machine.Elected(c.term)
	}
}

// propose hands the store's transactions to raft, a few entries at a time, so that those that
// wait are packed together.
func (c *core) propose() {
	if c.handover { // raft would drop them
		return
	}
	for c.leading && c.inRaft < maxEntriesInRaft {
		data := c.machine.Next(c.term)
		if data == nil {
			return
		}
		if err := c.raw.Propose(data); err != nil {
			c.machine.Refused(c.term)
			return
		}
		c.inRaft++
	}
}

// countCommitted counts this leader's entries that are committed.
func (c *core) countCommitted(entries []*pb.Entry) {
	for _, e := range entries {
		if c.leading && e.GetTerm() == c.term && e.GetType() == pb.EntryNormal && len(e.GetData()) > 0 {
			c.inRaft = max(c.inRaft-1, 0)
		}
	}
}

// transfer begins to hand leadership to a voter: the one with ID to, or for 0 the one that is
// furthest. It returns false if there is none.
func (c *core) transfer(to uint64) bool {
	if !c.leading {
		return false
	}
	var best, match uint64
	c.raw.WithProgress(func(id uint64, typ etcdraft.ProgressType, pr tracker.Progress) {
		if id == c.id || typ != etcdraft.ProgressTypePeer || to != 0 && id != to {
			return
		}
		if pr.RecentActive && (best == 0 || pr.Match > match || pr.Match == match && id < best) {
			best, match = id, pr.Match
		}
	})
	if best == 0 {
		return false
	}
	c.raw.TransferLeader(best)
	c.follow()
	return true
}

// noLeader is the error of a call that needs a leader.
func (c *core) noLeader() error {
	return &errkind.Error{
		Kind: errkind.NoLeader, Msg: "there is no leader: too few managers are online, or an election is under way",
		Hint: "see which managers cannot be reached with: ctl member ls",
	}
}

// ownTermApplied tells whether an entry of the present term is applied here.
func (c *core) ownTermApplied() bool { return c.leading && c.appliedTo == c.term }
