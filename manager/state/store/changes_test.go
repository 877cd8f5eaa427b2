package store_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

// Six revisions, of which the log keeps the last four.
func TestChanges(t *testing.T) {
	o := store.Options{MaxLog: 4}
	s := storetest.NewLeader(t, "m", o).Auto(true)
	hashes := map[uint64]string{}
	for i := range 6 {
		ctx := requested(t.Context(), requestID(uint64(i), i), byte(i))
		res, err := s.Store.Update(ctx, creating(fmt.Sprint("s", i)))
		if err != nil {
			t.Fatal(err)
		}
		hashes[res.Revision] = string(s.Store.Status().Hash)
	}
	f := follower(t, s, o)
	restored := storetest.NewScript(t, "r", o)
	restored.Restore(storetest.Save(t, s.Store.Image()))
	for _, c := range []struct {
		after       uint64
		most        int
		first, last uint64 // of what comes; 0: nothing
	}{
		{2, 10, 3, 6}, // 2 is the floor
		{2, 4, 3, 6},
		{2, 3, 3, 5},
		{2, 1, 3, 3},
		{2, 0, 0, 0},
		{2, -1, 0, 0},
		{4, 10, 5, 6},
		{5, 10, 6, 6},
		{6, 10, 0, 0},
		{7, 10, 0, 0},
		{1 << 63, 10, 0, 0},
		{1<<64 - 1, 10, 0, 0},
	} {
		got, err := s.Store.Changes(c.after, c.most)
		if err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if c.first > 0 && (len(got) == 0 || got[0].Revision != c.first || got[len(got)-1].Revision != c.last) ||
			c.first == 0 && len(got) > 0 {
			t.Errorf("%+v: %+v", c, got)
		}
		for i, r := range got {
			checkRevision(t, r, c.first+uint64(i), hashes)
		}
		for name, other := range map[string]*store.MemoryStore{"follower": f.Store, "restored": restored.Store} {
			if same, err := other.Changes(c.after, c.most); err != nil || !reflect.DeepEqual(shown(t, same), shown(t, got)) {
				t.Errorf("%+v: the %s shows %q, %v; want %q", c, name, shown(t, same), err, shown(t, got))
			}
		}
	}
	for after := range uint64(2) {
		got, err := s.Store.Changes(after, 10)
		e, _ := errors.AsType[*errkind.Error](err)
		if !errkind.Is(err, errkind.OutOfRange) || e.Now != 2 || e.Seen != after || len(got) > 0 ||
			!strings.Contains(err.Error(), "compacted") {
			t.Errorf("after %d, below the floor: %+v, %#v", after, got, err)
		}
	}
}

// checkRevision checks the one that created service number revision-1 and nothing else.
func checkRevision(t *testing.T, r store.Revision, revision uint64, hashes map[uint64]string) {
	t.Helper()
	at := storetest.Start().UnixMilli()
	if r.Revision != revision || r.Term != 1 || len(r.TxnID) != 16 || r.At.UnixMilli() != at+int64(revision) ||
		string(r.Hash) != hashes[revision] || !strings.HasPrefix(r.Request.ID, fmt.Sprint(revision-1, ".")) {
		t.Errorf("revision %d: %+v", revision, r)
	}
	if len(r.Changes) != 1 || r.Changes[0].Old != nil || r.Changes[0].New == nil {
		t.Errorf("revision %d: changes %+v", revision, r.Changes)
	}
}

// shown gives revisions as text.
func shown(t *testing.T, revisions []store.Revision) []string {
	t.Helper()
	var out []string
	for _, r := range revisions {
		s := fmt.Sprintf("%d %d %q %d %v %x", r.Revision, r.Term, r.TxnID, r.At.UnixNano(), r.Request, r.Hash)
		for _, c := range r.Changes {
			s += fmt.Sprintf(" %v %v %q", c.Kind, c.Action(), encoded(t, c.Object()))
		}
		out = append(out, s)
	}
	return out
}

// What waits to be committed is not among them.
func TestChangesThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewLeader(t, "m", store.Options{})
		c := begin(t.Context(), s, creating("a"))
		c.waits(t, "a")
		if got, err := s.Store.Changes(0, 10); err != nil || len(got) > 0 {
			t.Errorf("before it is committed: %+v, %v", got, err)
		}
		s.Commit()
		c.committed(t, "a", 1)
		if got, err := s.Store.Changes(0, 10); err != nil || len(got) != 1 {
			t.Errorf("after it is committed: %+v, %v", got, err)
		}
	})
}
