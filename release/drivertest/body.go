package drivertest

import (
	"bytes"
	"errors"
	"math/rand/v2"

	"holdfast/internal/errkind"
	"holdfast/release/driver"
)

// noise makes bytes that cannot be compressed, the same ones for a seed.
func noise(seed uint64, size int) []byte {
	var key [32]byte
	key[0], key[1] = byte(seed), byte(seed>>8)
	b := make([]byte, size)
	if _, err := rand.NewChaCha8(key).Read(b); err != nil {
		panic(err) // it never fails
	}
	return b
}

func testBodySizes(f *fixture) {
	const chunk = 256 << 10
	sizes := []int{1, chunk - 1, chunk, chunk + 1, 2 * chunk, 5_000_000}
	for i, size := range sizes {
		f.checkBody(Key("created", int64(i+1)), size)
	}
	// From each size to each other that is not next to it.
	key := Key("updated", 1)
	h := f.create(driver.Record{Head: driver.Head{Key: key, Kind: "test", Status: driver.StatusFailed}, Body: []byte{1}})
	for i, size := range []int{5_000_000, 1, chunk + 1, 2 * chunk, 5_000_000, chunk} {
		r := driver.Record{Head: driver.Head{Key: key, Kind: "test", Status: driver.StatusFailed}, Body: noise(uint64(i), size)}
		h = f.update(h.Version, r)
		if got := f.get(key); !bytes.Equal(got.Body, r.Body) || got.Size != int64(size) {
			f.t.Fatalf("update to %d bytes: got %d", size, got.Size)
		}
	}
}

func (f *fixture) checkBody(key driver.Key, size int) {
	f.t.Helper()
	r := driver.Record{Head: driver.Head{Key: key, Kind: "test", Status: driver.StatusFailed}, Body: noise(7, size)}
	if h := f.create(r); h.Size != int64(size) {
		f.t.Errorf("the head tells of %d bytes, not %d", h.Size, size)
	}
	if got := f.get(key); !bytes.Equal(got.Body, r.Body) {
		f.t.Errorf("got another body of %d bytes, not %d", len(got.Body), size)
	}
}

func testLargestBody(f *fixture) {
	if f.Slow {
		f.t.Log("the backend is slow: left out")
		return
	}
	key := Key("large", 1)
	f.checkBody(key, driver.MaxBody)
	r := driver.Record{Head: driver.Head{Key: key, Kind: "test", Status: driver.StatusFailed}, Body: noise(8, driver.MaxBody)}
	h := f.update(f.get(key).Version, r)
	if got := f.get(key); !bytes.Equal(got.Body, r.Body) {
		f.t.Error("got another body")
	}
	if err := f.Delete(f.t.Context(), key, h.Version); err != nil {
		f.t.Error(err)
	}
}

func testCorruptBody(f *fixture) {
	for i, size := range []int{20, 600_000} {
		key := Key("web", int64(i+1))
		h := f.create(driver.Record{Head: driver.Head{Key: key, Kind: "test", Status: driver.StatusFailed}, Body: noise(9, size)})
		f.Corrupt(f.t, key)
		_, err := f.Get(f.t.Context(), key)
		f.wants(err, errkind.Internal, "body", key)
		if !errors.Is(err, driver.ErrCorrupt) {
			f.t.Errorf("not ErrCorrupt: %v", err)
		}
		// The head is whole, and so are the other records.
		all := f.query(driver.Query{Name: "web", Revision: key.Revision})
		if len(all) != 1 {
			f.t.Fatalf("listed: %v", all)
		}
		f.same("listed", all[0], h)
		f.checkBody(Key("other", int64(i+1)), size)
		// It can be repaired by another body, and deleted.
		h = f.update(h.Version, Record(key, driver.StatusFailed, "new"))
		if got := f.get(key); string(got.Body) != "new" {
			f.t.Errorf("got %q", got.Body)
		}
		f.Corrupt(f.t, key)
		if err := f.Delete(f.t.Context(), key, h.Version); err != nil {
			f.t.Error(err)
		}
	}
}

func testReopen(f *fixture) {
	var made []driver.Head
	for i, body := range []string{"a", "b"} {
		r := Record(Key("web", int64(i+1)), driver.StatusFailed, body)
		r.Labels = map[string]string{"n": body}
		made = append(made, f.create(r))
	}
	again := &fixture{Driver: f.Open(f.t), Backend: f.Backend, t: f.t, clock: f.clock}
	all := again.query(driver.Query{})
	if len(all) != len(made) {
		f.t.Fatalf("found: %v", all)
	}
	for i, h := range made {
		f.same("listed", all[i], h)
		f.same("got", again.get(h.Key).Head, h)
	}
	// What one driver writes, the other sees.
	updated := again.update(made[0].Version, Record(made[0].Key, driver.StatusDeployed, "c"))
	f.same("seen by the first", f.get(updated.Key).Head, updated)
	_, err := f.Update(f.t.Context(), made[0].Version, Record(made[0].Key, driver.StatusFailed, "d"))
	f.wants(err, errkind.OutOfSequence, "", made[0].Key)
}
