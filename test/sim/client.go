package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/metadata"

	"holdfast/internal/errkind"
	"holdfast/internal/wire"
)

// client does one operation after another, at whatever member.
type client struct {
	*cluster
	number int
	made   int    // operations so far
	seen   uint64 // newest revision that it was told
	known  map[int]Seen
}

func (c *client) run(ctx context.Context) {
	for !c.ending {
		c.clients.sleep(ctx, c.upTo(2*c.profile.think))
		if !c.ending && c.now >= c.hush {
			c.one(ctx)
		}
	}
}

// one does an operation that chance picks.
func (c *client) one(ctx context.Context) {
	c.made++
	op := Op{ID: fmt.Sprintf("%d-%d", c.number, c.made), Key: c.rng.IntN(keys)}
	switch n := c.rng.IntN(100); {
	case c.chance(c.profile.reads):
		op.Verb = Get
	case n < 14:
		op.Verb = Create
	case n < 28:
		op.Verb = Set
	case n < 42:
		op.Verb, op.Version = Swap, c.known[op.Key].Version
		if op.Version == 0 || c.chance(10) {
			op.Version = c.seen + 1
		}
	case n < 48:
		op.Verb = Remove
	case n < 53:
		op.Verb = Same
	case n < 58:
		op.Verb = Refuse
	case n < 68:
		op.Verb, op.Key = Transfer, c.rng.IntN(accounts)
		op.Other, op.Amount = (op.Key+1+c.rng.IntN(accounts-1))%accounts, c.between(1, 2*money/accounts)
	case n < 70:
		c.count(ctx, op)
		return
	case n < 75:
		op.Verb, op.Key = Balances, 0
	case n < 95:
		op.Verb = Get
	default:
		c.old(ctx, op)
		return
	}
	if op.Verb == Get || op.Verb == Balances {
		c.read(ctx, op)
		return
	}
	c.write(ctx, op)
}

// about is what an operation's history is kept under.
func (o Op) about() string {
	switch o.Verb {
	case Open, Transfer, Balances:
		return bank
	default:
		return keyID(o.Key)
	}
}

// answered is the last answer to an operation.
type answered struct {
	reply Reply
	err   error
}

// ask asks a member once.
func (c *client) ask(ctx context.Context, method string, op Op, md metadata.MD) answered {
	return c.askAt(ctx, c.anyMember(), method, op, md)
}

func (c *client) askAt(ctx context.Context, to uint64, method string, op Op, md metadata.MD) answered {
	data, err := json.Marshal(op)
	if err != nil {
		c.fail("operations can be encoded", "%v", err)
	}
	ctx, sc := newScope(ctx)
	limit := c.upTo(c.profile.patience) + time.Millisecond
	if c.calm {
		limit = 10 * time.Second
	}
	c.after(limit, func() {
		sc.end()
		c.clients.poll()
	})
	data, trailer, err := c.call(ctx, &c.clients, 0, to, method, data, md)
	a := answered{err: errkind.FromStatus(err)}
	if len(data) > 0 {
		if err := json.Unmarshal(data, &a.reply); err != nil {
			c.fail("replies can be decoded", "%v", err)
		}
	}
	if at := trailer.Get(wire.Revision); len(at) > 0 {
		if _, revision, err := wire.ParseRevision(at[0]); err == nil {
			c.seen = max(c.seen, revision)
		}
	}
	c.tell("client %d %+v at n%d: %+v %v", c.number, op, to, a.reply, a.err)
	return a
}

// maybe tells whether after an error the operation may be done yet.
func maybe(err error) bool {
	return err != nil && slices.Contains([]errkind.Kind{
		errkind.UnknownOutcome, errkind.Canceled, errkind.DeadlineReached, errkind.Internal,
	}, errkind.Of(err))
}

// notDone tells whether an error says that nothing was done, and nothing of the state.
func notDone(err error) bool {
	return errkind.Is(err, errkind.NoLeader) || errkind.Is(err, errkind.Limit)
}

// details returns the error with its details.
func details(err error) *errkind.Error {
	e, ok := errors.AsType[*errkind.Error](err)
	if !ok {
		return &errkind.Error{}
	}
	return e
}

// attempt is a write under way.
type attempt struct {
	op      Op
	request string // ID; empty if it has none
	began   int64
	last    int64  // when it was tried last
	floor   uint64 // newest revision that was told when it began
	open    bool   // an earlier try may be done, now or later
}

