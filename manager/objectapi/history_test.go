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
	"holdfast/manager/objects"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

// newLog is a server over a store that a test can compact.
func newLog(t testing.TB) (*fixture, *storetest.Script) {
	s := storetest.NewLeader(t, "m", store.Options{}).Auto(true)
	return &fixture{objectapi.New(s.Store, reader{s.Store}, files(t)), t, s.Store}, s
}

func compact(t testing.TB, s *storetest.Script, to uint64) {
	t.Helper()
	if _, err := s.Store.Compact(t.Context(), to); err != nil {
		t.Fatal(err)
	}
}

// as does operations in somebody's name.
func (f *fixture) as(caller, message string, operations ...*holdfast.Operation) *holdfast.TxnResponse {
	f.t.Helper()
	ctx := state.WithRequest(f.t.Context(), state.Request{Caller: caller, Message: message})
	resp, err := f.Txn(ctx, &holdfast.TxnRequest{Operations: operations})
	if err != nil {
		f.t.Fatal(err)
	}
	return resp
}

// told gives versions as text: revision, action, name, who and why, and paths.
func told(versions []*holdfast.Version) []string {
	var out []string
	for _, v := range versions {
		action := strings.ToLower(strings.TrimPrefix(v.Action.String(), "ACTION_"))
		s := fmt.Sprintf("%d %s %s", v.Revision, action, nameOf(v.Object))
		if v.Actor != "" || v.Message != "" {
			s += fmt.Sprintf(" by %s: %s", v.Actor, v.Message)
		}
		if v.Compacted {
			s += " compacted"
		}
		for _, f := range v.Fields {
			s += " " + f.Path
		}
		out = append(out, s)
	}
	return out
}

func nameOf(o *holdfast.Object) string {
	switch o := objects.Unwrap(o).(type) {
	case *api.Service:
		return o.Spec.Annotations.Name
	case *api.Network:
		return o.Spec.Annotations.Name
	case *api.Secret:
		return o.Spec.Annotations.Name
	case *api.Node:
		return o.Description.Hostname
	}
	return "?"
}

func (f *fixture) history(s *objectapi.Server, r *holdfast.HistoryRequest) *holdfast.HistoryResponse {
	f.t.Helper()
	resp, err := s.History(f.t.Context(), r)
	if err != nil {
		f.t.Fatalf("%v: %v", r, err)
	}
	return resp
}

// labelled returns a copy of a service with a label.
func labelled(o *holdfast.Object, value string) *api.Service {
	s := o.GetService().Copy()
	s.Spec.Annotations.Labels = map[string]string{"l": value}
	return s
}

// rename gives a service another name, which the rules of package objects do not allow: those of
// a later version may, and nodes are renamed by their hosts.
func (f *fixture) rename(caller, message string, o *holdfast.Object, name string) *holdfast.Object {
	f.t.Helper()
	ctx := state.WithRequest(f.t.Context(), state.Request{Caller: caller, Message: message})
	var now *api.Service
	if _, err := f.store.Update(ctx, func(tx *store.Tx) error {
		s := o.GetService().Copy()
		s.Spec.Annotations.Name = name
		var err error
		now, err = store.Services.Update(tx, s)
		return err
	}); err != nil {
		f.t.Fatal(err)
	}
	return objects.Wrap(now)
}

// lives is a store in which a service changes, goes and comes back: under its ID, and another one
// under its name.
func lives(t testing.TB) (f *fixture, s *storetest.Script, first, second string) {
	f, s = newLog(t)
	web := f.as("anna", "begin", create(service("web"))).Objects[0]       // 1
	web = f.as("ben", "label", updateSpec(labelled(web, "1"))).Objects[0] // 2
	f.as("ben", "other", create(service("other")))                        // 3
	web = f.rename("anna", "rename", web, "Web2")                         // 4
	f.rename("anna", "back", web, "web")                                  // 5
	first = web.GetService().ID
	f.as("ben", "away", remove(holdfast.Kind_KIND_SERVICE, first), create(service("unrelated"))) // 6
	again := service("WEB")
	again.ID = first
	web = f.as("cleo", "the same ID", create(again)).Objects[0]                                   // 7
	f.rename("cleo", "give the name up", web, "api")                                              // 8
	second = f.as("dan", "take the name", create(service("web"))).Objects[0].GetService().ID      // 9
	f.as("dan", "last", updateSpec(labelled(f.service(first), "2")), create(network("last")))     // 10
	f.as("dan", "no more", remove(holdfast.Kind_KIND_SERVICE, second), create(network("unseen"))) // 11
	return f, s, first, second
}

