package watchapi_test

import (
	"strings"
	"testing"
	"time"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
	"holdfast/manager/watchapi"
)

func after(r uint64) *holdfast.CreateWatcher_After { return &holdfast.CreateWatcher_After{After: r} }
func from(r uint64) *holdfast.CreateWatcher_From   { return &holdfast.CreateWatcher_From{From: r} }

func TestWatch(t *testing.T) {
	service := []holdfast.Kind{holdfast.Kind_KIND_SERVICE}
	for _, c := range []struct {
		name string
		test func(f *fixture, w *watching)
	}{
		{"from now", func(f *fixture, w *watching) {
			f.put("service a")
			w.create(&holdfast.CreateWatcher{})
			w.want("1@1 created", "1@1 synced")
			f.put("service b", "network n")
			f.put("service b x=1")
			f.drop("network n")
			w.want("1@2 events +b +n", "1@3 events ~b[x=1]", "1@4 events -n")
		}},
		{"inclusive, exclusive, and all there is", func(f *fixture, w *watching) {
			f.put("service a")
			f.put("service b")
			w.create(&holdfast.CreateWatcher{Start: from(2)})
			w.want("1@1 created", "1@2 events +b", "1@2 synced")
			w.create(&holdfast.CreateWatcher{Start: after(2)})
			w.want("2@2 created", "2@2 synced")
			w.create(&holdfast.CreateWatcher{Start: after(0)})
			w.want("3@0 created", "3@1 events +a", "3@2 events +b", "3@2 synced")
			f.put("service c")
			w.want("1@3 events +c", "2@3 events +c", "3@3 events +c")
		}},
		{"a start in what others slept through", func(f *fixture, w *watching) {
			w.create(&holdfast.CreateWatcher{Kinds: []holdfast.Kind{holdfast.Kind_KIND_TASK}})
			w.want("1@0 created", "1@0 synced")
			f.put("service a")
			f.put("service b")
			f.put("service c")
			w.create(&holdfast.CreateWatcher{Start: after(1)})
			w.want("2@1 created", "2@2 events +b", "2@3 events +c", "2@3 synced")
		}},
		{"a start in the future gets nothing older", func(f *fixture, w *watching) {
			w.create(&holdfast.CreateWatcher{Start: from(3)})
			w.create(&holdfast.CreateWatcher{Start: after(0)})
			w.want("1@2 created", "2@0 created", "2@0 synced")
			f.put("service a")
			w.want("2@1 events +a")
			f.put("service b")
			w.want("2@2 events +b", "1@2 synced")
			f.put("service c")
			w.want("1@3 events +c", "2@3 events +c")
		}},
		{"initial objects first", func(f *fixture, w *watching) {
			f.put("service a", "service b x=1", "network n")
			f.drop("service a")
			w.create(&holdfast.CreateWatcher{Initial: true})
			w.want("1@2 created", "1@2 objects b[x=1] n", "1@2 synced")
			f.put("service b")
			w.want("1@3 events ~b")
		}},
		{"previous objects", func(f *fixture, w *watching) {
			w.create(&holdfast.CreateWatcher{Previous: true})
			w.want("1@0 created", "1@0 synced")
			f.put("service a")
			f.put("service a x=1")
			f.drop("service a")
			w.want("1@1 events +a", "1@2 events ~a[x=1](was a)", "1@3 events -a(was a[x=1])")
		}},
		{"secrets have no data", func(f *fixture, w *watching) {
			w.create(&holdfast.CreateWatcher{Previous: true, Start: after(0)})
			w.want("1@0 created", "1@0 synced")
			f.put("secret s")
			f.put("secret s x=1")
			f.drop("secret s")
			w.want("1@1 events +s", "1@2 events ~s[x=1](was s)", "1@3 events -s(was s[x=1])")
			f.put("secret s")
			w.create(&holdfast.CreateWatcher{Initial: true})
			w.want("1@4 events +s", "2@4 created", "2@4 objects s", "2@4 synced")
		}},
		{"what enters a selector is created, what leaves it removed", func(f *fixture, w *watching) {
			w.create(&holdfast.CreateWatcher{Selector: holdfast.Selector{Where: "x=1"}, Previous: true})
			w.want("1@0 created", "1@0 synced")
			f.put("service a")
			f.put("service a x=1")
			f.put("service a x=1", "service b")
			f.put("service a x=2")
			f.drop("service a")
			f.put("service b x=1")
			f.drop("service b")
			w.want("1@2 events +a[x=1](was a)", "1@4 events -a(left)(was a[x=1])", "1@6 events +b[x=1](was b)",
				"1@7 events -b(was b[x=1])")
		}},
		{"actions, as the watcher sees them", func(f *fixture, w *watching) {
			w.create(&holdfast.CreateWatcher{
				Selector: holdfast.Selector{Labels: map[string]string{"x": ""}},
				Actions:  []holdfast.Action{holdfast.Action_ACTION_REMOVE},
			})
			w.want("1@0 created", "1@0 synced")
			f.put("service a x=1")
			f.put("service a")
			w.want("1@2 events -a(left)")
		}},
		{"by name, service and node", func(f *fixture, w *watching) {
			w.create(&holdfast.CreateWatcher{Selector: holdfast.Selector{Names: []string{"A", "b"}}})
			w.create(&holdfast.CreateWatcher{Selector: holdfast.Selector{ServiceIDs: []string{"s1"}}})
			w.create(&holdfast.CreateWatcher{Selector: holdfast.Selector{NodeIDs: []string{"n2"}}})
			w.create(&holdfast.CreateWatcher{Selector: holdfast.Selector{IDPrefixes: []string{"t1"}}})
			w.want("1@0 created", "1@0 synced", "2@0 created", "2@0 synced", "3@0 created", "3@0 synced",
				"4@0 created", "4@0 synced")
			f.put("service a", "service c", "network B", "task t1 1", "task t2 2")
			w.want("1@1 events +a +B", "2@1 events +t1[1=]", "3@1 events +t2[2=]", "4@1 events +t1[1=]")
			f.put("task t1 2")
			w.want("2@2 events -t1(left)", "3@2 events +t1[2=]", "4@2 events ~t1[2=]")
		}},
		{"IDs, own and given", func(f *fixture, w *watching) {
			w.create(&holdfast.CreateWatcher{WatcherID: 1, Kinds: service})
			w.create(&holdfast.CreateWatcher{})
			w.create(&holdfast.CreateWatcher{WatcherID: 1})
			w.want("1@0 created", "1@0 synced", "2@0 created", "2@0 synced",
				"0@0 canceled EXISTS: watcher 1: the stream has a watcher with this ID")
			f.put("service a", "network n")
			w.want("1@1 events +a", "2@1 events +a +n")
			w.cancelWatcher(1)
			w.cancelWatcher(1)
			w.want("1@1 canceled", "1@1 canceled NOT_FOUND: watcher 1: the stream has no such watcher")
			f.put("service a x=1")
			w.want("2@2 events ~a[x=1]")
		}},
		{"progress, in the order of events", func(f *fixture, w *watching) {
			w.create(&holdfast.CreateWatcher{Kinds: service})
			w.want("1@0 created", "1@0 synced")
			f.put("service a")
			f.put("network n")
			w.want("1@1 events +a")
			w.progress(0)
			w.progress(1)
			w.want("0@2 progress", "1@2 progress")
			w.progress(7)
			w.want("7@2 canceled NOT_FOUND: watcher 7: the stream has no such watcher")
		}},
		{"progress by itself", func(f *fixture, w *watching) {
			w.create(&holdfast.CreateWatcher{Kinds: service, Progress: true})
			w.want("1@0 created", "1@0 synced")
			f.put("network n")
			w.want("0@1 progress")
			time.Sleep(time.Hour) // nothing new, nothing told
			f.put("network n x=1")
			w.want("0@2 progress")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFixture(t, watchapi.Config{})
				c.test(f, f.watch())
			})
		})
	}
}

