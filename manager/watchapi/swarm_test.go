package watchapi_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
	"holdfast/manager/watchapi"
)

const (
	swarmCreate = api.WatchActionKind_WATCH_ACTION_CREATE
	swarmUpdate = api.WatchActionKind_WATCH_ACTION_UPDATE
	swarmRemove = api.WatchActionKind_WATCH_ACTION_REMOVE
	swarmAll    = swarmCreate | swarmUpdate | swarmRemove
)

type swarm struct {
	t      testing.TB
	stream grpc.ServerStreamingClient[api.WatchMessage]
}

func (f *fixture) swarm(r *api.WatchRequest) *swarm {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.t.Context())
	f.t.Cleanup(cancel)
	stream, err := api.NewWatchClient(f.conn).Watch(ctx, r)
	if err != nil {
		f.t.Fatal(err)
	}
	return &swarm{f.t, stream}
}

// want reads as many messages as there are lines: VERSION and events.
func (w *swarm) want(lines ...string) {
	w.t.Helper()
	for _, line := range lines {
		m, err := w.stream.Recv()
		if err != nil {
			w.t.Fatal(err)
		}
		got := fmt.Sprint(m.Version.GetIndex())
		for _, e := range m.Events {
			got += fmt.Sprintf(" %c%s", "?+~?-"[e.Action], swarmName(e.Object))
			if e.OldObject != nil {
				got += "(was " + swarmName(e.OldObject) + ")"
			}
		}
		if got != line {
			w.t.Fatalf("got  %s\nwant %s", got, line)
		}
	}
}

func swarmName(o *api.Object) string {
	switch o := o.GetObject().(type) {
	case *api.Object_Service:
		return o.Service.Spec.Annotations.Name
	case *api.Object_Network:
		return o.Network.Spec.Annotations.Name
	case *api.Object_Task:
		return o.Task.Annotations.Name
	case *api.Object_Secret:
		if len(o.Secret.Spec.Data) > 0 {
			return "SECRET DATA"
		}
		return o.Secret.Spec.Annotations.Name
	}
	return "nothing"
}

func entry(kind string, action api.WatchActionKind, filters ...*api.SelectBy) *api.WatchRequest_WatchEntry {
	return &api.WatchRequest_WatchEntry{Kind: kind, Action: action, Filters: filters}
}

func entries(all ...*api.WatchRequest_WatchEntry) *api.WatchRequest {
	return &api.WatchRequest{Entries: all}
}

func TestSwarmWatch(t *testing.T) {
	byService := &api.SelectBy{By: &api.SelectBy_ServiceID{ServiceID: "s1"}}
	byNode := &api.SelectBy{By: &api.SelectBy_NodeID{NodeID: "n1"}}
	for _, c := range []struct {
		name    string
		request *api.WatchRequest
		want    []string
	}{
		{"all of a kind", entries(entry("service", swarmAll)), []string{"2 +b", "3 ~b", "5 -b"}},
		{"some actions", entries(entry("service", swarmRemove|swarmCreate)), []string{"2 +b", "5 -b"}},
		{
			"entries are alternatives", entries(entry("service", swarmUpdate), entry("network", swarmAll), entry("service", swarmAll)),
			[]string{"2 +b +n", "3 ~b", "4 -n", "5 -b"},
		},
		{
			"filters are not", entries(entry("task", swarmAll, byService, byNode)),
			[]string{"2 +t1", "6 -t1"},
		},
		{
			"by name, without regard to case", entries(entry("network", swarmAll, &api.SelectBy{By: &api.SelectBy_NamePrefix{NamePrefix: "N"}})),
			[]string{"2 +n", "4 -n"},
		},
		{"secrets without data", entries(entry("secret", swarmAll)), []string{"6 +s"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFixture(t, watchapi.Config{})
				f.put("service a")
				w := f.swarm(c.request)
				w.want("1")
				f.put("service b", "network n", "task t1 1", "task t2 2")
				f.put("service b x=1")
				f.drop("network n")
				f.drop("service b")
				f.update(func(tx *store.Tx) error {
					if err := put(tx, []string{"secret", "s"}); err != nil {
						return err
					}
					_, err := store.Tasks.Delete(tx, "t1-id")
					return err
				})
				w.want(c.want...)
				// The same again, from the version of the first message.
				c.request.ResumeFrom = &api.Version{Index: 1}
				again := f.swarm(c.request)
				again.want("1")
				again.want(c.want...)
			})
		})
	}
}

func TestSwarmWatchOldObjectsAndResume(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t, watchapi.Config{})
		f.put("service a")
		f.put("service a x=1")
		r := entries(entry("service", swarmAll))
		r.IncludeOldObject = true
		r.ResumeFrom = &api.Version{Index: 1} // exclusive
		w := f.swarm(r)
		w.want("1", "2 ~a(was a)")
		f.drop("service a")
		w.want("3 -a")

		r.ResumeFrom = &api.Version{Index: 4} // to come
		later := f.swarm(r)
		later.want("4")
		f.put("service a")
		f.put("service a x=1")
		later.want("5 ~a(was a)")

		f.compact()
		r.ResumeFrom = &api.Version{Index: 4}
		_, err := f.swarm(r).stream.Recv()
		wantEnd(t, err, errkind.OutOfRange, "compacted: revision 4 is below the floor, 5")
	})
}

