package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

// busy is a member with objects of all kinds, a moved floor, requests that were forgotten,
// members and removed ones.
func busy(t *testing.T, o store.Options) *scribe {
	o.MaxLog, o.MaxRequests = 12, 4
	w := newScribe(t, storetest.NewLeader(t, "m", o))
	if _, err := w.Store.Update(t.Context(), func(tx *store.Tx) error {
		for _, k := range allKinds() {
			if _, err := k.create(tx, k.fresh("of "+k.kind.String())); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	w.was[1] = content(t, w.Store.Root())
	w.write(t, 15)
	for i := range 7 {
		ctx := requested(t.Context(), requestID(w.Store.Root().Revision(), i), byte(i))
		if _, err := w.Store.Update(ctx, creating(fmt.Sprint("requested", i))); err != nil {
			t.Fatal(err)
		}
		w.was[w.Store.Root().Revision()] = content(t, w.Store.Root())
	}
	for i, change := range []state.ChangeType{state.AddVoter, state.AddLearner, state.AddVoter, state.RemovePeer} {
		w.Feed(state.Committed{
			Index: w.Store.Applied().Index + 1, Term: 1, Change: change,
			Peer: holdfast.Peer{RaftID: uint64(i%3 + 1), Addr: fmt.Sprint("host", i), NodeID: "n", Hostname: "h"},
		})
	}
	return w
}

// What is saved comes back whole: objects at every revision, log, requests, members and what
// the next transaction is made from.
func TestSaveAndRestore(t *testing.T) {
	w := busy(t, store.Options{})
	saved := storetest.Save(t, w.Store.Image())
	r := storetest.NewScript(t, "r", store.Options{MaxLog: 12, MaxRequests: 4})
	create(t, storetest.NewLeader(t, "x", store.Options{}).Auto(true).Store, "unrelated")
	r.Restore(saved)
	same(t, "saved again", w.Store, r.Store)
	a, b := w.Store.Applied(), r.Store.Applied()
	if fmt.Sprint(a) != fmt.Sprint(b) || len(a.Peers) != 2 || len(a.Removed) != 1 || fmt.Sprint(w.Store.Image().Applied()) != fmt.Sprint(a) {
		t.Errorf("applied %+v, and %+v", a, b)
	}
	if x, y := w.Store.Status(), r.Store.Status(); fmt.Sprint(x) != fmt.Sprint(y) || x.Floor == 0 || x.Requests != 4 {
		t.Errorf("status %+v, and %+v", x, y)
	}
	w.reads(t, r.Store, 40)
	storetest.CheckImmutable(t, r.Store)
	// Both go on alike.
	log := len(w.Log())
	w.write(t, 20)
	r.Feed(w.Log()[log:]...)
	same(t, "after more writes", w.Store, r.Store)
	w.reads(t, r.Store, 40)
}

// An empty store can be saved and restored too.
func TestSaveAndRestoreNothing(t *testing.T) {
	s := storetest.NewLeader(t, "m", store.Options{})
	r := storetest.NewScript(t, "r", store.Options{})
	r.Restore(storetest.Save(t, s.Store.Image()))
	same(t, "nothing", s.Store, r.Store)
	r.Elect(2)
	create(t, r.Auto(true).Store, "a")
}

// An image is of one moment, however much is written while it is saved.
func TestImageStays(t *testing.T) {
	w := busy(t, store.Options{})
	image := w.Store.Image()
	before := storetest.Save(t, image)
	w.write(t, 30)
	if diff := before.Diff(storetest.Save(t, image)); diff != "" {
		t.Errorf("the image has changed: %s", diff)
	}
}

// A restore tells what waits how it came out, as far as the snapshot's log tells, and before
// that the state in which it is.
func TestRestoreSettlesWhatWaits(t *testing.T) {
	for name, c := range map[string]struct {
		others []string // that another leader commits; "" is what the member itself proposed
		maxLog int
		term   uint64 // of that leader
		want   errkind.Kind
		stays  bool
	}{
		"found in the log":       {others: []string{"", "x"}, term: 2, want: -1},
		"another has its place":  {others: []string{"x", "y"}, term: 2, want: errkind.NoLeader},
		"below the floor":        {others: []string{"x", "y", "z"}, maxLog: 1, term: 2, want: errkind.UnknownOutcome},
		"found below the floor":  {others: []string{"", "y", "z"}, maxLog: 1, term: 2, want: errkind.UnknownOutcome},
		"a higher term is there": {others: nil, term: 2, want: errkind.NoLeader},
		"nothing tells":          {others: nil, term: 1, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := storetest.NewLeader(t, "m", store.Options{})
				other := storetest.NewScript(t, "o", store.Options{MaxLog: c.maxLog})
				other.Feed(m.Log()...)
				a := begin(t.Context(), m, creating("a"))
				data := m.Take()
				m.Store.Lost(1)
				for _, name := range c.others {
					if name == "" {
						other.Apply(1, data)
						continue
					}
					if other.Store.Applied().Term < c.term {
						other.Elect(c.term)
					}
					begin(t.Context(), other, creating(name))
					other.Commit()
				}
				if len(c.others) == 0 {
					other.Apply(c.term, nil)
				}
				m.Restore(storetest.Save(t, other.Store.Image()))
				switch {
				case c.stays:
					a.waits(t, "a")
					m.Apply(1, data)
					a.committed(t, "a", 1)
				case c.want < 0:
					a.committed(t, "a", 1)
				default:
					a.failed(t, "a", c.want)
				}
				if st := m.Store.Status(); st.Pending != 0 || st.PendingBytes != 0 {
					t.Errorf("%+v", st)
				}
				if !c.stays {
					same(t, "both", m.Store, other.Store)
				}
				m.Elect(5)
				b := begin(t.Context(), m, creating("b"))
				m.Commit()
				b.committed(t, "b", m.Store.Root().Revision())
			})
		})
	}
}

