package client_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/internal/errkind"
)

// Each watch is given what the script says, until the loop has seen what it waits for, or an
// error.
func TestWatch(t *testing.T) {
	for name, c := range map[string]struct {
		opts  client.WatchOptions
		steps []func(watchStream) error
		until string
		want  []string
		asked []string
		kind  errkind.Kind // of the error at the end, if until is empty
	}{
		"from now on it goes on where it began": {
			steps: []func(watchStream) error{
				func(s watchStream) error { s.created(7); return noLeader() },
				func(s watchStream) error { return s.created(3).synced(7).events(9, false, "a", "b").hang() },
			},
			until: "change 9 b",
			want:  []string{"synced 7", "change 9 a", "change 9 b"},
			asked: []string{"a now", "b after 7"},
		},
		"synced after created is not told again": {
			steps: []func(watchStream) error{
				func(s watchStream) error { return s.created(7).synced(7).events(8, false, "a").hang() },
			},
			until: "change 8 a", want: []string{"synced 7", "change 8 a"}, asked: []string{"a now"},
		},
		"from a revision": {
			opts: client.WatchOptions{Start: client.From(5)},
			steps: []func(watchStream) error{
				func(watchStream) error { return noLeader() },
				func(s watchStream) error { s.created(6); return noLeader() },
				func(s watchStream) error {
					s.created(6).events(5, false, "a").events(6, false, "b")
					return status.Error(codes.Unavailable, "reset")
				},
				func(s watchStream) error { s.created(6).synced(6); return nil },
				func(s watchStream) error { return s.created(6).synced(6).events(7, false, "c").hang() },
			},
			until: "change 7 c",
			want:  []string{"change 5 a", "change 6 b", "synced 6", "change 7 c"},
			asked: []string{"a from 5", "b from 5", "c from 5", "a after 6", "b after 6"},
		},
		"after a revision, with progress": {
			opts: client.WatchOptions{Start: client.After(5), Progress: true},
			steps: []func(watchStream) error{
				func(s watchStream) error {
					// Of all synced watchers is not of this one, before it is synced.
					s.created(9).progress(0, 9).progress(1, 6).events(7, false, "a")
					return errkind.Status(errkind.New(errkind.UnknownOutcome, "lost")).Err()
				},
				func(s watchStream) error {
					s.created(8).progress(0, 99).synced(8).progress(0, 9)
					return status.Error(codes.Canceled, "stopping")
				},
				func(s watchStream) error { return s.created(4).synced(4).events(10, false, "b").hang() },
			},
			until: "change 10 b",
			want:  []string{"progress 6", "change 7 a", "synced 8", "progress 9", "progress 9", "change 10 b"},
			asked: []string{"a after 5", "b after 7", "c after 9"},
		},
		"initial objects begin anew": {
			opts: client.WatchOptions{Initial: true},
			steps: []func(watchStream) error{
				func(s watchStream) error { s.created(5); return noLeader() },
				func(s watchStream) error {
					s.created(5).objects(5, "a", "b").progress(1, 9)
					return status.Error(codes.DeadlineExceeded, "too late")
				},
				func(s watchStream) error { s.created(6).canceled(1, errkind.New(errkind.NoLeader, "gone")); return nil },
				func(s watchStream) error { s.created(7).objects(7, "a").objects(7, "c").synced(7); return noLeader() },
				func(s watchStream) error { return s.created(7).synced(7).events(8, false, "d").hang() },
			},
			until: "change 8 d",
			want: []string{
				"present 5 a", "present 5 b", "restarted", "present 7 a", "present 7 c", "synced 7", "change 8 d",
			},
			asked: []string{"a now initial", "b now initial", "c now initial", "a now initial", "b after 7"},
		},
		"fragments are put together": {
			opts: client.WatchOptions{Start: client.After(5)},
			steps: []func(watchStream) error{
				func(s watchStream) error { s.created(5).events(6, true, "a", "b"); return noLeader() },
				func(s watchStream) error {
					return s.created(5).events(6, true, "a").events(6, true, "b").events(6, false, "c").hang()
				},
			},
			until: "change 6 c",
			want:  []string{"change 6 a", "change 6 b", "change 6 c"},
			asked: []string{"a after 5", "b after 5"},
		},
		"compacted": {
			opts: client.WatchOptions{Start: client.From(5)},
			steps: []func(watchStream) error{
				func(s watchStream) error {
					return s.canceled(1, &errkind.Error{Kind: errkind.OutOfRange, Now: 30, Msg: "compacted", Hint: "look"}).hang()
				},
			},
			want: []string{"error: compacted"}, asked: []string{"a from 5"}, kind: errkind.OutOfRange,
		},
		"refused after a while, by the stream": {
			steps: []func(watchStream) error{
				func(s watchStream) error {
					s.created(5).events(6, false, "a")
					return errkind.Status(errkind.New(errkind.Limit, "too many")).Err()
				},
			},
			want: []string{"synced 5", "change 6 a", "error: too many"}, asked: []string{"a now"}, kind: errkind.Limit,
		},
		"canceled, and nobody says why": {
			steps: []func(watchStream) error{
				func(s watchStream) error {
					s.send(0, 0, &holdfast.WatchResponse{Message: &holdfast.WatchResponse_Canceled{Canceled: &holdfast.WatcherCanceled{}}})
					return s.hang()
				},
			},
			want: []string{"error: the manager ended the watch without a reason"}, asked: []string{"a now"}, kind: errkind.Internal,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sc := &script{steps: c.steps}
				f := newWatchFake(t, abc(), sc.serve)
				var got []string
				for ev, err := range f.client(t, client.Options{}).Watch(t.Context(), c.opts) {
					got = append(got, show(ev, err))
					if err != nil && (c.until != "" || !errkind.Is(err, c.kind)) {
						t.Errorf("error of kind %v: %v", errkind.Of(err), err)
					}
					if got[len(got)-1] == c.until {
						break
					}
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("got  %q\nwant %q", got, c.want)
				}
				if sc.requestIDs != "" {
					t.Errorf("request ID %q: a watch is no write", sc.requestIDs)
				}
				if !slices.Equal(sc.asked(), c.asked) {
					t.Errorf("asked %q\nwant  %q", sc.asked(), c.asked)
				}
			})
		})
	}
}

