package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/metadata"

	"holdfast/internal/wire"
)

// trouble begins what breaks machines and the network, until the run ends.
func (c *cluster) trouble() {
	c.every(c.profile.crashEvery, c.crashOne)
	c.every(c.profile.cutEvery, c.cutSome)
	c.every(c.profile.pauseEvery, c.pauseOne)
	c.every(c.profile.strandEvery, c.strand)
}

// every has something done again and again, about as often, while things may break.
func (c *cluster) every(d time.Duration, do func()) {
	if d == 0 {
		return
	}
	c.after(c.upTo(2*d), func() {
		if c.calm {
			return
		}
		do()
		c.every(d, do)
	})
}

// live returns the machines whose processes run.
func (c *cluster) live() []*machine {
	return slices.DeleteFunc(slices.Clone(c.machines), func(m *machine) bool { return m.proc == nil })
}

// one picks a machine that runs, the leader's more often than others, or nil.
func (c *cluster) one() *machine {
	live := c.live()
	if len(live) == 0 {
		return nil
	}
	if c.chance(3) {
		for _, m := range live {
			if m.proc.node.Leading() {
				return m
			}
		}
	}
	return live[c.rng.IntN(len(live))]
}

// anyMember picks a member to call: one that is there, most of the time.
func (c *cluster) anyMember() uint64 {
	there := slices.DeleteFunc(slices.Clone(c.machines), func(m *machine) bool { return m.gone })
	if len(there) == 0 {
		return 0
	}
	return there[c.rng.IntN(len(there))].id
}

// crashOne loses a machine's power, kills its process, or lets it lose power in the middle of
// one of the next things that it does to its disk. Now and then all are lost at once.
func (c *cluster) crashOne() {
	if c.chance(12) {
		c.tell("all lose power")
		for _, m := range c.live() {
			m.powerLoss()
		}
		return
	}
	m := c.one()
	if m == nil {
		return
	}
	switch c.rng.IntN(4) {
	case 0:
		c.tell("n%d is killed", m.id)
		m.kill()
	case 1:
		c.tell("n%d loses power", m.id)
		m.powerLoss()
	default:
		m.disk.CrashAt(c.between(1, 12))
	}
}

// cutSome cuts members off: one from some others, one way or both, or two halves; or heals all.
func (c *cluster) cutSome() {
	if len(c.cut) > 0 && c.chance(2) {
		c.tell("the network is whole")
		clear(c.cut)
		return
	}
	c.stats.Cuts++
	m := c.one()
	if m == nil {
		return
	}
	there, back := c.chance(4), c.chance(4)
	for _, o := range c.machines {
		if o == m || o.gone || c.chance(4) {
			continue
		}
		c.cut[link{m.id, o.id}] = !there || back
		c.cut[link{o.id, m.id}] = !back || there
	}
	c.cut[link{0, m.id}] = c.chance(2) // from clients
	c.tell("the network of n%d is cut: %v %v", m.id, !there || back, !back || there)
}

// pauseOne lets a process stand still for a while.
func (c *cluster) pauseOne() {
	m := c.one()
	if m == nil {
		return
	}
	c.stats.Pauses++
	d := c.upTo(4 * time.Second)
	c.tell("n%d pauses for %v", m.id, d)
	m.proc.pausedUntil = c.now + d
}

// strand cuts the leader off from the other members, not from the clients, and brings it back
// when the next leader must send it a snapshot: one that replaces entries after its index too,
// or, if the others still heard the leader at first, one that holds what it never heard of as
// committed.
func (c *cluster) strand() {
	for _, m := range c.live() {
		if !m.proc.node.Leading() {
			continue
		}
		c.tell("n%d is stranded", m.id)
		c.stats.Stranded++
		heard := c.chance(2)
		for _, o := range c.machines {
			c.cut[link{m.id, o.id}], c.cut[link{o.id, m.id}] = !heard, true
		}
		delete(c.cut, link{0, m.id})
		if heard {
			c.after(c.upTo(time.Second), func() {
				for _, o := range c.machines {
					c.cut[link{m.id, o.id}] = c.cut[link{o.id, m.id}]
				}
			})
		}
		c.stranded(m, c.now+6*time.Second)
		return
	}
}

func (c *cluster) stranded(m *machine, until time.Duration) {
	c.after(20*time.Millisecond, func() {
		if c.calm {
			return
		}
		if c.now < until && m.proc != nil && !c.passes(m.proc) {
			c.stranded(m, until)
			return
		}
		c.tell("n%d is back", m.id)
		c.hush = c.now + time.Second // or the snapshot would go beyond that log
		for _, o := range c.machines {
			delete(c.cut, link{m.id, o.id})
			delete(c.cut, link{o.id, m.id})
		}
	})
}

