package drivertest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"holdfast/internal/errkind"
	"holdfast/release/driver"
)

// model is what a driver should be, as plainly as can be. Each run has a namespace of its own.
type model struct {
	f       *fixture
	prefix  string
	records map[driver.Key]driver.Record
	gone    []uint64 // versions that no record has any more
}

// testModel does the same at random on a driver and on a model, and compares.
func testModel(f *fixture) {
	runs := 0
	rapid.Check(f.t, func(t *rapid.T) {
		runs++
		m := &model{f: f, prefix: fmt.Sprint("run", runs, "-"), records: map[driver.Key]driver.Record{}}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			m.step(t)
		}
		m.compare(t)
	})
}

func (m *model) step(t *rapid.T) {
	key := driver.Key{
		Namespace: m.prefix + rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"),
		Name:      rapid.SampledFrom([]string{"web", "Web", "web.v1"}).Draw(t, "name"),
		Revision:  rapid.Int64Range(1, 3).Draw(t, "revision"),
	}
	old, there := m.records[key]
	version := old.Version
	if !there || rapid.IntRange(0, 3).Draw(t, "stale") == 0 {
		version = 1 << 60
		if len(m.gone) > 0 {
			version = rapid.SampledFrom(m.gone).Draw(t, "version")
		}
	}
	switch rapid.IntRange(0, 3).Draw(t, "what") {
	case 0:
		m.delete(t, key, version)
	case 1:
		m.write(t, m.record(t, key), version, true)
	default:
		m.write(t, m.record(t, key), version, false)
	}
}

func (m *model) record(t *rapid.T, key driver.Key) driver.Record {
	return driver.Record{
		Head: driver.Head{
			Key: key, Kind: "test",
			Status:  rapid.SampledFrom(driver.Statuses()[:3]).Draw(t, "status"),
			Labels:  rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "'"}), rapid.SampledFrom([]string{"", "1", "2"}), 0, 2).Draw(t, "labels"),
			Overlap: rapid.IntRange(0, 3).Draw(t, "overlap") == 0,
		},
		Body: rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, "body"),
	}
}

// want tells what must come of a write: an error's kind, or ok.
func (m *model) want(key driver.Key, version uint64, create bool, h driver.Head) (errkind.Kind, bool) {
	old, there := m.records[key]
	switch {
	case create && there:
		return errkind.Exists, false
	case !create && !there:
		return errkind.NotFound, false
	case !create && version != 0 && version != old.Version:
		return errkind.OutOfSequence, false
	}
	for other, r := range m.records {
		if h.Exclusive() && r.Exclusive() && other != key && other.Namespace == key.Namespace && other.Name == key.Name {
			return errkind.Exists, false
		}
	}
	return 0, true
}

func (m *model) write(t *rapid.T, r driver.Record, version uint64, update bool) {
	kind, ok := m.want(r.Key, version, !update, r.Head)
	var h driver.Head
	var err error
	if update {
		h, err = m.f.Update(m.f.t.Context(), version, r)
	} else {
		h, err = m.f.Create(m.f.t.Context(), r)
	}
	m.agree(t, err, kind, ok)
	if !ok {
		return
	}
	if old, there := m.records[r.Key]; there {
		m.gone = append(m.gone, old.Version)
	}
	m.records[r.Key] = driver.Record{Head: h, Body: r.Body}
}

func (m *model) delete(t *rapid.T, key driver.Key, version uint64) {
	if rapid.Bool().Draw(t, "any version") {
		version = 0
	}
	kind, ok := m.want(key, version, false, driver.Head{})
	m.agree(t, m.f.Delete(m.f.t.Context(), key, version), kind, ok)
	if ok {
		m.gone = append(m.gone, m.records[key].Version)
		delete(m.records, key)
	}
}

func (m *model) agree(t *rapid.T, err error, kind errkind.Kind, ok bool) {
	if ok != (err == nil) || !ok && errkind.Of(err) != kind {
		t.Fatalf("got %v, want kind %d, or none: %v", err, kind, ok)
	}
}

func (m *model) compare(t *rapid.T) {
	keys := slices.SortedFunc(maps.Keys(m.records), driver.Key.Compare)
	var listed []driver.Head
	for _, namespace := range []string{"a", "b"} {
		listed = append(listed, m.f.query(driver.Query{Namespace: m.prefix + namespace})...)
	}
	if len(listed) != len(keys) {
		t.Fatalf("listed %v, want %v", listed, keys)
	}
	for i, key := range keys {
		want := m.records[key]
		got := m.f.get(key)
		if !Same(listed[i], want.Head) || !Same(got.Head, want.Head) || !bytes.Equal(got.Body, want.Body) {
			t.Fatalf("%v:\nlisted %+v\n   got %+v\n  want %+v", key, listed[i], got, want)
		}
	}
}