func TestWatchPassesOnWhatIsAskedAndTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc := &script{steps: []func(watchStream) error{func(s watchStream) error {
			s.created(5).send(1, 6, &holdfast.WatchResponse{Message: &holdfast.WatchResponse_Events{Events: &holdfast.WatcherEvents{
				Events: []*holdfast.Event{{
					Action: holdfast.Action_ACTION_REMOVE, Left: true, Object: service("a"), Previous: service("b"),
				}},
			}}})
			return s.canceled(0, &errkind.Error{Kind: errkind.OutOfRange, Now: 30, Msg: "compacted", Hint: "look"}).hang()
		}}}
		c := newWatchFake(t, abc(), sc.serve).client(t, client.Options{})
		opts := client.WatchOptions{
			Kinds:    []holdfast.Kind{holdfast.Kind_KIND_SERVICE, holdfast.Kind_KIND_TASK},
			Actions:  []holdfast.Action{holdfast.Action_ACTION_REMOVE},
			Selector: holdfast.Selector{Where: "a=b"}, Previous: true,
		}
		var last client.Event
		for ev, err := range c.Watch(t.Context(), opts) {
			if e, ok := errors.AsType[*errkind.Error](err); err != nil && (!ok || e.Now != 30 || e.Hint != "look") {
				t.Errorf("got %+v", err)
			}
			if err == nil {
				last = ev
			}
		}
		want := client.Event{
			Type: client.Changed, Revision: 6, Action: holdfast.Action_ACTION_REMOVE, Kind: holdfast.Kind_KIND_SERVICE, Left: true,
		}
		if !last.Object.Equal(service("a")) || !last.Previous.Equal(service("b")) {
			t.Errorf("objects %v, %v", last.Object, last.Previous)
		}
		if last.Object, last.Previous = nil, nil; last != want {
			t.Errorf("got %+v, want %+v", last, want)
		}
		if r := sc.created[0]; !slices.Equal(r.Kinds, opts.Kinds) || !slices.Equal(r.Actions, opts.Actions) ||
			!r.Selector.Equal(&opts.Selector) || !r.Previous || r.WatcherID != 1 {
			t.Errorf("asked %v", r)
		}
		if c.Revision() != 6 {
			t.Errorf("revision %d", c.Revision())
		}
	})
}

// What a manager must not do ends a watch: nothing is passed over in silence.
func TestWatchProtocolErrors(t *testing.T) {
	for name, c := range map[string]struct {
		opts client.WatchOptions
		step func(s watchStream)
		text string
	}{
		"no created":        {step: func(s watchStream) { s.events(5, false, "a") }, text: "did not tell that the watch has begun"},
		"created twice":     {step: func(s watchStream) { s.created(5).created(5) }, text: "unknown kind"},
		"another watcher":   {step: func(s watchStream) { s.created(5).progress(2, 6) }, text: "a message for watcher 2"},
		"of no watcher":     {step: func(s watchStream) { s.created(5).send(0, 6, &holdfast.WatchResponse{}) }, text: "for watcher 0"},
		"the past":          {step: func(s watchStream) { s.created(5).events(5, false, "a") }, text: "revision 5, out of turn after 5"},
		"twice":             {step: func(s watchStream) { s.created(5).events(6, false, "a").events(6, false, "a") }, text: "out of turn"},
		"before the start":  {opts: client.WatchOptions{Start: client.From(9)}, step: func(s watchStream) { s.created(5).events(8, false, "a") }, text: "revision 8, out of turn after 8"},
		"objects":           {step: func(s watchStream) { s.created(5).objects(5, "a") }, text: "not asked for"},
		"before the synced": {opts: client.WatchOptions{Initial: true}, step: func(s watchStream) { s.created(5).events(6, false, "a") }, text: "out of turn"},
		"half a revision":   {step: func(s watchStream) { s.created(5).events(6, true, "a").events(7, false, "b") }, text: "revision 6 ends after 1 changes"},
		"half and progress": {step: func(s watchStream) { s.created(5).events(6, true, "a").progress(1, 6) }, text: "revision 6 ends after 1 changes"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sc := &script{steps: []func(watchStream) error{func(s watchStream) error { c.step(s); return s.hang() }}}
				var last error
				for _, err := range newWatchFake(t, abc(), sc.serve).client(t, client.Options{}).Watch(t.Context(), c.opts) {
					last = err
				}
				if !errkind.Is(last, errkind.Internal) || !strings.Contains(last.Error(), "unix:///a does not keep to") ||
					!strings.Contains(last.Error(), c.text) {
					t.Errorf("got %v", last)
				}
			})
		})
	}
}
