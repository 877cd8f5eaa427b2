package objectapi_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/objectapi"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

// differences gives what differs as text: kind, name, action and fields.
func differences(all []*holdfast.ObjectDiff) []string {
	var out []string
	for _, d := range all {
		s := fmt.Sprintf("%s %s %s", strings.ToLower(strings.TrimPrefix(d.Kind.String(), "KIND_")), d.Name,
			strings.ToLower(strings.TrimPrefix(d.Action.String(), "ACTION_")))
		for _, f := range d.Fields {
			if strings.HasPrefix(f.Path, "spec.") {
				s += fmt.Sprintf(" %s:%s>%s", f.Path, f.Old, f.New)
			}
		}
		out = append(out, s)
	}
	return out
}

func (f *fixture) diff(r *holdfast.DiffRequest) *holdfast.DiffResponse {
	f.t.Helper()
	resp, err := f.Diff(f.t.Context(), r)
	if err != nil {
		f.t.Fatalf("%v: %v", r, err)
	}
	return resp
}

// set replaces the labels of a service, though its spec knows nothing but them.
func (f *fixture) set(id, value string) {
	f.t.Helper()
	if _, err := f.store.Update(f.t.Context(), func(tx *store.Tx) error {
		s := store.Services.Get(tx, id).Copy()
		s.Spec.Annotations.Labels = nil
		if value != "" {
			s.Spec.Annotations.Labels = map[string]string{"l": value}
		}
		_, err := store.Services.Update(tx, s)
		return err
	}); err != nil {
		f.t.Fatal(err)
	}
}

// changes is a store in which all that can happen to an object happens.
func changes(t testing.TB) (f *fixture, s *storetest.Script) {
	f, s = newLog(t)
	var services []string
	for _, o := range f.txn(create(service("a")), create(service("b")), create(service("c")), create(service("d"))).Objects { // 1
		services = append(services, o.GetService().ID)
	}
	f.set(services[0], "1")                                            // 2
	f.set(services[0], "")                                             // 3, as it was
	f.set(services[1], "1")                                            // 4
	f.set(services[1], "2")                                            // 5
	passing := f.txn(create(network("passing"))).Objects[0]            // 6
	f.txn(remove(holdfast.Kind_KIND_NETWORK, passing.GetNetwork().ID)) // 7
	f.txn(remove(holdfast.Kind_KIND_SERVICE, services[2]))             // 8
	f.txn(remove(holdfast.Kind_KIND_SERVICE, services[3]))             // 9
	back := service("d")                                               //
	back.ID = services[3]                                              //
	back.Spec.Task.GetContainer().Image = "busybox:2"                  //
	f.txn(create(back), create(network("net")), create(service("e")))  // 10
	return f, s
}

