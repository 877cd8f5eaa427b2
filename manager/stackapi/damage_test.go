package stackapi_test

import (
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"testing"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
	"holdfast/release/driver/object"
)

// noise is text that cannot be compressed to much less than half.
func noise(size int) string {
	random := rand.NewChaCha8([32]byte{1})
	b := make([]byte, size/2)
	if _, err := random.Read(b); err != nil {
		panic(err)
	}
	return hex.EncodeToString(b)
}

// part finds a secret that is a part of a release's record.
func (f *fixture) part(pick func(o *api.Secret, p object.Part) bool) *api.Secret {
	f.t.Helper()
	for o := range must(store.Secrets.Find(f.store.Root(), store.ByNamePrefix(object.Names))) {
		if p, ok := object.PartOf(o.Spec.Annotations.Labels); ok && pick(o, p) {
			return o
		}
	}
	f.t.Fatal("there is no such part")
	return nil
}

func (f *fixture) head(n int64) *api.Secret {
	f.t.Helper()
	return f.part(func(_ *api.Secret, p object.Part) bool { return p.Head && p.Key.Revision == n })
}

func (f *fixture) chunk(n int64) *api.Secret {
	f.t.Helper()
	head, _ := object.PartOf(f.head(n).Spec.Annotations.Labels)
	return f.part(func(_ *api.Secret, p object.Part) bool { return !p.Head && p.Upload == head.Upload })
}

func (f *fixture) mark() *api.Secret {
	f.t.Helper()
	return f.part(func(_ *api.Secret, p object.Part) bool { return p.Mark })
}

// A record that somebody harmed is told of, and stands in nobody's way.
func TestDamagedRecords(t *testing.T) {
	remove := func(find func(f *fixture) *api.Secret) func(*fixture) {
		return func(f *fixture) {
			o := find(f)
			f.update(func(tx *store.Tx) error { _, err := store.Secrets.Delete(tx, o.ID); return err })
		}
	}
	relabel := func(n int64, label, value string) func(*fixture) {
		return func(f *fixture) {
			o := f.head(n).Copy()
			if o.Spec.Annotations.Labels[label] == "" {
				f.t.Fatalf("there is no label %s", label)
			}
			o.Spec.Annotations.Labels[label] = value
			f.update(func(tx *store.Tx) error { _, err := store.Secrets.Update(tx, o); return err })
		}
	}
	for _, c := range []struct {
		name    string
		harm    func(*fixture)
		history string
		get     errkind.Kind // of release 2, which is deployed
		text    string
	}{
		{"no harm", func(*fixture) {}, "1 superseded, 2 deployed", -1, ""},
		{"no head", remove(func(f *fixture) *api.Secret { return f.head(2) }), "1 superseded", errkind.NotFound, "release 2"},
		{"no body", remove(func(f *fixture) *api.Secret { return f.chunk(2) }), "1 superseded, 2 deployed", errkind.Internal, "missing"},
		{"no mark", remove((*fixture).mark), "1 superseded, 2 deployed", -1, ""},
		{"no old head", remove(func(f *fixture) *api.Secret { return f.head(1) }), "2 deployed", -1, ""},
		{"no old body", remove(func(f *fixture) *api.Secret { return f.chunk(1) }), "1 superseded, 2 deployed", -1, ""},
		{"bad status", relabel(2, "holdfast.release.status", "gone"), "1 superseded, 2 unknown", errkind.Internal, "corrupt"},
		{"bad number", relabel(2, "holdfast.release.revision", "many"), "0 unknown, 1 superseded", errkind.NotFound, "release 2"},
		{"bad digest", relabel(2, "holdfast.release.digest", "sha256:0"), "1 superseded, 2 deployed", errkind.Internal, "corrupt"},
		{"other body", func(f *fixture) {
			o := f.chunk(2).Copy()
			f.update(func(tx *store.Tx) error {
				o.Spec.Data[len(o.Spec.Data)/2] ^= 1
				_, err := store.Secrets.Update(tx, o)
				return err
			})
		}, "1 superseded, 2 deployed", errkind.Internal, "corrupt"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			f.deploy(version(1))
			f.deploy(version(2))
			c.harm(f)
			if got := f.history("a"); got != c.history {
				t.Errorf("got %s, want %s", got, c.history)
			}
			if got := len(must(f.List(t.Context(), &holdfast.ListStacksRequest{})).Stacks); got != 1 {
				t.Errorf("%d stacks", got)
			}
			_, err := f.GetRelease(t.Context(), &holdfast.GetReleaseRequest{Name: "a", Number: 2})
			if c.get < 0 && err != nil {
				t.Error(err)
			} else if c.get >= 0 {
				if !errkind.Is(err, c.get) || !strings.Contains(err.Error(), c.text) {
					t.Errorf("got %v, want kind %d and %q", err, c.get, c.text)
				}
			}
			if resp := f.deploy(version(3)); resp.Release < 2 {
				t.Errorf("release %d", resp.Release)
			}
			f.holds(3)
			f.deploy(version(4))
			last := version(5)
			last.MaxHistory = 1
			f.deploy(last)
			if got := f.history("a"); strings.Contains(got, ",") || !strings.HasSuffix(got, " deployed") {
				t.Errorf("in the end there is %s", got)
			}
			must(f.Remove(t.Context(), &holdfast.RemoveStackRequest{Name: "a"}))
			if got := f.inventory(); got != "" {
				t.Errorf("left: %s", got)
			}
			most := 0
			if strings.HasSuffix(c.name, "head") {
				most = 1 // nothing tells any more whose the body was
			}
			if got := f.records(); got > most {
				t.Errorf("%d parts of records are left", got)
			}
		})
	}
}

// A stack whose records are harmed can be removed, with all that is left of them.
func TestRemoveDamagedRecords(t *testing.T) {
	for _, label := range []string{"status", "revision", "digest", "created"} {
		for _, keep := range []bool{false, true} {
			f := newFixture(t)
			f.deploy(version(1))
			f.deploy(version(2))
			o := f.head(2).Copy()
			o.Spec.Annotations.Labels["holdfast.release."+label] = "harmed"
			f.update(func(tx *store.Tx) error { _, err := store.Secrets.Update(tx, o); return err })
			must(f.Remove(t.Context(), &holdfast.RemoveStackRequest{Name: "a", KeepHistory: keep}))
			if len(must(store.Services.FindAll(f.store.Root(), store.All()))) != 0 {
				t.Errorf("%s: there are services", label)
			}
			if left := f.records(); !keep && left != 0 {
				t.Errorf("%s: %d parts of records are left", label, left)
			}
		}
	}
}

// Lists are right where there is no body at all.
func TestListsReadNoBodies(t *testing.T) {
	f := newFixture(t)
	f.deploy(version(1))
	f.deploy(version(2))
	for _, n := range []int64{1, 2} {
		o := f.chunk(n)
		f.update(func(tx *store.Tx) error { _, err := store.Secrets.Delete(tx, o.ID); return err })
	}
	resp := must(f.History(t.Context(), &holdfast.StackHistoryRequest{Name: "a"}))
	if got := f.history("a"); got != "1 superseded, 2 deployed" || resp.Releases[0].Created != 5 || resp.Releases[1].Updated != 1 {
		t.Errorf("got %s: %v", got, resp)
	}
	if r := must(f.List(t.Context(), &holdfast.ListStacksRequest{})).Stacks[0].Release; r.Number != 2 || r.Created != 2 {
		t.Errorf("got %v", r)
	}
}
