package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"holdfast/internal/errkind"
	"holdfast/manager/state"
	"holdfast/manager/state/raft/membership"
	"holdfast/manager/state/store"
)

// Verb is what an operation does.
type Verb string

// The verbs. Those from Get on do not write.
const (
	Create   Verb = "create"
	Set      Verb = "set"     // whatever is there
	Swap     Verb = "swap"    // if the version is the one that was seen
	Remove   Verb = "remove"  //
	Same     Verb = "same"    // an Update that changes nothing
	Refuse   Verb = "refuse"  // an Update that reads, and fails
	Open     Verb = "open"    // makes the accounts and the counter
	Transfer Verb = "move"    // between two accounts
	Count    Verb = "count"   // a batch that counts up
	Join     Verb = "join"    // a learner
	Drop     Verb = "drop"    // a member
	Readdr   Verb = "address" // a member at another address
	Hand     Verb = "hand"    // leadership over
	Compact  Verb = "compact" // history, to a revision
	Get      Verb = "get"     // one key
	Balances Verb = "bank"    // all accounts
	Changes  Verb = "changes" // of the log, after a revision
)

// Op is an operation, as a client asks for it.
type Op struct {
	ID      string // unique
	Verb    Verb
	Key     int    `json:",omitempty"`
	Other   int    `json:",omitempty"`
	Version uint64 `json:",omitempty"`
	Amount  int    `json:",omitempty"` // also the number of steps of a batch
	After   uint64 `json:",omitempty"`
	Member  uint64 `json:",omitempty"`
}

// Reply is what an operation is answered.
type Reply struct {
	Revision uint64 `json:",omitempty"`
	Replayed bool   `json:",omitempty"`
	Member   uint64 `json:",omitempty"`
	Seen     []Seen `json:",omitempty"`
	Log      []Line `json:",omitempty"`
}

// Line is a revision as a watcher sees it.
type Line struct {
	Revision uint64
	Hash     []byte
	IDs      string
}

// answer does an operation on a member, as one of its services.
func (p *process) answer(ctx context.Context, method string, r *request) (any, error) {
	var op Op
	if err := json.Unmarshal(r.data, &op); err != nil {
		return nil, err
	}
	switch method {
	case methodRead:
		tx, err := p.reads.Read(ctx)
		if err != nil {
			return nil, err
		}
		return p.read(op, tx), nil
	case methodChanges:
		return p.changes(op)
	}
	switch op.Verb {
	case Count:
		return p.count(ctx, op)
	case Join:
		return p.join(ctx, op)
	case Drop:
		return &Reply{}, p.node.Remove(ctx, op.Member)
	case Readdr:
		moved := peer(op.Member)
		moved.Addr = fmt.Sprint([]string{"a", "b"}[op.Amount%2], op.Member)
		return &Reply{}, p.node.Change(ctx, state.UpdatePeer, moved)
	case Hand:
		return &Reply{}, p.node.Transfer(ctx)
	case Compact:
		floor, err := p.store.Compact(ctx, op.After)
		return &Reply{Revision: floor}, err
	default:
	}
	reply := &Reply{}
	res, err := p.store.Update(ctx, func(tx *store.Tx) error {
		reply.Seen = nil
		return p.write(tx, op, reply)
	})
	reply.Revision, reply.Replayed = res.Revision, res.Replayed
	return reply, err
}

// write is the function of an Update.
func (p *process) write(tx *store.Tx, op Op, reply *Reply) error {
	k, id := p.truth.kinds[op.Key%len(p.truth.kinds)], keyID(op.Key)
	mine := Seen{Value: op.ID, Op: op.ID}
	switch op.Verb {
	case Create:
		return k.create(tx, id, mine)
	case Set:
		return k.put(tx, id, 0, mine)
	case Swap:
		return k.put(tx, id, op.Version, mine)
	case Remove:
		return k.remove(tx, id)
	case Same:
		reply.Seen = []Seen{k.get(tx, id)}
		return nil
	case Refuse:
		s := k.get(tx, id)
		return errkind.New(errkind.Refused, "%d/%s", s.Version, s.Value)
	case Open:
		return p.openBank(tx, op)
	case Transfer:
		return p.transfer(tx, op)
	default:
		return fmt.Errorf("verb %s does not write", op.Verb)
	}
}