// Several that wait are settled each for itself; those that stay are committed in their turn.
func TestRestoreSettlesSome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.NewLeader(t, "m", store.Options{})
		other := storetest.NewScript(t, "o", store.Options{})
		other.Feed(m.Log()...)
		a := begin(t.Context(), m, creating("a"))
		first := m.Take()
		b := begin(t.Context(), m, creating("b"))
		c := begin(t.Context(), m, creating("c"))
		second := m.Take()
		m.Store.Lost(1)
		other.Apply(1, first)
		m.Restore(storetest.Save(t, other.Store.Image()))
		a.committed(t, "a", 1)
		b.waits(t, "b")
		m.Apply(1, second)
		b.committed(t, "b", 2)
		c.committed(t, "c", 3)
		other.Apply(1, second)
		same(t, "both", m.Store, other.Store)
	})
}

// Who hears that a write is committed must be able to read it, also after a restore.
func TestRestoreShowsBeforeItTells(t *testing.T) {
	m := storetest.NewLeader(t, "m", store.Options{})
	other := storetest.NewScript(t, "o", store.Options{})
	other.Feed(m.Log()...)
	var sees uint64
	told := make(chan error, 1)
	go func() {
		_, err := m.Store.Update(t.Context(), creating("a"))
		sees = m.Store.Root().Revision()
		told <- err
	}()
	for m.Store.Status().Pending == 0 { // until it waits
	}
	other.Apply(1, m.Take())
	snapshot := storetest.Save(t, other.Store.Image())
	release := store.HoldPublishing(m.Store)
	restored := make(chan error, 1)
	go func() { restored <- m.Store.Restore(snapshot.Reader()) }()
	for len(told) == 0 && !store.Settling(m.Store) { // it comes as far as it can
	}
	release()
	if err := <-restored; err != nil {
		t.Fatal(err)
	}
	if err := <-told; err != nil || sees != 1 {
		t.Errorf("%v; it reads revision %d", err, sees)
	}
}

