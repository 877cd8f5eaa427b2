package object_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"holdfast/internal/errkind"
	"holdfast/release/driver"
	"holdfast/release/driver/object"
	"holdfast/release/drivertest"
)

const (
	chunk     = 256 << 10
	chunkOnce = 15 * chunk // the largest body that is written in one transaction
)

func planner() object.Planner { return object.Planner{Clock: time.Now, Random: rand.Reader} }

// full makes a record with as long a key and as many labels as there may be.
func full(size int) driver.Record {
	r := driver.Record{Head: driver.Head{
		Key: driver.Key{
			Namespace: strings.Repeat("n", driver.MaxNamespace), Name: strings.Repeat("m", driver.MaxName), Revision: 1 << 62,
		},
		Kind: strings.Repeat("k", driver.MaxKind), Status: driver.StatusPendingRollback, Labels: map[string]string{},
	}, Body: make([]byte, size)}
	for i := range 7 {
		r.Labels[fmt.Sprint(i, strings.Repeat("l", driver.MaxLabelKey-1))] = strings.Repeat("v", driver.MaxLabelValue)
	}
	return r
}

// What fits one transaction is one, and no transaction is too large for the store: the fake
// refuses it.
func TestTransactions(t *testing.T) {
	for _, c := range []struct{ first, second, creates, updates int }{
		{1, 1, 1, 1},
		{chunk + 1, 3 * chunk, 1, 1},
		{chunkOnce, chunkOnce, 1, 1},
		{chunkOnce + 1, 1, 2, 1},
		{1, chunkOnce + 1, 1, 2},
		{driver.MaxBody, driver.MaxBody, 5, 5},
	} {
		s := newFake(time.Now)
		d := newDriver(s, time.Now)
		r := full(c.first)
		h, err := d.Create(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if s.writes != c.creates {
			t.Errorf("create of %d bytes: %d transactions, want %d", c.first, s.writes, c.creates)
		}
		s.writes = 0
		r.Body = make([]byte, c.second)
		r.Status = driver.StatusDeployed
		if h, err = d.Update(t.Context(), h.Version, r); err != nil {
			t.Fatal(err)
		}
		if s.writes != c.updates {
			t.Errorf("update to %d bytes: %d transactions, want %d", c.second, s.writes, c.updates)
		}
		if n, want := len(s.objects), 2+(c.second+chunk-1)/chunk; n != want {
			t.Errorf("%d objects are left, want %d", n, want)
		}
		s.writes = 0
		if err := d.Delete(t.Context(), r.Key, h.Version); err != nil || s.writes != 1 || len(s.objects) != 0 {
			t.Errorf("delete: %v, %d transactions, %d objects are left", err, s.writes, len(s.objects))
		}
		if s.maxBytes > 4<<20-50_000 {
			t.Errorf("a transaction of %d bytes leaves no room", s.maxBytes)
		}
	}
}

// A change of the head alone does not touch the body, and a list reads none.
func TestBodiesAreLeftAlone(t *testing.T) {
	s := newFake(time.Now)
	d := newDriver(s, time.Now)
	key := drivertest.Key("web", 1)
	h, err := d.Create(t.Context(), driver.Record{
		Head: driver.Head{Key: key, Kind: "test", Status: driver.StatusDeployed}, Body: make([]byte, 3*chunk),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.hook(func(ops []object.Op) error {
		for _, op := range ops {
			if op.Labels[object.LabelPart] == "chunk" || op.Do == object.Remove && op.Name != object.MarkName(key) {
				t.Errorf("an operation on %s", op.Name)
			}
		}
		return nil
	}, nil)
	s.data = 0
	r := drivertest.Record(key, driver.StatusSuperseded, "")
	r.Body = nil
	if _, err := d.Update(t.Context(), h.Version, r); err != nil {
		t.Fatal(err)
	}
	if s.data > 1 { // the head
		t.Errorf("an update read %d objects", s.data)
	}
	s.data = 0
	for _, err := range d.Query(t.Context(), driver.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if s.data != 0 {
		t.Errorf("a list read the data of %d objects", s.data)
	}
}

// Plans of several records are one transaction: the old one steps down, the new one is
// deployed.
func TestPlansTogether(t *testing.T) {
	s := newFake(time.Now)
	d := newDriver(s, time.Now)
	old, err := d.Create(t.Context(), drivertest.Record(drivertest.Key("web", 1), driver.StatusDeployed, "1"))
	if err != nil {
		t.Fatal(err)
	}
	o, err := s.Get(t.Context(), object.HeadName(old.Key))
	if err != nil {
		t.Fatal(err)
	}
	r := drivertest.Record(old.Key, driver.StatusSuperseded, "")
	r.Body = nil
	down, err := planner().Update(o, old.Version, r)
	if err != nil {
		t.Fatal(err)
	}
	up, err := planner().Create(drivertest.Record(drivertest.Key("web", 2), driver.StatusDeployed, "2"))
	if err != nil {
		t.Fatal(err)
	}
	if len(down.Stages)+len(up.Stages) != 0 {
		t.Fatal("staged")
	}
	// The other way round the mark is still taken, and nothing is done.
	if _, err := s.Write(t.Context(), append(append([]object.Op(nil), up.Last...), down.Last...)); !errkind.Is(err, errkind.Exists) {
		t.Errorf("got %v", err)
	}
	left, err := s.Write(t.Context(), append(append([]object.Op(nil), down.Last...), up.Last...))
	if err != nil {
		t.Fatal(err)
	}
	two, err := d.Get(t.Context(), drivertest.Key("web", 2))
	if err != nil || two.Status != driver.StatusDeployed || two.Version != left[len(down.Last)].Version {
		t.Errorf("got %+v, %v", two, err)
	}
	if one, err := d.Get(t.Context(), old.Key); err != nil || one.Status != driver.StatusSuperseded || string(one.Body) != "1" {
		t.Errorf("got %+v, %v", one, err)
	}
	o, err = s.Get(t.Context(), object.HeadName(two.Key))
	if err != nil {
		t.Fatal(err)
	}
	gone, err := planner().Delete(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(t.Context(), gone.Last); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Get(t.Context(), two.Key); !errkind.Is(err, errkind.NotFound) {
		t.Errorf("got %v", err)
	}
}

// Without randomness nothing is done, and the error says why.
func TestNoRandomness(t *testing.T) {
	p := object.Planner{Clock: time.Now, Random: strings.NewReader("short")}
	if _, err := p.Create(drivertest.Record(drivertest.Key("web", 1), driver.StatusDeployed, "x")); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
}