func (f *fixture) service(id string) *holdfast.Object {
	return objects.Wrap(store.Services.Get(f.store.Root(), id))
}

func TestHistory(t *testing.T) {
	f, s, first, second := lives(t)
	label, name := " spec.annotations.labels[l]", " spec.annotations.name"
	byID := []string{
		"1 create web by anna: begin", "2 update web by ben: label", "4 update Web2 by anna: rename",
		"5 update web by anna: back", "6 remove web by ben: away", "7 create WEB by cleo: the same ID",
		"8 update api by cleo: give the name up", "10 update api by dan: last",
	}
	both := slices.Insert(slices.Clone(byID), 7, "9 create web by dan: take the name")
	both = append(both, "11 remove web by dan: no more")
	type request = holdfast.HistoryRequest
	for _, c := range []struct {
		name string
		r    request
		at   uint64
		want []string
	}{
		{"by ID", request{ID: first}, 11, byID},
		{"by name, without case", request{Name: "wEb"}, 11, both},
		{"by a name that it had for a while", request{Name: "web2"}, 11, byID},
		{"of another that is gone", request{ID: second}, 11, []string{both[7], both[9]}},
		{"of the past", request{ID: first}, 5, byID[:4]},
		{"by name, of the past", request{Name: "web"}, 9, both[:8]},
		{"when it was gone", request{ID: first}, 6, byID[:5]},
	} {
		for _, newest := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, newest), func(t *testing.T) {
				c.r.Kind, c.r.NewestFirst = holdfast.Kind_KIND_SERVICE, newest
				resp := f.history(f.at(c.at), &c.r)
				want := slices.Clone(c.want)
				if newest {
					slices.Reverse(want)
				}
				if got := told(resp.Versions); !slices.Equal(got, want) || resp.Revision != c.at || resp.Floor != 0 || resp.Continue != "" {
					t.Errorf("of %d: %s\nwant\n%s", resp.Revision, strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
				for _, v := range resp.Versions { // each is as it was, or as it was before it went
					revision := v.Revision
					if v.Action == holdfast.Action_ACTION_REMOVE {
						revision--
					}
					tx, err := f.store.At(revision)
					if err != nil {
						t.Fatal(err)
					}
					was := store.Services.Get(tx, v.Object.GetService().ID)
					log, _ := store.LogOf(f.store.Root())
					entry, _ := log.Get(v.Revision)
					if !was.Equal(v.Object.GetService()) || v.At.Seconds != entry.At.Unix() || int(v.At.Nanos) != entry.At.Nanosecond() {
						t.Errorf("at %d it was %v, told is %v", revision, was, v)
					}
				}
			})
		}
	}
	fields := f.history(f.Server, &request{Kind: holdfast.Kind_KIND_SERVICE, ID: first, Fields: true})
	for i, want := range []string{"", label, name, name, "", "", name, label} {
		if got := told(fields.Versions)[i]; !strings.HasPrefix(got, byID[i]) || !strings.Contains(got, want) || want == "" && got != byID[i] {
			t.Errorf("%q, want %q", got, byID[i]+want)
		}
	}
	compact(t, s, 4)
	for _, c := range []struct {
		r    request
		want []string
	}{
		{request{ID: first}, append([]string{"4 update Web2 compacted"}, byID[3:]...)},
		{request{Name: "web"}, append([]string{"4 update Web2 compacted"}, both[3:]...)},
		{request{Name: "web2"}, append([]string{"4 update Web2 compacted"}, byID[3:]...)},
		{request{Name: "other", Fields: true}, []string{"3 create other compacted"}},
	} {
		c.r.Kind = holdfast.Kind_KIND_SERVICE
		resp := f.history(f.Server, &c.r)
		if got := told(resp.Versions); !slices.Equal(got, c.want) || resp.Floor != 4 {
			t.Errorf("above the floor %d: %s\nwant\n%s", resp.Floor, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
		v := resp.Versions[0]
		if v.At == nil || !v.At.Equal(v.Object.GetService().Meta.UpdatedAt) {
			t.Errorf("at %v", v.At)
		}
	}
	compact(t, s, 0)
	for _, r := range []request{{ID: second}, {Name: "web"}, {Name: "web2"}, {ID: "nobody"}} {
		r.Kind = holdfast.Kind_KIND_SERVICE
		_, err := f.History(t.Context(), &r)
		wantError(t, err, errkind.NotFound, "", "floor")
	}
}

// With pages of any size, either way, it is what one page would have, whatever is written between.
func TestHistoryPages(t *testing.T) {
	f, _, first, _ := lives(t)
	for _, r := range []holdfast.HistoryRequest{{ID: first}, {Name: "web"}, {Name: "web", NewestFirst: true, Fields: true}} {
		r.Kind = holdfast.Kind_KIND_SERVICE
		whole := f.history(f.Server, &r)
		then := f.at(whole.Revision)
		for limit := uint32(1); limit < 12; limit++ {
			r := r
			r.Limit = limit
			var got []*holdfast.Version
			for {
				resp := f.history(then, &r)
				got = append(got, resp.Versions...)
				if len(resp.Versions) > int(limit) || resp.Revision != whole.Revision || resp.Floor != whole.Floor {
					t.Fatalf("%v: %v", r, resp)
				}
				if r.Continue = resp.Continue; r.Continue == "" {
					break
				}
				f.txn(updateSpec(labelled(f.service(first), fmt.Sprint(limit, len(got)))))
			}
			if !slices.EqualFunc(got, whole.Versions, func(a, b *holdfast.Version) bool { return a.Equal(b) }) {
				t.Errorf("%v: %s\nwant\n%s", r, told(got), told(whole.Versions))
			}
		}
	}
	// Pages are cut by bytes too.
	big := f.txn(create(service("big"))).Objects[0]
	for i := range 20 {
		big = f.txn(updateSpec(labelled(big, strings.Repeat(fmt.Sprint(i%10), 900)))).Objects[0]
	}
	f.SetPageBytes(8 << 10)
	pages, total := 0, 0
	r := &holdfast.HistoryRequest{Kind: holdfast.Kind_KIND_SERVICE, Name: "big", Fields: true}
	for {
		resp := f.history(f.Server, r)
		if resp.Size() > 9<<10 {
			t.Errorf("a page of %d bytes", resp.Size())
		}
		total += len(resp.Versions)
		pages++
		if r.Continue = resp.Continue; r.Continue == "" {
			break
		}
	}
	if pages < 5 || total != 21 {
		t.Errorf("%d pages, %d versions", pages, total)
	}
}

// A page that would leave out what was compacted meanwhile says so; what is whole goes on.
func TestHistoryPagesAndCompaction(t *testing.T) {
	for name, c := range map[string]struct {
		r       holdfast.HistoryRequest
		compact uint64
		want    string // of the rest; empty: it cannot go on
	}{
		"oldest first, behind":      {holdfast.HistoryRequest{Name: "web", Limit: 5}, 5, "7 8 9 10 11"},
		"oldest first, up to there": {holdfast.HistoryRequest{Name: "web", Limit: 5}, 6, "7 8 9 10 11"},
		"oldest first, too far":     {holdfast.HistoryRequest{Name: "web", Limit: 5}, 7, ""},
		"newest first, behind":      {holdfast.HistoryRequest{Name: "web", Limit: 5, NewestFirst: true}, 4, "6 5 4c"},
		"newest first, too far":     {holdfast.HistoryRequest{Name: "web", Limit: 5, NewestFirst: true}, 7, ""},
		// The object is not known to have had the name any more.
		"newest first, the name is lost": {holdfast.HistoryRequest{Name: "web2", Limit: 1, NewestFirst: true}, 6, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f, s, _, _ := lives(t)
			c.r.Kind = holdfast.Kind_KIND_SERVICE
			c.r.Continue = f.history(f.Server, &c.r).Continue
			compact(t, s, c.compact)
			c.r.Limit = 0
			resp, err := f.History(t.Context(), &c.r)
			if c.want == "" {
				wantError(t, err, errkind.OutOfRange, "", "compacted")
				if e, _ := errors.AsType[*errkind.Error](err); e.Now != c.compact {
					t.Errorf("it tells the floor %d", e.Now)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, v := range resp.Versions {
				got = append(got, fmt.Sprint(v.Revision)+map[bool]string{true: "c"}[v.Compacted])
			}
			if strings.Join(got, " ") != c.want || resp.Floor != c.compact {
				t.Errorf("%v, floor %d, want %s", got, resp.Floor, c.want)
			}
		})
	}
}

// A manager that has compacted less goes on as the one that made the token.
func TestHistoryGoesOnWhereLessIsCompacted(t *testing.T) {
	f, s, first, _ := lives(t)
	other := storetest.NewScript(t, "f", store.Options{})
	other.Feed(s.Log()...)
	compact(t, s, 5)
	for _, newest := range []bool{false, true} {
		r := &holdfast.HistoryRequest{Kind: holdfast.Kind_KIND_SERVICE, Name: "web", NewestFirst: newest}
		whole := f.history(f.Server, r)
		r.Limit = 2
		page := f.history(f.Server, r)
		r.Continue, r.Limit = page.Continue, 0
		behind := objectapi.New(other.Store, reader{other.Store}, files(t))
		rest := f.history(behind, r)
		if got := append(page.Versions, rest.Versions...); !slices.Equal(told(got), told(whole.Versions)) || rest.Floor != 5 {
			t.Errorf("floor %d, %s: %s\nwant %s", rest.Floor, first, told(got), told(whole.Versions))
		}
	}
}

func TestHistoryFails(t *testing.T) {
	f, _, first, _ := lives(t)
	if _, err := f.store.Update(t.Context(), func(tx *store.Tx) error {
		for _, id := range []string{"n1", "n2"} {
			if _, err := store.Nodes.Create(tx, &api.Node{ID: id, Description: &api.NodeDescription{Hostname: "host"}}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	type request = holdfast.HistoryRequest
	diffs, err := f.Diff(t.Context(), &holdfast.DiffRequest{From: 1, Limit: 1})
	if err != nil || diffs.Continue == "" {
		t.Fatalf("%v, %v", diffs, err)
	}
	services := holdfast.Kind_KIND_SERVICE
	for _, c := range []struct {
		name  string
		r     request
		kind  errkind.Kind
		field string
		text  string
	}{
		{"no kind", request{ID: "x"}, errkind.Invalid, "kind", "is empty"},
		{"neither", request{Kind: services}, errkind.Invalid, "id", "is empty"},
		{"both", request{Kind: services, ID: "x", Name: "y"}, errkind.Invalid, "name", "id is too"},
		{"another kind's", request{Kind: holdfast.Kind_KIND_TASK, ID: first}, errkind.NotFound, "", "task " + first},
		{"nobody", request{Kind: services, Name: "nobody"}, errkind.NotFound, "", "service nobody"},
		{"ambiguous", request{Kind: holdfast.Kind_KIND_NODE, Name: "HOST"}, errkind.Invalid, "name", "n1, n2"},
		{"no token", request{Kind: services, ID: first, Continue: "x"}, errkind.Invalid, "continue", "not a token"},
		{"a token of a diff", request{Kind: services, ID: first, Continue: diffs.Continue}, errkind.Invalid, "continue", "not a token"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := f.History(t.Context(), &c.r)
			wantError(t, err, c.kind, c.field, c.text)
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.History(ctx, &request{Kind: services, ID: first}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	// One of them goes: the name is that of the other, and of both.
	if _, err := f.store.Update(t.Context(), func(tx *store.Tx) error {
		_, err := store.Nodes.Delete(tx, "n1")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	resp := f.history(f.Server, &request{Kind: holdfast.Kind_KIND_NODE, Name: "host"})
	if got := told(resp.Versions); !slices.Equal(got, []string{"12 create host", "12 create host", "13 remove host"}) {
		t.Errorf("%q", got)
	}
}