// A snapshot that is not whole, or not ours, is refused by name, and nothing has changed.
func TestDamagedSnapshots(t *testing.T) {
	saved := storetest.Save(t, busy(t, store.Options{}).Store.Image())
	at := func(section string) int {
		for i, r := range saved.Records {
			if r.Section == section {
				return i
			}
		}
		t.Fatalf("no section %s", section)
		return 0
	}
	header := func(change func(*holdfast.SnapshotHeader)) func(*storetest.Snapshot) {
		return func(s *storetest.Snapshot) {
			var h holdfast.SnapshotHeader
			if err := h.Unmarshal(s.Records[0].Data); err != nil {
				t.Fatal(err)
			}
			change(&h)
			data, err := h.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			s.Records[0].Data = data
		}
	}
	without := func(i, n int) func(*storetest.Snapshot) {
		return func(s *storetest.Snapshot) { s.Records = append(s.Records[:i:i], s.Records[i+n:]...) }
	}
	again := func(i int) func(*storetest.Snapshot) {
		return func(s *storetest.Snapshot) {
			s.Records = append(s.Records[:i+1:i+1], s.Records[i:]...)
		}
	}
	last := func(i int) func(*storetest.Snapshot) {
		return func(s *storetest.Snapshot) { s.Records = append(s.Records, s.Records[i]) }
	}
	objects, log, requests, end := at("objects"), at("log"), at("requests"), len(saved.Records)
	for name, c := range map[string]struct {
		damage func(*storetest.Snapshot)
		want   string
	}{
		"empty":               {func(s *storetest.Snapshot) { s.Records = nil }, "no header"},
		"no header":           {without(0, 1), "before the header"},
		"header twice":        {again(0), "twice"},
		"header at the end":   {last(0), "twice"},
		"another cluster":     {header(func(h *holdfast.SnapshotHeader) { h.ClusterID = "other" }), "cluster"},
		"header says more":    {header(func(h *holdfast.SnapshotHeader) { h.Revision++ }), "revision"},
		"header says less":    {header(func(h *holdfast.SnapshotHeader) { h.Revision-- }), "revision"},
		"another floor":       {header(func(h *holdfast.SnapshotHeader) { h.Floor-- }), "revision"},
		"another hash":        {header(func(h *holdfast.SnapshotHeader) { h.Hash[0]++ }), "another state"},
		"another transaction": {header(func(h *holdfast.SnapshotHeader) { h.TransactionID[0]++ }), "another state"},
		"no objects":          {without(objects, log-objects), ""},
		"object twice":        {again(objects), "twice"},
		"object twice, apart": {func(s *storetest.Snapshot) {
			s.Records = slices.Insert(s.Records, log, s.Records[objects])
		}, "twice"},
		"object after log":   {last(objects), "order"},
		"no log":             {without(log, requests-log), "revision"},
		"log with a gap":     {without(log+3, 1), "follows"},
		"log cut short":      {without(requests-1, 1), "revision"},
		"log record twice":   {again(log), "follows"},
		"log after requests": {last(log), "order"},
		"request twice":      {again(requests), "follows"},
		"requests turned": {func(s *storetest.Snapshot) {
			s.Records[requests], s.Records[end-1] = s.Records[end-1], s.Records[requests]
		}, "follows"},
		"unknown section":     {func(s *storetest.Snapshot) { s.Records[log].Section = "new" }, "unknown"},
		"object is no object": {func(s *storetest.Snapshot) { s.Records[objects].Data = []byte{0xff} }, "objects"},
		"object of no kind":   {func(s *storetest.Snapshot) { s.Records[objects].Data = []byte{8, 1} }, "kind"},
		"log is no log":       {func(s *storetest.Snapshot) { s.Records[log].Data = []byte{0xff} }, "log"},
		"requests are none":   {func(s *storetest.Snapshot) { s.Records[requests].Data = []byte{0xff} }, "requests"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := storetest.NewLeader(t, "m", store.Options{})
				a := begin(t.Context(), m, creating("a"))
				m.Commit()
				b := begin(t.Context(), m, creating("b"))
				before := storetest.Save(t, m.Store.Image())
				damaged := saved.Copy()
				c.damage(damaged)
				err := m.Store.Restore(damaged.Reader())
				if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "snapshot") {
					t.Errorf("%v, want %q", err, c.want)
				}
				if diff := before.Diff(storetest.Save(t, m.Store.Image())); diff != "" {
					t.Errorf("it changed the state: %s", diff)
				}
				a.committed(t, "a", 1)
				b.waits(t, "b")
				m.Commit()
				b.committed(t, "b", 2)
			})
		})
	}
}

// A section writer or reader that fails is told of.
func TestFailingSections(t *testing.T) {
	s := busy(t, store.Options{})
	for n := range len(storetest.Save(t, s.Store.Image()).Records) + 4 {
		if err := s.Store.Image().Save(&failing{after: n}); err == nil || !strings.Contains(err.Error(), "disk is full") {
			t.Errorf("after %d: %v", n, err)
		}
	}
}

type failing struct{ after int }

func (f *failing) count() error {
	if f.after--; f.after < 0 {
		return fmt.Errorf("disk is full")
	}
	return nil
}
func (f *failing) Section(string) error { return f.count() }
func (f *failing) Record([]byte) error  { return f.count() }
