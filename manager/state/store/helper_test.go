package store_test

import (
	"context"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// call is an Update that runs. Its fields are read after synctest.Wait.
type call struct {
	res  store.Result
	err  error
	done bool
}

// begin starts an Update in a goroutine and returns when it waits, or is done. It needs a
// synctest bubble.
func begin(ctx context.Context, s *storetest.Script, fn func(*store.Tx) error) *call {
	c := &call{}
	go func() {
		c.res, c.err = s.Store.Update(ctx, fn)
		c.done = true
	}()
	synctest.Wait()
	return c
}

// creating creates a service.
func creating(name string) func(*store.Tx) error {
	return func(tx *store.Tx) error {
		_, err := store.Services.Create(tx, service(name))
		return err
	}
}

func (c *call) waits(t *testing.T, name string) {
	t.Helper()
	synctest.Wait()
	if c.done {
		t.Errorf("%s: has an outcome already: %+v, %v", name, c.res, c.err)
	}
}

func (c *call) committed(t *testing.T, name string, revision uint64) {
	t.Helper()
	synctest.Wait()
	if !c.done || c.err != nil || c.res.Revision != revision {
		t.Errorf("%s: done %t, %+v, %v; want revision %d", name, c.done, c.res, c.err, revision)
	}
}

func (c *call) failed(t *testing.T, name string, kind errkind.Kind) {
	t.Helper()
	synctest.Wait()
	if !c.done || !errkind.Is(c.err, kind) {
		t.Errorf("%s: done %t, %+v, error %v of kind %v; want kind %v", name, c.done, c.res, c.err, errkind.Of(c.err), kind)
	}
	if (kind == errkind.NoLeader || kind == errkind.UnknownOutcome) && errkind.Hint(c.err) == "" {
		t.Errorf("%s: %v has no hint", name, c.err)
	}
}

// requested returns a context with a request of the ID and a digest.
func requested(ctx context.Context, id string, digest byte) context.Context {
	return state.WithRequest(ctx, state.Request{ID: id, Digest: []byte{digest}, Caller: "tester"})
}

// names gives the names of all services of a view, in order of IDs: of their creation.
func names(tx store.ReadTx) string {
	out := ""
	for o := range storetest.Objects(tx) {
		if s, ok := o.(*api.Service); ok {
			out += s.Spec.Annotations.Name + " "
		}
	}
	return out
}

func wantNames(t *testing.T, s *storetest.Script, want string) {
	t.Helper()
	if got := names(s.Store.Root()); got != want {
		t.Errorf("services %q, want %q", got, want)
	}
}

// transactions decodes the data of an entry.
func transactions(t *testing.T, data []byte) []*holdfast.RawTransaction {
	t.Helper()
	var entry holdfast.RawEntry
	if err := entry.Unmarshal(data); err != nil {
		t.Fatal(err)
	}
	var out []*holdfast.RawTransaction
	for _, raw := range entry.Transactions {
		var tx holdfast.RawTransaction
		if err := tx.Unmarshal(raw); err != nil {
			t.Fatal(err)
		}
		out = append(out, &tx)
	}
	return out
}

// entryOf encodes transactions as the data of an entry.
func entryOf(t *testing.T, txs ...*holdfast.RawTransaction) []byte {
	t.Helper()
	var entry holdfast.RawEntry
	for _, tx := range txs {
		raw, err := tx.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		entry.Transactions = append(entry.Transactions, raw)
	}
	data, err := entry.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// tester is what *testing.T and *rapid.T have in common.
type tester = storetest.Tester

// same fails unless two members hold the same, down to the bytes of a snapshot.
func same(t tester, what string, a, b *store.MemoryStore) {
	t.Helper()
	if diff := storetest.Save(t, a.Image()).Diff(storetest.Save(t, b.Image())); diff != "" {
		t.Errorf("%s: the members differ: %s", what, diff)
	}
	if x, y := names(a.Root()), names(b.Root()); x != y {
		t.Errorf("%s: %q and %q", what, x, y)
	}
}

// follower makes a member that has applied all that s has.
func follower(t testing.TB, s *storetest.Script, o store.Options) *storetest.Script {
	t.Helper()
	f := storetest.NewScript(t, "f", o)
	f.Feed(s.Log()...)
	return f
}
