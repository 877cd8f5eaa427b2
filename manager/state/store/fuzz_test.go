package store_test

import (
	"encoding/binary"
	"testing"

	"holdfast/api/holdfast"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

var sections = []string{"header", "objects", "log", "requests", "unknown"}

// pack writes a snapshot as one piece of bytes, and unpack reads any bytes as one.
func pack(s *storetest.Snapshot) []byte {
	var b []byte
	for _, r := range s.Records {
		for i, name := range sections {
			if name == r.Section {
				b = append(b, byte(i))
			}
		}
		b = binary.AppendUvarint(b, uint64(len(r.Data)))
		b = append(b, r.Data...)
	}
	return b
}

func unpack(b []byte) *storetest.Snapshot {
	s := &storetest.Snapshot{}
	for len(b) > 0 {
		section := sections[int(b[0])%len(sections)]
		size, n := binary.Uvarint(b[1:])
		if n <= 0 {
			return s
		}
		b = b[1+n:]
		size = min(size, uint64(len(b)))
		s.Records = append(s.Records, storetest.Record{Section: section, Data: b[:size]})
		b = b[size:]
	}
	return s
}

// Whatever a snapshot holds, Restore takes it or says no, and never panics. What it takes can
// be saved, read at every revision and written to.
func FuzzRestore(f *testing.F) {
	w := storetest.NewLeader(f, "m", store.Options{MaxLog: 2}).Auto(true)
	for _, name := range []string{"a", "b", "c", "d"} {
		if _, err := w.Store.Update(requested(f.Context(), requestID(0, len(name)), 1), creating(name)); err != nil {
			f.Fatal(err)
		}
	}
	full := storetest.Save(f, w.Store.Image())
	f.Add(pack(full))
	f.Add(pack(&storetest.Snapshot{Records: full.Records[:1]}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		s := storetest.NewScript(t, "m", store.Options{})
		before := storetest.Save(t, s.Store.Image())
		if err := s.Store.Restore(unpack(data).Reader()); err != nil {
			if diff := before.Diff(storetest.Save(t, s.Store.Image())); diff != "" {
				t.Errorf("refused, but changed: %s", diff)
			}
			return
		}
		st := s.Store.Status()
		for revision := st.Floor; revision < st.Revision; revision++ {
			if _, err := s.Store.At(revision); err != nil {
				t.Errorf("at %d: %v", revision, err)
			}
		}
		storetest.Save(t, s.Store.Image())
	})
}

// Whatever an entry holds, Apply applies it, refuses it or fails, and never panics; a failure
// leaves the state as it was; and two members do the same with it.
func FuzzApply(f *testing.F) {
	leader := storetest.NewLeader(f, "m", store.Options{}).Auto(true)
	create(f, leader.Store, "a")
	leader.Auto(false)
	made := make(chan error, 1)
	go func() {
		_, err := leader.Store.Update(requested(f.Context(), requestID(0, 1), 1), func(tx *store.Tx) error {
			for _, k := range allKinds() {
				if _, err := k.create(tx, k.fresh("of "+k.kind.String())); err != nil {
					return err
				}
			}
			return remove(tx, "a")
		})
		made <- err
	}()
	for leader.Store.Status().Pending == 0 { // until it waits
	}
	data := leader.Take()
	leader.Store.Stop()
	if err := <-made; err == nil {
		f.Fatal("it was never committed")
	}
	f.Add(data)
	var entry holdfast.RawEntry
	if err := entry.Unmarshal(data); err != nil {
		f.Fatal(err)
	}
	twice, err := (&holdfast.RawEntry{Transactions: [][]byte{entry.Transactions[0], entry.Transactions[0]}}).Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(twice)
	f.Add(data[:len(data)-1])
	log := leader.Log()
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 {
			return
		}
		var members []*storetest.Script
		for range 2 {
			m := storetest.NewScript(t, "f", store.Options{})
			m.Feed(log...)
			before := storetest.Save(t, m.Store.Image())
			err := m.Store.Apply([]state.Committed{{Index: 100, Term: 1, Data: data}})
			if diff := before.Diff(storetest.Save(t, m.Store.Image())); err != nil && diff != "" {
				t.Errorf("%v, but the state changed: %s", err, diff)
			}
			members = append(members, m)
		}
		same(t, "two members", members[0].Store, members[1].Store)
	})
}
