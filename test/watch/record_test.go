package watch

import (
	"context"
	"fmt"
	"sync"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/internal/errkind"
)

// record is what lists show of each revision.
type record struct {
	c *client.Client

	mu     sync.Mutex
	first  uint64
	states []map[string]looks // by ID, from revision first on
}

// state lists all that was there at a revision.
func (r *record) state(ctx context.Context, revision uint64) (map[string]looks, error) {
	request := &holdfast.ReadRequest{}
	for _, k := range kinds() {
		request.Operations = append(request.Operations, &holdfast.ReadOperation{Op: &holdfast.ReadOperation_List{
			List: &holdfast.ListRequest{Kind: k},
		}})
	}
	got, err := r.c.Objects().Read(client.ReadAt(ctx, revision), request)
	if err != nil {
		return nil, err
	}
	if got.Revision != revision {
		return nil, fmt.Errorf("read revision %d, and asked for %d", got.Revision, revision)
	}
	all := map[string]looks{}
	for _, result := range got.Results {
		for _, o := range result.GetList().Objects {
			l := lookAt(o)
			all[l.id] = l
		}
	}
	return all, nil
}

// follow records one revision after another, until the one that is told at the end.
func (r *record) follow(ctx context.Context, last <-chan uint64) error {
	end := ^uint64(0)
	for r.at() < end {
		select {
		case end = <-last:
			continue
		default:
		}
		state, err := r.state(ctx, r.at()+1)
		if e, ok := asError(err); ok && e.Kind == errkind.OutOfRange && e.Now < r.at()+1 {
			// Not there yet, or not on this member.
			if _, err := r.c.Objects().Get(ctx, &holdfast.GetRequest{Kind: holdfast.Kind_KIND_CLUSTER, Name: "default"}); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("record revision %d: %w", r.at()+1, err)
		}
		r.mu.Lock()
		r.states = append(r.states, state)
		r.mu.Unlock()
	}
	return nil
}

// at is the last revision that is recorded.
func (r *record) at() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.first + uint64(len(r.states)) - 1
}

// events tells what changed at a revision, for one who picks some objects: by ID.
func (r *record) events(revision uint64, picks func(looks) bool) map[string]holdfast.Action {
	was, is := r.states[revision-1-r.first], r.states[revision-r.first]
	events := map[string]holdfast.Action{}
	for id, l := range is {
		old, had := was[id]
		had = had && picks(old)
		switch has := picks(l); {
		case has && !had:
			events[id] = holdfast.Action_ACTION_CREATE
		case has && l.changed == revision:
			events[id] = holdfast.Action_ACTION_UPDATE
		case had && !has:
			events[id] = holdfast.Action_ACTION_REMOVE
		}
	}
	for id, l := range was {
		if _, still := is[id]; !still && picks(l) {
			events[id] = holdfast.Action_ACTION_REMOVE
		}
	}
	return events
}
