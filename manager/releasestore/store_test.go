package releasestore_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/api"
	"holdfast/internal/errkind"
	"holdfast/manager/objects"
	"holdfast/manager/releasestore"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
	"holdfast/release/driver/object"
)

// both runs a test on secrets and on configs. The driver's own tests run on them, too.
func both(t *testing.T, test func(t *testing.T, noun string, m *store.MemoryStore, s object.Store)) {
	for noun, of := range map[string]func(releasestore.MemoryStore) object.Store{
		"secret": func(m releasestore.MemoryStore) object.Store { return releasestore.Secrets(m) },
		"config": func(m releasestore.MemoryStore) object.Store { return releasestore.Configs(m) },
	} {
		t.Run(noun, func(t *testing.T) {
			at := time.Unix(1_700_000_000, 123_456_789)
			m := storetest.NewLoop(t, store.Options{Clock: func() time.Time { return at }}).Store
			test(t, noun, m, of(m))
		})
	}
}

func create(name, is string) object.Op {
	return object.Op{Do: object.Create, Object: object.Object{
		Name: name, Labels: map[string]string{object.LabelPart: is, "k": "v"}, Data: []byte("data of " + name),
	}}
}

func write(t *testing.T, s object.Store, ops ...object.Op) []object.Object {
	t.Helper()
	left, err := s.Write(t.Context(), ops)
	if err != nil {
		t.Fatal(err)
	}
	return left
}

func TestWriteAndGet(t *testing.T) {
	both(t, func(t *testing.T, _ string, m *store.MemoryStore, s object.Store) {
		left := write(t, s, create("release-h-1", "head"), create("release-c-1", "chunk"))
		storetest.CheckImmutable(t, m)
		o, err := s.Get(t.Context(), "Release-H-1")
		if err != nil || o.Name != "release-h-1" || string(o.Data) != "data of release-h-1" || o.Labels["k"] != "v" ||
			o.ID == "" || o.ID != left[0].ID || o.Version != 1 || !o.Created.Equal(time.Unix(1_700_000_000, 123_456_789)) {
			t.Errorf("got %+v, %v", o, err)
		}
		o.Labels, o.Data = map[string]string{"k": "w"}, nil
		left = write(t, s, object.Op{Do: object.SetLabels, Object: o},
			object.Op{Do: object.Remove, Object: object.Object{ID: left[1].ID, Version: left[1].Version}})
		if left[0].Version != 2 || left[1].ID != "" {
			t.Errorf("got %+v", left)
		}
		if o, err := s.Get(t.Context(), "release-h-1"); err != nil || o.Labels["k"] != "w" || o.Version != 2 || len(o.Data) == 0 {
			t.Errorf("got %+v, %v", o, err)
		}
		if _, err := s.Get(t.Context(), "release-c-1"); !errkind.Is(err, errkind.NotFound) {
			t.Errorf("got %v", err)
		}
	})
}

// A transaction that fails does nothing, and its error names the object.
func TestWriteFails(t *testing.T) {
	both(t, func(t *testing.T, noun string, m *store.MemoryStore, s object.Store) {
		have := write(t, s, create("release-h-1", "head"))[0]
		stale, none := have, have
		stale.Version, none.ID = 9, strings.Repeat("0", 25)
		for _, c := range []struct {
			op   object.Op
			kind errkind.Kind
			id   string
		}{
			{create("RELEASE-h-1", "head"), errkind.Exists, "RELEASE-h-1"},
			{create("no name", "head"), errkind.Invalid, "no name"},
			{object.Op{Do: object.SetLabels, Object: stale}, errkind.OutOfSequence, have.ID},
			{object.Op{Do: object.SetLabels, Object: none}, errkind.NotFound, none.ID},
			{object.Op{Do: object.Remove, Object: stale}, errkind.OutOfSequence, have.ID},
			{object.Op{Do: object.Remove, Object: none}, errkind.NotFound, none.ID},
			{object.Op{Object: have}, errkind.Internal, have.Name},
		} {
			left, err := s.Write(t.Context(), []object.Op{create("release-c-1", "chunk"), c.op})
			e, ok := errors.AsType[*errkind.Error](err)
			if left != nil || !ok || e.Kind != c.kind || e.Object != noun || e.ID != c.id {
				t.Errorf("%+v: got %v, %v", c.op, left, err)
			}
		}
		if now := m.Root().Revision(); now != 1 {
			t.Errorf("revision %d", now)
		}
	})
}

// A list has what has all of the labels, and the name of such a part.
func TestList(t *testing.T) {
	both(t, func(t *testing.T, _ string, _ *store.MemoryStore, s object.Store) {
		other := create("release-h-2", "head")
		other.Labels["k"] = "w"
		write(t, s, create("app.conf", "head"), create("release-h-1", "head"), other, create("release-c-1", "chunk"))
		for _, c := range []struct {
			labels map[string]string
			want   string
		}{
			{nil, "release-c-1 release-h-1 release-h-2"},
			{map[string]string{"k": "v"}, "release-c-1 release-h-1"},
			{map[string]string{object.LabelPart: "head"}, "release-h-1 release-h-2"},
			{map[string]string{object.LabelPart: "head", "k": "v"}, "release-h-1"},
			{map[string]string{object.LabelPart: "mark"}, ""},
			{map[string]string{object.LabelPart: "head", "x": "y"}, ""},
		} {
			var names []string
			for o, err := range s.List(t.Context(), c.labels) {
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, o.Name)
			}
			slices.Sort(names)
			if got := strings.Join(names, " "); got != c.want {
				t.Errorf("%v: got %s, want %s", c.labels, got, c.want)
			}
		}
		for _, err := range s.List(t.Context(), nil) {
			if err != nil {
				t.Error(err)
			}
			break // must not go on
		}
	})
}

// What other configs there are costs a list nothing.
func BenchmarkListBesideConfigs(b *testing.B) {
	for _, others := range []int{0, 10_000} {
		b.Run(fmt.Sprint(others), func(b *testing.B) {
			m := storetest.New(b)
			for i := range others {
				if _, err := m.Update(b.Context(), func(tx *store.Tx) error {
					_, err := objects.CreateConfig(tx, &api.ConfigSpec{
						Annotations: api.Annotations{Name: fmt.Sprint("app-", i)}, Data: []byte("x"),
					})
					return err
				}); err != nil {
					b.Fatal(err)
				}
			}
			s := releasestore.Configs(m)
			if _, err := s.Write(b.Context(), []object.Op{create("release-h-1", "head")}); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				n := 0
				for _, err := range s.List(b.Context(), map[string]string{object.LabelPart: "head"}) {
					if err != nil {
						b.Fatal(err)
					}
					n++
				}
				if n != 1 {
					b.Fatalf("%d objects", n)
				}
			}
		})
	}
}