func TestDiff(t *testing.T) {
	f, s := changes(t)
	type request = holdfast.DiffRequest
	services, networks := holdfast.Kind_KIND_SERVICE, holdfast.Kind_KIND_NETWORK
	const label, image = " spec.annotations.labels[l]", " spec.task.container.image"
	everything := []string{
		"service b update" + label + `:>"2"`, "service c remove", "service d update" + image + `:"busybox:1">"busybox:2"`,
		"service e create", "network net create",
	}
	d := everything[2]
	for name, c := range map[string]struct {
		r        request
		from, to uint64 // in the reply
		want     []string
	}{
		"everything":                          {request{From: 1}, 1, 10, everything},
		"the other way":                       {request{From: 10, To: 1}, 10, 1, []string{"service b update" + label + `:"2">`, "service c create", "service d update" + image + `:"busybox:2">"busybox:1"`, "service e remove", "network net remove"}},
		"of a kind":                           {request{From: 1, Kind: networks}, 1, 10, everything[4:]},
		"nothing between":                     {request{From: 4, To: 4}, 4, 4, nil},
		"changed and changed back":            {request{From: 1, To: 3}, 1, 3, nil},
		"created and removed":                 {request{From: 5, To: 7}, 5, 7, nil},
		"a change that is undone later":       {request{From: 1, To: 2}, 1, 2, []string{"service a update" + label + `:>"1"`}},
		"removed and not yet there again":     {request{From: 8, To: 9}, 8, 9, []string{"service d remove"}},
		"from nothing":                        {request{}, 0, 10, []string{"service a create", "service b create", "service d create", "service e create", "network net create"}},
		"a kind from nothing":                 {request{To: 7, Kind: services}, 0, 7, []string{"service a create", "service b create", "service c create", "service d create"}},
		"one by name":                         {request{From: 1, Kind: services, Name: "D"}, 1, 10, []string{d}},
		"one by a name that is gone":          {request{From: 1, Kind: services, Name: "c"}, 1, 10, []string{"service c remove"}},
		"one, the other way":                  {request{From: 10, To: 1, Kind: services, Name: "c"}, 10, 1, []string{"service c create"}},
		"one that is the same":                {request{From: 1, Kind: services, Name: "a"}, 1, 10, nil},
		"one that did not change":             {request{From: 5, To: 6, Kind: services, Name: "b"}, 5, 6, nil},
		"one that came and went":              {request{From: 5, To: 8, Kind: networks, Name: "passing"}, 5, 8, nil},
		"the last change of one":              {request{Kind: services, Name: "b"}, 4, 10, []string{"service b update" + label + `:"1">"2"`}},
		"the last change up to then":          {request{To: 4, Kind: services, Name: "b"}, 3, 4, []string{"service b update" + label + `:>"1"`}},
		"the last change was the first":       {request{Kind: services, Name: "e"}, 9, 10, []string{"service e create"}},
		"the last change was to remove it":    {request{Kind: services, Name: "c"}, 7, 10, []string{"service c remove"}},
		"the last change was to make it anew": {request{Kind: services, Name: "d"}, 9, 10, []string{"service d create"}},
	} {
		t.Run(name, func(t *testing.T) {
			resp := f.diff(&c.r)
			if got := differences(resp.Objects); !slices.Equal(got, c.want) || resp.From != c.from || resp.To != c.to ||
				resp.Remaining != 0 || resp.Continue != "" {
				t.Errorf("from %d to %d: %s\nwant from %d to %d\n%s", resp.From, resp.To, strings.Join(got, "\n"), c.from, c.to,
					strings.Join(c.want, "\n"))
			}
			for _, d := range resp.Objects {
				if d.ID == "" || (d.Action == holdfast.Action_ACTION_UPDATE) != (len(d.Fields) > 0) {
					t.Errorf("%v", d)
				}
				for _, field := range d.Fields {
					if strings.HasPrefix(field.Path, "meta") {
						t.Errorf("it tells the meta: %v", field)
					}
				}
			}
			if c.r.Name == "" {
				return
			}
			byID := c.r // an object is the same by its ID
			byID.Name, byID.ID = "", idOf(t, f, c.r.Kind, c.r.Name)
			if again := f.diff(&byID); !again.Equal(resp) {
				t.Errorf("by ID: %v", again)
			}
		})
	}
	// The read header: the present revision is the one that was asked for.
	resp, err := f.at(5).Diff(t.Context(), &request{From: 4})
	if err != nil || resp.To != 5 || len(resp.Objects) != 1 {
		t.Errorf("at 5: %v, %v", resp, err)
	}
	compact(t, s, 10)
	if resp := f.diff(&request{}); len(resp.Objects) != 5 { // the empty store is known
		t.Errorf("%v", resp)
	}
}

// idOf returns the ID of the object that had a name last.
func idOf(t *testing.T, f *fixture, kind holdfast.Kind, name string) string {
	t.Helper()
	resp := f.history(f.Server, &holdfast.HistoryRequest{Kind: kind, Name: name})
	data := resp.Versions[len(resp.Versions)-1].Object
	if kind == holdfast.Kind_KIND_NETWORK {
		return data.GetNetwork().ID
	}
	return data.GetService().ID
}

