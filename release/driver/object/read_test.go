package object_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"holdfast/api/holdfast"
	"holdfast/release/driver"
	"holdfast/release/driver/object"
)

// What is read without a Store is what the driver stored.
func TestReadParts(t *testing.T) {
	s := newInProcess(t, holdfast.Kind_KIND_CONFIG)
	d := newDriver(s, time.Now)
	key := driver.Key{Namespace: "n", Name: "web", Revision: 7}
	body := []byte(strings.Repeat("0123456789abcdef", 40_000)) // three chunks
	want, err := d.Create(t.Context(), driver.Record{
		Head: driver.Head{Key: key, Kind: "test", Status: driver.StatusDeployed, Labels: map[string]string{"a": "b"}}, Body: body,
	})
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]object.Object{}
	var head object.Object
	parts := map[string]int{}
	for o, err := range s.List(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		p, ok := object.PartOf(o.Labels)
		if !ok || !strings.HasPrefix(o.Name, object.Names) || p.Head != strings.HasPrefix(o.Name, object.Heads) {
			t.Errorf("%s: %v, %v", o.Name, p, ok)
		}
		if names := object.NamesOf(o.Labels); names == object.Names || !strings.HasPrefix(o.Name, names) {
			t.Errorf("%s does not begin with %s", o.Name, names)
		}
		switch {
		case p.Head:
			head = o
			parts["head"]++
			if p.Key != key || p.Upload == "" {
				t.Errorf("the head is of %v, %q", p.Key, p.Upload)
			}
		case p.Mark:
			parts["mark"]++
			if p.Key != (driver.Key{Namespace: "n", Name: "web"}) {
				t.Errorf("the mark is of %v", p.Key)
			}
		default:
			parts["chunk"]++
		}
		if byName[o.Name], err = s.Get(t.Context(), o.Name); err != nil {
			t.Fatal(err)
		}
	}
	if parts["head"] != 1 || parts["mark"] != 1 || parts["chunk"] != 3 {
		t.Errorf("got %v", parts)
	}
	if _, ok := object.PartOf(map[string]string{"other": "label"}); ok {
		t.Error("an object of somebody else is a part")
	}

	got, err := object.ReadHead(head)
	if err != nil || got.Key != want.Key || got.Digest != want.Digest || got.Version != want.Version || got.Labels["a"] != "b" {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	get := func(name string) ([]byte, bool) { o, ok := byName[name]; return o.Data, ok }
	if got, err := object.ReadBody(head, get); err != nil || string(got) != string(body) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	delete(byName, object.ChunkName(head.Labels[object.LabelUpload], 1))
	if _, err := object.ReadBody(head, get); !errors.Is(err, driver.ErrCorrupt) || !strings.Contains(err.Error(), "missing") {
		t.Errorf("without a chunk: %v", err)
	}
	head.Labels = maps.Clone(head.Labels) // those are the store's
	head.Labels["holdfast.release.revision"] = "-1"
	if p, ok := object.PartOf(head.Labels); !ok || !p.Head || p.Key.Revision != 0 || p.Key.Name != "web" {
		t.Errorf("damaged: %v, %v", p, ok)
	}
	for _, read := range []func() error{
		func() error { _, err := object.ReadHead(head); return err },
		func() error { _, err := object.ReadBody(head, get); return err },
	} {
		if err := read(); !errors.Is(err, driver.ErrCorrupt) {
			t.Errorf("damaged: %v", err)
		}
	}
}