func TestSwarmWatchRefuses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t, watchapi.Config{})
		custom := func(kind, index string) *api.SelectBy {
			return &api.SelectBy{By: &api.SelectBy_Custom{Custom: &api.SelectByCustom{Kind: kind, Index: index}}}
		}
		for _, c := range []struct {
			request *api.WatchRequest
			want    string
		}{
			{&api.WatchRequest{}, "entries: is empty"},
			{entries(entry("Service", swarmAll)), `entries[0].kind: "Service" is no kind of object`},
			{entries(entry("volume", swarmAll)), `entries[0].kind: "volume" is no kind of object`},
			{entries(entry("service", 0)), "entries[0].action: 0 is no sum"},
			{entries(entry("service", swarmAll), entry("task", 8)), "entries[1].action: 8 is no sum"},
			{entries(entry("service", swarmAll, &api.SelectBy{})), "entries[0].filters[0]: is empty"},
			{
				entries(entry("service", swarmAll, &api.SelectBy{By: &api.SelectBy_NodeID{NodeID: "n"}})),
				"entries[0].filters[0]: services cannot be picked by this filter",
			},
			{
				entries(entry("task", swarmAll, &api.SelectBy{By: &api.SelectBy_Kind{Kind: "x"}})),
				"entries[0].filters[0]: tasks cannot be picked by this filter",
			},
			{entries(entry("task", swarmAll, custom("node", "i"))), `filters[0].custom.kind: is "node", and the entry watches tasks`},
			{entries(entry("task", swarmAll, custom("", ""))), "filters[0].custom.index: is empty"},
		} {
			_, err := f.swarm(c.request).stream.Recv()
			wantEnd(t, err, errkind.Invalid, c.want)
		}
	})
}

func TestSwarmWatchCustomIndices(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t, watchapi.Config{})
		is := &api.SelectBy{By: &api.SelectBy_Custom{Custom: &api.SelectByCustom{Kind: "service", Index: "team", Value: "red"}}}
		begins := &api.SelectBy{By: &api.SelectBy_CustomPrefix{CustomPrefix: &api.SelectByCustom{Index: "team", Value: "re"}}}
		w := f.swarm(entries(entry("service", swarmAll, is, begins)))
		w.want("0")
		for _, team := range []string{"blue", "red", "reddish"} {
			f.update(func(tx *store.Tx) error {
				_, err := store.Services.Create(tx, &api.Service{ID: team, Spec: api.ServiceSpec{Annotations: api.Annotations{
					Name: team, Indices: []*api.IndexEntry{{Key: "team", Val: team}},
				}}})
				return err
			})
		}
		w.want("2 +red")
	})
}

// A manager that hears of no leader ends its streams, so that clients go on with another; one
// that reads locally stays.
func TestWatchEndsWithoutALeader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t, watchapi.Config{})
		w, sw := f.watch(), f.swarm(entries(entry("service", swarmAll)))
		w.create(nil)
		w.want("1@0 created", "1@0 synced")
		sw.want("0")
		local := f.localWatch()
		local.create(nil)
		local.want("1@0 created", "1@0 synced")
		time.Sleep(time.Minute)
		f.leader.Store(false)
		_, err := w.stream.Recv()
		wantEnd(t, err, errkind.NoLeader, "no leader for 5s")
		_, err = sw.stream.Recv()
		wantEnd(t, err, errkind.NoLeader, "no leader for 5s")
		time.Sleep(time.Minute)
		f.put("service a")
		local.want("1@1 events +a")
	})
}

// A client that asks for no more still gets what it asked for.
func TestHalfClosedStreamGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t, watchapi.Config{})
		w := f.watch()
		w.create(nil)
		if err := w.stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		w.want("1@0 created", "1@0 synced")
		f.put("service a")
		w.want("1@1 events +a")
	})
}

func TestNoMoreStreamsAndWatchersThanThereMayBe(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t, watchapi.Config{MaxStreams: 2, MaxAll: 3})
		a, b := f.watch(), f.watch()
		for range 2 {
			a.create(nil)
		}
		a.want("1@0 created", "1@0 synced", "2@0 created", "2@0 synced")
		b.create(nil)
		b.create(nil)
		b.want("1@0 created", "1@0 synced", "0@0 canceled LIMIT: this manager has 3 watchers, and takes no more")
		_, err := f.watch().stream.Recv()
		wantEnd(t, err, errkind.Limit, "this manager has 2 streams that watch, and takes no more")
		a.cancel()
		time.Sleep(time.Second)
		b.create(nil)
		c := f.watch()
		c.create(nil)
		b.want("2@0 created", "2@0 synced")
		c.want("1@0 created", "1@0 synced")
	})
}

// Events of one revision come in one message, or in fragments if the client takes them.
func TestFragments(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t, watchapi.Config{FragmentBytes: 150, MessageBytes: 500})
		w := f.watch()
		w.create(&holdfastCreate{Fragment: true})
		w.create(nil)
		w.want("1@0 created", "1@0 synced", "2@0 created", "2@0 synced")
		names := []string{"service a", "service b", "service c", "service d", "service e"}
		f.put(names...)
		w.want("1@1 events +a +b …", "1@1 events +c +d …", "1@1 events +e", "2@1 events +a +b +c +d +e")
		for _, more := range []string{"f", "g", "h", "i"} {
			names = append(names, "service "+more)
		}
		for i := range names {
			names[i] += " x=1"
		}
		f.put(names...)
		w.want("1@2 events ~a[x=1] ~b[x=1] …", "1@2 events ~c[x=1] ~d[x=1] …", "1@2 events ~e[x=1] +f[x=1] …",
			"1@2 events +g[x=1] +h[x=1] …", "1@2 events +i[x=1]",
			"2@1 canceled LIMIT: create.fragment: the events of revision 2 have 603 bytes, too much for one message")
	})
}