func TestDiffPages(t *testing.T) {
	f, s := changes(t)
	for _, r := range []holdfast.DiffRequest{
		{From: 1}, {From: 10, To: 1}, {}, {To: 7}, {From: 1, Kind: holdfast.Kind_KIND_SERVICE}, {Kind: holdfast.Kind_KIND_SERVICE},
	} {
		then := f.at(10)
		whole, err := then.Diff(t.Context(), &r)
		if err != nil {
			t.Fatal(err)
		}
		for limit := uint32(1); limit < 7; limit++ {
			r := r
			r.Limit = limit
			var got []*holdfast.ObjectDiff
			for {
				resp, err := then.Diff(t.Context(), &r)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, resp.Objects...)
				if len(resp.Objects) > int(limit) || resp.Remaining != uint64(len(whole.Objects)-len(got)) ||
					resp.From != whole.From || resp.To != whole.To || (resp.Continue == "") != (resp.Remaining == 0) {
					t.Fatalf("%v: %v, of %v", r, resp, whole)
				}
				if r.Continue = resp.Continue; r.Continue == "" {
					break
				}
				f.txn(create(service(fmt.Sprint("s", f.store.Root().Revision()))))
			}
			if !slices.EqualFunc(got, whole.Objects, func(a, b *holdfast.ObjectDiff) bool { return a.Equal(b) }) {
				t.Errorf("%v: %s\nwant %s", r, differences(got), differences(whole.Objects))
			}
		}
	}
	f.SetPageBytes(100)
	if resp := f.diff(&holdfast.DiffRequest{From: 1, To: 10}); len(resp.Objects) >= 5 || len(resp.Objects)+int(resp.Remaining) != 5 {
		t.Errorf("a page of %d bytes, remaining %d", resp.Size(), resp.Remaining)
	}
	// A manager that is behind waits; what was compacted meanwhile cannot be gone on with.
	r := &holdfast.DiffRequest{From: 1, To: 10, Limit: 1}
	r.Continue = f.diff(r).Continue
	b := &behind{MemoryStore: f.store}
	if resp, err := objectapi.New(b, b, files(t)).Diff(t.Context(), r); err != nil || len(resp.Objects) != 1 {
		t.Errorf("behind: %v, %v", resp, err)
	}
	_, err := f.Diff(t.Context(), &holdfast.DiffRequest{From: 2, To: 10, Continue: r.Continue})
	wantError(t, err, errkind.Invalid, "continue", "revision 1 with 10")
	compact(t, s, 2)
	_, err = f.Diff(t.Context(), r)
	wantError(t, err, errkind.OutOfRange, "", "compacted")
}

func TestDiffFails(t *testing.T) {
	f, s := changes(t)
	if _, err := f.store.Update(t.Context(), func(tx *store.Tx) error { // 11
		for _, id := range []string{"n1", "n2"} {
			if _, err := store.Nodes.Create(tx, &api.Node{ID: id, Description: &api.NodeDescription{Hostname: "host"}}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	compact(t, s, 5)
	type request = holdfast.DiffRequest
	services := holdfast.Kind_KIND_SERVICE
	list, err := f.List(t.Context(), &holdfast.ListRequest{Kind: services, Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		r           request
		kind        errkind.Kind
		field, text string
		now         uint64
	}{
		"from is compacted":             {request{From: 4}, errkind.OutOfRange, "", "compacted", 5},
		"to is compacted":               {request{From: 6, To: 4}, errkind.OutOfRange, "", "compacted", 5},
		"to is compacted, from nothing": {request{To: 4}, errkind.OutOfRange, "", "compacted", 5},
		"from is to come":               {request{From: 12}, errkind.OutOfRange, "", "future revision", 11},
		"to is to come":                 {request{From: 6, To: 12}, errkind.OutOfRange, "", "future revision", 11},
		"the last change is compacted":  {request{Kind: services, Name: "a"}, errkind.OutOfRange, "", "compacted", 5},
		"it is compacted, up to then":   {request{Kind: services, Name: "d", To: 7}, errkind.OutOfRange, "", "service d: compacted", 5},
		"no kind":                       {request{ID: "x"}, errkind.Invalid, "kind", "is empty", 0},
		"an unknown kind":               {request{Kind: 88}, errkind.Invalid, "kind", "88", 0},
		"ID and name":                   {request{Kind: services, ID: "x", Name: "y"}, errkind.Invalid, "name", "id is too", 0},
		"nobody":                        {request{From: 6, Kind: services, Name: "nobody"}, errkind.NotFound, "", "service nobody", 0},
		"nobody with the ID":            {request{From: 6, Kind: services, ID: "nobody"}, errkind.NotFound, "", "service nobody", 0},
		"nobody's last change":          {request{Kind: services, ID: "nobody"}, errkind.NotFound, "", "service nobody", 0},
		"gone before":                   {request{From: 9, Kind: services, ID: idOf(t, f, services, "c")}, errkind.NotFound, "", "not found", 0},
		"ambiguous":                     {request{From: 6, Kind: holdfast.Kind_KIND_NODE, Name: "host"}, errkind.Invalid, "name", "n1, n2", 0},
		"no token":                      {request{From: 6, Continue: "x"}, errkind.Invalid, "continue", "not a token", 0},
		"a token of a list":             {request{From: 6, Continue: list.Continue}, errkind.Invalid, "continue", "not a token", 0},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.Diff(t.Context(), &c.r)
			wantError(t, err, c.kind, c.field, c.text)
			if e, _ := errors.AsType[*errkind.Error](err); e.Now != c.now || c.kind == errkind.OutOfRange && e.Hint == "" {
				t.Errorf("%+v", e)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Diff(ctx, &request{From: 6}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}