// passes tells whether another leader has cut its log, and a stranded one's ends before that,
// or goes beyond the snapshot there without holding it.
func (c *cluster) passes(p *process) bool {
	own := p.steps.Log()
	last, err := own.LastIndex()
	if err != nil {
		return false
	}
	for _, m := range c.live() {
		if m.proc == p || !m.proc.node.Leading() {
			continue
		}
		log := m.proc.steps.Log()
		if first, err := log.FirstIndex(); err == nil && first > last+1 {
			return true
		}
		snap, err := log.Snapshot()
		if err != nil {
			continue
		}
		meta := snap.GetMetadata()
		if term, err := own.Term(meta.GetIndex()); err == nil && term != meta.GetTerm() && meta.GetIndex() < last {
			return true
		}
	}
	return false
}

// operator changes the membership and hands leadership over.
type operator struct {
	client
	joins int
}

// found brings in the first members, one after another.
func (o *operator) found(ctx context.Context) {
	for id := uint64(2); id <= uint64(o.profile.members); id++ {
		for {
			a := o.ask(ctx, methodWrite, Op{Verb: Join, Member: id}, metadata.MD{})
			if a.err == nil {
				break
			}
			o.clients.sleep(ctx, 300*time.Millisecond)
		}
	}
	for !o.settled() || o.learners() > 0 {
		o.clients.sleep(ctx, 100*time.Millisecond)
	}
}

func (c *cluster) learners() int {
	n := 0
	for _, m := range c.live() {
		for _, p := range m.proc.store.Applied().Peers {
			if p.Learner {
				n++
			}
		}
	}
	return n
}

func (o *operator) run(ctx context.Context) {
	for o.profile.operateEvery > 0 && !o.ending {
		o.clients.sleep(ctx, o.upTo(2*o.profile.operateEvery))
		if !o.ending {
			o.operate(ctx)
		}
	}
}

func (o *operator) operate(ctx context.Context) {
	live := o.live()
	if len(live) == 0 {
		return
	}
	at := live[o.rng.IntN(len(live))].proc.store.Applied()
	o.made++
	op := Op{ID: fmt.Sprintf("op-%d", o.made), Verb: Hand}
	switch n := o.rng.IntN(10); {
	case n < 3 && o.joins < 8 && len(at.Peers) < o.profile.members+2:
		op.Verb = Join
		o.joins++
	case n < 4 && len(at.Removed) > 0: // must be refused
		op.Verb, op.Member = Join, at.Removed[o.rng.IntN(len(at.Removed))]
	case n < 7 && len(at.Peers) > 3:
		op.Verb, op.Member = Drop, at.Peers[o.rng.IntN(len(at.Peers))].RaftID
	case n == 8:
		op.Verb, op.After = Compact, o.seen-min(o.seen, uint64(o.rng.IntN(40)))
	case n < 8 && len(at.Peers) > 0:
		op.Verb, op.Member, op.Amount = Readdr, at.Peers[o.rng.IntN(len(at.Peers))].RaftID, o.rng.IntN(2)
	}
	for range 3 {
		a := o.ask(ctx, methodWrite, op, metadata.MD{})
		if op.Verb == Join && a.err == nil && op.Member == 0 {
			o.join(a.reply.Member)
		}
		if op.Verb == Compact && a.err == nil && a.reply.Revision < op.After {
			o.fail("history goes where it was asked to", "it is compacted to revision %d, and the floor is %d", op.After, a.reply.Revision)
		}
		if op.Verb == Compact && a.err == nil {
			o.stats.Compactions++
		}
		if a.err == nil || !notDone(a.err) {
			return
		}
		o.clients.sleep(ctx, o.upTo(time.Second))
	}
}

// last writes and reads once more, through every member.
func (c *client) last(ctx context.Context) {
	for i := 0; !c.write(ctx, Op{ID: fmt.Sprintf("last-%d", i), Verb: Set, Key: i % keys}); i++ {
		c.clients.sleep(ctx, time.Second)
	}
	for len(c.clients.tasks) > 1 || !c.settled() {
		c.clients.sleep(ctx, 100*time.Millisecond)
	}
	for _, m := range c.machines {
		if m.proc == nil || c.truth.removed[m.id] { // a learner that was away then is not told
			continue
		}
		floor := c.truth.told
		op := Op{ID: "last", Verb: Get, Key: 0}
		a := c.askAt(ctx, m.id, methodRead, op, metadata.Pairs(wire.Read, wire.Freshness{}.String()))
		if a.err != nil && !m.gone {
			c.fail("it goes on when nothing breaks", "the last read, at n%d: %v", m.id, a.err)
		}
		if a.err == nil {
			c.told(floor, a.reply.Revision)
			c.truth.shows("the last read", keyID(0), a.reply.Revision, a.reply.Seen[0])
		}
	}
}