// write writes, and tries again, with the same request ID if it has one.
func (c *client) write(ctx context.Context, op Op) bool {
	md := metadata.MD{}
	w := attempt{op: op, began: c.hist.tick(), floor: c.truth.told}
	if op.Verb == Remove || !c.chance(4) {
		w.request = wire.FormatRequestID(c.seen, fmt.Sprintf("%016s", op.ID))
		md.Set(wire.RequestID, w.request)
	}
	for range 1 + c.rng.IntN(8) {
		c.stats.Ops++
		w.last = c.hist.tick()
		a := c.ask(ctx, methodWrite, op, md)
		if a.err == nil || !maybe(a.err) && !notDone(a.err) {
			c.outcome(w, a)
			return true
		}
		w.open = w.open || maybe(a.err)
		if w.request == "" && maybe(a.err) {
			break
		}
		c.clients.sleep(ctx, c.upTo(c.profile.think))
	}
	c.failed(w, "nothing was done")
	return false
}

func (o Op) writes() bool { return o.Verb != Same && o.Verb != Refuse }

// failed notes a write that failed. If an earlier try may still be on its way, it stays open:
// what is not done is not remembered, so that one is not held up by the answer to a later one.
func (c *client) failed(w attempt, why string) {
	switch {
	case !w.op.writes():
	case w.open:
		c.stats.Unknown++
		c.hist.add(w.op.about(), c.number, w.began, callSeen{op: w.op, out: unknown, request: w.request})
	default:
		c.truth.forbid(w.op.ID, why)
	}
}

// outcome notes a write that was answered.
func (c *client) outcome(w attempt, a answered) {
	op := w.op
	seen := callSeen{op: op, version: a.reply.Revision, seen: a.reply.Seen}
	began := w.last
	switch {
	case a.err == nil && op.writes():
		began = w.began
		c.acknowledged(op, w.floor, a.reply)
		c.known[op.Key] = Seen{Version: a.reply.Revision}
	case a.err == nil:
		c.told(w.floor, a.reply.Revision)
	case errkind.Is(a.err, errkind.Exists):
		seen.out = exists
	case errkind.Is(a.err, errkind.NotFound):
		seen.out = missing
	case errkind.Is(a.err, errkind.OutOfSequence):
		now := Seen{Version: details(a.err).Now}
		seen.out, seen.seen = stale, []Seen{now}
		c.known[op.Key] = now
	case errkind.Is(a.err, errkind.Refused):
		version, value, _ := strings.Cut(details(a.err).Msg, "/")
		n, err := strconv.ParseUint(version, 10, 64)
		if err != nil {
			c.fail("errors can be read", "%v", a.err)
		}
		seen.out, seen.seen = refused, []Seen{{Version: n, Value: value}}
	default:
		c.fail("errors are of known kinds", "%+v: %v", op, a.err)
	}
	if a.err != nil {
		c.failed(w, a.err.Error())
	}
	c.hist.add(op.about(), c.number, began, seen)
}

// acknowledged holds a write that was acknowledged against the truth.
func (c *client) acknowledged(op Op, floor uint64, r Reply) {
	if r.Revision > c.truth.newestRevision() {
		c.fail("what is acknowledged is there", "%s is acknowledged at revision %d, and %d is the newest that was applied",
			op.ID, r.Revision, c.truth.newestRevision())
	}
	if made, ok := c.truth.byOp[op.ID]; op.Verb != Remove && (!ok || made != r.Revision) {
		c.fail("what is acknowledged is there", "%s is acknowledged at revision %d, and was done at %d", op.ID, r.Revision, made)
	}
	if r.Revision <= floor {
		c.fail("real time is kept", "%s began when revision %d was told, and made revision %d", op.ID, floor, r.Revision)
	}
	c.told(floor, r.Revision)
}

// told notes that a client was told of a revision, by an answer that must be as new as what was
// told before the call.
func (c *client) told(floor, revision uint64) {
	if revision < floor {
		c.fail("real time is kept", "an answer is of revision %d, and %d was told before it was asked for", revision, floor)
	}
	c.truth.told = max(c.truth.told, revision)
}

// read reads, as fresh as chance says.
func (c *client) read(ctx context.Context, op Op) {
	f := wire.Freshness{}
	switch c.rng.IntN(5) {
	case 0:
		f.Mode = wire.Local
	case 1:
		f.Mode, f.Revision = wire.Min, c.seen
	}
	c.readAt(ctx, c.anyMember(), op, f)
}