func (p *process) openBank(tx *store.Tx, op Op) error {
	for i := range accounts {
		err := p.truth.kinds[i].create(tx, accountID(i), Seen{Value: fmt.Sprint(money), Op: op.ID})
		if err != nil {
			return err
		}
	}
	return p.truth.kinds[0].create(tx, counterID, Seen{Value: "0", Op: op.ID})
}

func (p *process) transfer(tx *store.Tx, op Op) error {
	from, to := p.truth.kinds[op.Key], p.truth.kinds[op.Other]
	a, b := from.get(tx, accountID(op.Key)), to.get(tx, accountID(op.Other))
	if a.Version == 0 || b.Version == 0 {
		return errkind.New(errkind.NotFound, "no accounts")
	}
	if a.number() < op.Amount {
		return errkind.New(errkind.Refused, "%d/%s", a.Version, a.Value)
	}
	if err := from.put(tx, accountID(op.Key), 0, Seen{Value: fmt.Sprint(a.number() - op.Amount), Op: op.ID}); err != nil {
		return err
	}
	return to.put(tx, accountID(op.Other), 0, Seen{Value: fmt.Sprint(b.number() + op.Amount), Op: op.ID})
}

// count counts up, one step after another, in as many transactions as it takes.
func (p *process) count(ctx context.Context, op Op) (any, error) {
	counter := p.truth.kinds[0]
	step := 0
	err := p.store.Batch(ctx, func(b *store.Batch) error {
		for i := range op.Amount {
			if err := b.Update(func(tx *store.Tx) error {
				n := counter.get(tx, counterID)
				step++
				return counter.put(tx, counterID, 0, Seen{Value: fmt.Sprint(n.number() + 1), Op: fmt.Sprint(op.ID, "/", i)})
			}); err != nil {
				return err
			}
		}
		return nil
	})
	return &Reply{}, err
}

// join makes a new member, or with a given ID tries to.
func (p *process) join(ctx context.Context, op Op) (any, error) {
	at := p.store.Applied()
	id := op.Member
	if id == 0 {
		id = membership.NewRaftID(func() uint64 { return 2 * uint64(p.between(1, 30)) }, at.Peers, at.Removed)
		if p.used[id] {
			return nil, errkind.New(errkind.NoLeader, "the ID is of a machine that may join yet")
		}
		p.used[id] = true
	}
	return &Reply{Member: id}, p.node.Change(ctx, state.AddLearner, peer(id))
}

// read reads what an operation asks for.
func (p *process) read(op Op, tx store.ReadTx) *Reply {
	reply := &Reply{Revision: tx.Revision()}
	if op.Verb == Balances {
		for i := range accounts {
			reply.Seen = append(reply.Seen, p.truth.kinds[i].get(tx, accountID(i)))
		}
		return reply
	}
	k, id := p.truth.kinds[op.Key%len(p.truth.kinds)], keyID(op.Key)
	s := k.get(tx, id)
	counts, err := k.find(tx, id)
	for _, n := range counts {
		if n > 1 || (n == 1) != (s.Version != 0) {
			err = errors.Join(err, errkind.New(errkind.Internal, "wrong"))
		}
	}
	if err != nil {
		p.fail("finders find", "n%d finds %v of %s, which has version %d: %v", p.id, counts, id, s.Version, err)
	}
	reply.Seen = []Seen{s}
	return reply
}

// changes reads the log from a watcher's cursor.
func (p *process) changes(op Op) (any, error) {
	revisions, err := p.store.Changes(op.After, op.Amount)
	if err != nil {
		return nil, err
	}
	reply := &Reply{Revision: p.store.Root().Revision()}
	for _, r := range revisions {
		l := Line{Revision: r.Revision, Hash: r.Hash}
		for _, c := range r.Changes {
			l.IDs += " " + c.Object().GetID()
		}
		reply.Log = append(reply.Log, l)
	}
	return reply, nil
}
