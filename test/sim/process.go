package sim

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"holdfast/api/holdfast"
	"holdfast/internal/wire"
	"holdfast/manager/call"
	"holdfast/manager/proxy"
	"holdfast/manager/state"
	"holdfast/manager/state/raft"
	"holdfast/manager/state/raft/storage"
	"holdfast/manager/state/store"
)

const tickTime = 100 * time.Millisecond

// process is one run of a member: all that is in its memory.
type process struct {
	*machine
	number  uint64
	node    *raft.Node
	steps   *raft.Steps
	store   *store.MemoryStore
	watch   *observer
	gate    *call.Interceptor
	reads   call.Reader
	proxy   *proxy.Proxy
	calls   group
	waiting []*rpc // calls of others that it has not answered

	elected     uint64 // term of its leadership, until its log was looked at
	refuses     bool   // raft refuses the next proposal
	dead        bool
	pausedUntil time.Duration
	busy        [4]bool // turn, append, apply, save: one of each is under way
}

// The pieces of work of a process.
const (
	turning = iota
	appending
	applying
	saving
)

func newProcess(m *machine) *process {
	p := &process{machine: m, number: m.processes}
	p.calls = group{w: m.world, delay: m.profile.taskDelay, ran: p.poke}
	return p
}

func (p *process) open() error {
	var err error
	p.node, err = raft.Open(raft.Config{
		FS: p.disk, Dir: dir, Logger: slog.New(slog.DiscardHandler), Build: p.build, Wait: wait,
		Settings:    func() raft.Settings { return p.profile.raft },
		SegmentSize: p.profile.segment, Planted: p.planted,
	})
	if err != nil {
		return err
	}
	p.steps = p.node.Steps()
	p.reads = call.Reader{Node: p.node, Store: p.store, Planted: p.planted}
	p.proxy = proxy.New(proxy.Config{
		Leader: p.leaderAddr, Dial: p.dial, Self: fmt.Sprint(p.id), Planted: p.planted,
		NewRequestID: func() string { return wire.FormatRequestID(p.store.Root().Revision(), p.random(20)) },
	})
	p.gate = &call.Interceptor{
		Classes: classes(), Leads: p.node.Leading, Forward: p.proxy, Calls: &call.Drain{},
		Logger:   slog.New(slog.DiscardHandler),
		Revision: func() string { return wire.FormatRevision(p.store.Position()) },
	}
	return nil
}

// build makes the store and the transport of the member.
func (p *process) build(n *raft.Node, ident storage.Identity) (state.Machine, raft.Transport, error) {
	o := p.profile.store
	o.ClusterID, o.Proposer, o.Wait, o.Planted = ident.ClusterID, n, wait, p.planted
	o.Clock = func() time.Time { return time.Unix(1_800_000_000, 0).Add(p.now + p.skew) }
	o.NewID = func() string { return p.random(25) }
	o.NewTxnID = func() []byte { return []byte(p.random(16)) }
	s, err := store.New(o)
	if err != nil {
		return nil, nil, err
	}
	p.store = s
	p.watch = &observer{MemoryStore: s, p: p}
	return p.watch, p, nil
}

func (p *process) leaderAddr() string {
	at, ok := p.store.Applied().Peer(p.node.Leader())
	if !ok {
		return ""
	}
	return at.Addr
}

func (p *process) name() string { return fmt.Sprint("n", p.id) }

// do has something done by the process after a time, unless it is dead then; a process that
// is paused does it when it goes on.
func (p *process) do(d time.Duration, what func()) {
	p.after(d, func() {
		switch {
		case p.dead:
		case p.now < p.pausedUntil:
			p.do(p.pausedUntil-p.now, what)
		default:
			what()
		}
	})
}

// tick lets the process's clock go on, for ever.
func (p *process) tick() {
	p.do(tickTime-5*time.Millisecond+p.upTo(10*time.Millisecond), func() {
		p.steps.Tick()
		p.poke()
		p.tick()
	})
}

// work has one piece of work done, unless it is under way.
func (p *process) work(what int, d time.Duration, do func() error) {
	if p.busy[what] {
		return
	}
	p.busy[what] = true
	p.do(d, func() {
		p.busy[what] = false
		if err := do(); err != nil || p.disk.Crashed() {
			p.stopped(err)
			return
		}
		if what != turning {
			p.poke()
		}
		p.calls.poll()
	})
}

// poke has the loop look at what came.
func (p *process) poke() {
	if !p.dead {
		p.work(turning, p.upTo(p.profile.loop), p.turn)
	}
}

func (p *process) turn() error {
	if err := p.steps.Turn(); err != nil {
		return err
	}
	appends, applies, saves := p.steps.Waiting()
	if appends > 0 {
		p.work(appending, p.diskTime(), p.append)
	}
	if applies > 0 {
		p.work(applying, p.upTo(p.profile.apply), p.steps.Apply)
	}
	if saves > 0 {
		p.work(saving, p.upTo(p.profile.save), func() error {
			p.steps.Save()
			return nil
		})
	}
	return nil
}

func (p *process) append() error {
	most := p.between(1, 4)
	if err := p.steps.Append(most); err != nil {
		return err
	}
	p.checkLog(p.steps.Log())
	if p.elected != 0 {
		p.checkComplete()
	}
	return nil
}

// diskTime is how long a log write takes: now and then the disk hangs.
func (p *process) diskTime() time.Duration {
	if !p.calm && p.chance(p.profile.diskHangs) {
		p.tell("n%d: the disk hangs", p.id)
		return p.upTo(3 * time.Second)
	}
	return p.upTo(p.profile.disk)
}

// die ends the process at once.
func (p *process) die() {
	p.dead = true
	p.calls.kill()
	for _, r := range p.waiting {
		r.broken(p.upTo(50 * time.Millisecond))
	}
	p.waiting = nil
}

// Send implements raft.Transport.
func (p *process) Send(messages []*pb.Message) {
	for _, m := range messages {
		p.promises(p, m)
		p.send(p, m)
	}
}

// SetPeers implements raft.Transport: the network finds every machine by its raft ID.
func (p *process) SetPeers([]holdfast.Peer) {}

// Process implements raft.Transport.
func (p *process) Process(raftID uint64) uint64 {
	if m := p.machineOf(raftID); m != nil {
		return m.processes
	}
	return 0
}

// handle runs a call on this process.
func (p *process) handle(ctx context.Context, method string, r *request) (any, error) {
	return p.gate.Unary(ctx, r, unaryInfo(method), func(ctx context.Context, _ any) (any, error) {
		return p.answer(ctx, method, r)
	})
}