func (c *client) readAt(ctx context.Context, to uint64, op Op, f wire.Freshness) answered {
	md := metadata.Pairs(wire.Read, f.String())
	began, floor := c.hist.tick(), c.truth.told
	a := c.askAt(ctx, to, methodRead, op, md)
	c.stats.Ops++
	if a.err != nil {
		if !maybe(a.err) && !notDone(a.err) {
			c.fail("errors are of known kinds", "%+v: %v", op, a.err)
		}
		return a
	}
	for i, s := range a.reply.Seen {
		id := keyID(op.Key)
		if op.Verb == Balances {
			id = accountID(i)
		}
		c.truth.shows(fmt.Sprintf("a %s read", f), id, a.reply.Revision, s)
	}
	switch f.Mode {
	case wire.Linearizable:
		c.told(floor, a.reply.Revision)
		c.hist.add(op.about(), c.number, began, callSeen{op: op, seen: a.reply.Seen})
	case wire.Min:
		if a.reply.Revision < f.Revision {
			c.fail("reads are as fresh as asked for", "a read of at least %d shows %d", f.Revision, a.reply.Revision)
		}
	}
	c.truth.told = max(c.truth.told, a.reply.Revision) // whatever is shown is committed
	if op.Verb == Get {
		c.known[op.Key] = a.reply.Seen[0]
	}
	return a
}

// old reads a past revision.
func (c *client) old(ctx context.Context, op Op) {
	if c.seen == 0 {
		return
	}
	op.Verb = Get
	f := wire.Freshness{Mode: wire.At, Revision: c.seen - min(c.seen-1, uint64(c.rng.IntN(30)))}
	a := c.ask(ctx, methodRead, op, metadata.Pairs(wire.Read, f.String()))
	c.stats.Ops++
	switch {
	case a.err == nil && a.reply.Revision != f.Revision:
		c.fail("reads are as fresh as asked for", "a read at %d shows %d", f.Revision, a.reply.Revision)
	case a.err == nil:
		c.truth.shows("a read of the past", keyID(op.Key), f.Revision, a.reply.Seen[0])
	case !maybe(a.err) && !notDone(a.err) && !errkind.Is(a.err, errkind.OutOfRange):
		c.fail("errors are of known kinds", "%+v: %v", op, a.err)
	}
}

// count has a batch count up.
func (c *client) count(ctx context.Context, op Op) {
	op.Verb, op.Amount = Count, c.between(1, 6)
	if c.chance(8) {
		op.Amount = c.between(195, 410) // more than one transaction
	}
	md := metadata.Pairs(wire.RequestID, wire.FormatRequestID(c.seen, fmt.Sprintf("%016s", op.ID)))
	open := false
	for range 1 + c.rng.IntN(6) {
		c.stats.Ops++
		a := c.ask(ctx, methodWrite, op, md)
		switch {
		case a.err == nil:
			c.counted.least += op.Amount
			c.counted.most += op.Amount
			return
		case maybe(a.err), notDone(a.err): // parts of it may be done
			open = true
		case errkind.Is(a.err, errkind.NotFound): // no counter yet, so none of it, unless it was tried before
			if !open {
				return
			}
		default:
			c.fail("errors are of known kinds", "%+v: %v", op, a.err)
		}
		c.clients.sleep(ctx, c.upTo(c.profile.think))
	}
	c.counted.most += op.Amount
}

// openBank makes the accounts.
func (c *client) openBank(ctx context.Context) {
	for i := 0; !c.ending; i++ {
		if c.write(ctx, Op{ID: fmt.Sprintf("open-%d", i), Verb: Open}) {
			break
		}
	}
	c.run(ctx)
}

// watch follows the log from a cursor, at whatever member.
func (c *client) watch(ctx context.Context) {
	cursor := uint64(0)
	for !c.ending {
		c.clients.sleep(ctx, c.upTo(2*c.profile.think))
		a := c.ask(ctx, methodChanges, Op{Verb: Changes, After: cursor, Amount: c.between(1, 20)}, metadata.MD{})
		if errkind.Is(a.err, errkind.OutOfRange) {
			floor := details(a.err).Now
			if floor <= cursor {
				c.fail("watchers see the log", "revision %d is said to be below the floor %d", cursor, floor)
			}
			cursor = floor
			continue
		}
		for _, l := range a.reply.Log {
			cursor++
			if l.Revision != cursor || l.Revision > c.truth.newestRevision() {
				c.fail("watchers see the log", "revision %d comes after %d, and %d is the newest that was applied",
					l.Revision, cursor-1, c.truth.newestRevision())
			}
			if was := c.truth.revisions[l.Revision-1]; was.hash != string(l.Hash) || was.ids != l.IDs {
				c.fail("watchers see the log", "revision %d is shown with%s, and had%s", l.Revision, l.IDs, was.ids)
			}
		}
	}
}
