package sim

import (
	"fmt"
	"math"

	"github.com/anishathalye/porcupine"
)

// callSeen is an operation as a client saw it, for the model.
type callSeen struct {
	op      Op
	out     outcome
	version uint64 // revision that the write made
	seen    []Seen // what it read, or what its error told
	request string // of a write whose outcome is unknown
}

// outcome is what a client knows of an operation.
type outcome int

const (
	done    outcome = iota
	unknown         // it may have been done at any time since it began
	exists          // the error says that the object is there
	missing         // … that it is not there
	stale           // … that it has another version, which is in seen
	refused         // … what is in seen
)

// objectState is the model's state of an object.
type objectState struct {
	there   bool
	version uint64 // of the last change, a removal too
	value   string
}

// is tells whether the state is what was seen.
func (s objectState) is(seen Seen) bool {
	if !s.there {
		return seen.Version == 0
	}
	return s.version == seen.Version && s.value == seen.Value
}

// stepKey gives the state of a key after a call, and whether the call can be.
func stepKey(s objectState, c callSeen) (objectState, bool) {
	next := objectState{true, c.version, c.op.ID}
	switch c.out {
	case exists:
		return s, s.there
	case missing:
		return s, !s.there
	case stale:
		return s, s.there && s.version == c.seen[0].Version && s.version != c.op.Version
	case refused:
		return s, s.is(c.seen[0])
	case done, unknown:
	}
	newer := c.version > s.version
	switch c.op.Verb {
	case Create:
		return next, newer && !s.there
	case Set:
		return next, newer && s.there
	case Swap:
		return next, newer && s.there && s.version == c.op.Version
	case Remove:
		return objectState{version: c.version}, newer && s.there
	default:
		return s, s.is(c.seen[0])
	}
}

// bankState is the model's state of all accounts.
type bankState [accounts]objectState

func stepBank(s bankState, c callSeen) (bankState, bool) {
	a, b := &s[c.op.Key], &s[c.op.Other]
	switch {
	case c.out == exists:
		return s, a.there
	case c.out == missing:
		return s, !a.there
	case c.out == refused: // there is too little
		return s, a.is(c.seen[0]) && c.seen[0].number() < c.op.Amount
	case c.op.Verb == Balances:
		for i, seen := range c.seen {
			if !s[i].is(seen) {
				return s, false
			}
		}
		return s, true
	case c.op.Verb == Open:
		opens := !a.there
		for i := range s {
			s[i] = objectState{true, c.version, fmt.Sprint(money)}
		}
		return s, opens
	}
	from, to := Seen{Value: a.value}.number(), Seen{Value: b.value}.number()
	fits := a.there && c.version > a.version && c.version > b.version && from >= c.op.Amount
	*a = objectState{true, c.version, fmt.Sprint(from - c.op.Amount)}
	*b = objectState{true, c.version, fmt.Sprint(to + c.op.Amount)}
	return s, fits
}

// history is what the clients saw, by what it is about.
type history struct {
	clock int64
	calls map[string][]porcupine.Operation
}

// bank is what calls to the accounts are about.
const bank = "bank"

// tick gives moments that are all different.
func (h *history) tick() int64 {
	h.clock++
	return h.clock
}

func (h *history) add(about string, client int, began int64, c callSeen) {
	op := porcupine.Operation{ClientId: client, Input: c, Call: began, Return: h.tick()}
	if c.out == unknown {
		op.Return = math.MaxInt64
	}
	h.calls[about] = append(h.calls[about], op)
}

// check tells of what the history is not linearizable, or "". A write whose outcome is unknown
// stays open, and counts if the log shows it: what the log has, and only that, was done.
func (h *history) check(made func(callSeen) (revision uint64)) string {
	for _, about := range sortedKeys(h.calls) {
		var calls []porcupine.Operation
		for _, o := range h.calls[about] {
			if c, ok := o.Input.(callSeen); ok && c.out == unknown {
				if c.version = made(c); c.version == 0 {
					continue
				}
				o.Input = c
			}
			calls = append(calls, o)
		}
		m := model(objectState{}, stepKey)
		if about == bank {
			m = model(bankState{}, stepBank)
		}
		if !porcupine.CheckOperations(m, calls) {
			return about
		}
	}
	return ""
}

// describe gives the history of an object, for people.
func (h *history) describe(about string) string {
	s := ""
	for _, o := range h.calls[about] {
		s += fmt.Sprintf("\n  client %d, %d to %d: %+v", o.ClientId, o.Call, o.Return, o.Input)
	}
	return s
}

func model[S comparable](start S, step func(S, callSeen) (S, bool)) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return start },
		Step: func(st, input, _ any) (bool, any) {
			s, isState := st.(S)
			c, isCall := input.(callSeen)
			if !isState || !isCall {
				panic("sim: a history of something else")
			}
			next, ok := step(s, c)
			return ok, next
		},
		Equal: func(a, b any) bool { return a == b },
	}
}