func TestWhatCannotBeWatched(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t, watchapi.Config{MaxWatchers: 1})
		w := f.watch()
		kinds := func(k ...holdfast.Kind) []holdfast.Kind { return k }
		many := make([]string, 3000)
		for i := range many {
			many[i] = "0123456789"
		}
		for _, c := range []struct {
			create *holdfast.CreateWatcher
			want   string
		}{
			{&holdfast.CreateWatcher{Kinds: kinds(99)}, "INVALID: create.kinds[0]: 99 is not a kind of object"},
			{
				&holdfast.CreateWatcher{Actions: []holdfast.Action{1, 4}},
				"INVALID: create.actions[1]: 4 is no action",
			},
			{
				&holdfast.CreateWatcher{Kinds: kinds(holdfast.Kind_KIND_SECRET), Selector: holdfast.Selector{NodeIDs: []string{"n"}}},
				"INVALID: selector.node_ids: secrets do not have this field",
			},
			{
				&holdfast.CreateWatcher{Selector: holdfast.Selector{Where: "a in"}},
				"INVALID: selector.where: column 5: expected \"(\", found the end",
			},
			{&holdfast.CreateWatcher{Start: from(0)}, "INVALID: create.from: is 0, and the first revision is 1"},
			{
				&holdfast.CreateWatcher{Start: from(1), Initial: true},
				"INVALID: create.initial: is given, and a start too",
			},
			{
				&holdfast.CreateWatcher{Selector: holdfast.Selector{IDs: many}},
				"LIMIT: create.selector: the request has 36006 bytes, at most 32 KiB are allowed",
			},
		} {
			c.create.WatcherID = 5
			w.create(c.create)
			if got := format(w.next()); got != "5@0 canceled "+c.want {
				t.Errorf("got  %s\nwant 5@0 canceled %s", got, c.want)
			}
		}
		w.create(&holdfast.CreateWatcher{})
		w.create(&holdfast.CreateWatcher{})
		w.want("1@0 created", "1@0 synced", "0@0 canceled LIMIT: the stream has 1 watchers, and takes no more")

		w.send(&holdfast.WatchRequest{})
		_, err := w.stream.Recv()
		wantEnd(t, err, errkind.Invalid, "request: is empty")
	})
}

func TestCompactedWatchersAreTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t, watchapi.Config{FragmentBytes: 1})
		w := f.watch()
		f.put("service a")
		f.put("service b")
		f.compact()
		w.create(&holdfast.CreateWatcher{Start: from(2)})
		w.create(&holdfast.CreateWatcher{Start: after(2), Kinds: []holdfast.Kind{holdfast.Kind_KIND_NETWORK}})
		w.want("1@1 created", "1@1 canceled OUT_OF_RANGE: compacted: revision 1 is below the floor, 2",
			"2@2 created", "2@2 synced")
		// What is nothing to a watcher does not make it fall behind the floor.
		for range 5 {
			f.drop("service a")
			f.put("service a")
			f.compact()
		}
		f.put("network n")
		w.want("2@13 events +n")
	})
}

// A client that does not read holds nothing up, and is told what it missed.
func TestSlowClient(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t, watchapi.Config{})
		slow, fast := f.watch(), f.watch()
		for _, w := range []*watching{slow, fast} {
			w.create(&holdfast.CreateWatcher{})
			w.want("1@0 created", "1@0 synced")
		}
		const n = 2000
		fill := make([]byte, 1000)
		for i := range n {
			f.update(func(tx *store.Tx) error {
				c := &api.Config{ID: string(rune('a'+i%26)) + "x", Spec: api.ConfigSpec{Data: fill}}
				if old := store.Configs.Get(tx, c.ID); old != nil {
					c.Meta = old.Meta
					c.Spec.Annotations.Labels = map[string]string{"i": time.Duration(i).String()}
					_, err := store.Configs.Update(tx, c)
					return err
				}
				_, err := store.Configs.Create(tx, c)
				return err
			})
			if m := fast.next(); m.Revision != uint64(i+1) || m.GetEvents() == nil {
				t.Fatalf("after %d: %v", i, m)
			}
		}
		f.compact()
		at, last := uint64(0), ""
		for {
			m := slow.next()
			if m.GetEvents() == nil {
				last = format(m)
				break
			}
			if at++; m.Revision != at {
				t.Fatalf("revision %d after %d", m.Revision, at-1)
			}
		}
		if at == 0 || at == n {
			t.Fatalf("the slow client got %d events: it was not slow", at)
		}
		t.Logf("the slow client got %d of %d events", at, n)
		if want := "canceled OUT_OF_RANGE: compacted"; !strings.Contains(last, want) {
			t.Errorf("got %s, want %s", last, want)
		}
	})
}
