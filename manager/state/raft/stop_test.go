package raft_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state"
	"holdfast/manager/state/raft/storage"
	"holdfast/manager/state/raft/storage/memfs"
	"holdfast/manager/state/store"
)

// When a member stops, each call that waits gets an answer, and so does each that comes later.
// (The bubble of the test tells if a goroutine is left.)
func TestStopAnswersEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, members := cluster(t, 3)
		for _, m := range members {
			net.away(m, true)
		}
		for _, m := range members {
			calls := map[string]func(context.Context) error{
				"ReadIndex": m.node.ReadIndex,
				"WaitFor":   func(ctx context.Context) error { return m.node.WaitFor(ctx, func() bool { return false }) },
				"Change": func(ctx context.Context) error {
					return m.node.Change(ctx, state.UpdatePeer, holdfast.Peer{RaftID: 2, NodeID: "node2", Addr: "new"})
				},
				"Remove": func(ctx context.Context) error { return m.node.Remove(ctx, 3) },
				"Update": func(ctx context.Context) error {
					_, err := m.store.Update(ctx, func(tx *store.Tx) error {
						_, err := store.Services.Create(tx, &api.Service{Spec: api.ServiceSpec{Annotations: api.Annotations{Name: "x"}}})
						return err
					})
					return err
				},
			}
			if m.node.Leading() {
				calls["Transfer"] = m.node.Transfer
			}
			var group errgroup.Group
			for name, call := range calls {
				group.Go(func() error {
					if err := call(context.Background()); err == nil {
						return fmt.Errorf("member %d: %s: no error", m.id.RaftID, name)
					}
					return nil
				})
			}
			synctest.Wait()
			if err := m.stop(); err != nil {
				t.Error(err)
			}
			if err := group.Wait(); err != nil && name(err) != "Transfer" {
				t.Error(err)
			}
			for name, call := range calls {
				if err := call(context.Background()); err == nil && name != "Transfer" {
					t.Errorf("%s after the end: no error", name)
				}
			}
			if _, err := m.node.Status(context.Background()); !errkind.Is(err, errkind.NoLeader) {
				t.Errorf("Status after the end: %v", err)
			}
		}
	})
}

// name returns the call that an error of the test above is about.
func name(err error) string {
	var id int
	var call string
	if _, scanErr := fmt.Sscanf(err.Error(), "member %d: %s", &id, &call); scanErr != nil {
		return ""
	}
	return call[:len(call)-1]
}

// A call whose ctx ends returns, and what nobody waits for is not kept.
func TestCallsEndWithTheirContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, members := cluster(t, 3)
		lead := net.leader(t)
		net.away(lead, true)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := lead.node.ReadIndex(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ReadIndex: %v", err)
		}
		err := lead.node.Change(ctx, state.UpdatePeer, holdfast.Peer{RaftID: 2, NodeID: "node2", Addr: "new"})
		if !errkind.Is(err, errkind.UnknownOutcome) {
			t.Errorf("Change: %v", err)
		}
		if err := members[0].node.WaitFor(ctx, func() bool { return false }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("WaitFor: %v", err)
		}
	})
}

// A fault of the disk ends Run with its cause; what was acknowledged is there afterwards.
func TestDiskFault(t *testing.T) {
	for _, c := range []struct {
		name string
		harm func(*memfs.FS, error)
	}{
		{"sync fails", func(disk *memfs.FS, bad error) {
			disk.SetFault(func(op memfs.Op, _ string) error {
				if op == memfs.OpSync {
					return bad
				}
				return nil
			})
		}},
		{"power fails", func(disk *memfs.FS, _ error) { disk.CrashAt(3) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net, members := cluster(t, 1)
				net.faulty = true
				for i := range 10 {
					net.create(t, fmt.Sprint("s", i))
				}
				m := members[0]
				bad := errors.New("no space left")
				c.harm(m.disk, bad)
				for i := 0; ; i++ {
					_, err := m.store.Update(t.Context(), func(tx *store.Tx) error {
						_, err := store.Services.Create(tx, &api.Service{Spec: api.ServiceSpec{Annotations: api.Annotations{Name: fmt.Sprint("t", i)}}})
						return err
					})
					if err != nil {
						if !errkind.Is(err, errkind.UnknownOutcome) && !errkind.Is(err, errkind.NoLeader) {
							t.Errorf("the write at which it broke: %v", err)
						}
						break
					}
				}
				<-m.done
				if !errors.Is(m.err, bad) && !errors.Is(m.err, memfs.ErrCrashed) {
					t.Errorf("Run ended with %v", m.err)
				}
				m.disk.SetFault(nil)
				m.disk.Crash()
				if st, err := storage.Verify(m.disk, raftDir); err != nil || st.Clean {
					t.Errorf("the log is closed as if all were well: %v, %v", st, err)
				}
				again := net.start(t, m.disk, m.id)
				retry(t, func() error { return again.node.ReadIndex(t.Context()) })
				all, err := store.Services.FindAll(again.store.Root(), store.All())
				if err != nil || len(all) < 10 {
					t.Errorf("%d services are left of 10 or more, %v", len(all), err)
				}
			})
		})
	}
}

// machine is a store with hooks.
type machine struct {
	state.Machine
	apply   func() error
	restore func() error
}

func (m machine) Apply(entries []state.Committed) error {
	if err := m.apply(); err != nil {
		return err
	}
	return m.Machine.Apply(entries)
}

func (m machine) Restore(r state.SectionReader) error {
	if err := m.restore(); err != nil {
		return err
	}
	return m.Machine.Restore(r)
}

// A fault of the store ends Run with its cause: it is never passed over.
func TestStoreFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		net.faulty = true
		bad := errors.New("bad entry")
		var broken bool
		net.machine = func(s *store.MemoryStore) state.Machine {
			return machine{s, func() error {
				if broken {
					return bad
				}
				return nil
			}, func() error { return nil }}
		}
		m := net.fresh(t, 1)
		net.create(t, "s")
		synctest.Wait()
		broken = true
		_, err := m.store.Update(t.Context(), func(tx *store.Tx) error {
			_, err := store.Services.Create(tx, &api.Service{Spec: api.ServiceSpec{Annotations: api.Annotations{Name: "x"}}})
			return err
		})
		if !errkind.Is(err, errkind.UnknownOutcome) {
			t.Errorf("the write: %v", err)
		}
		<-m.done
		if !errors.Is(m.err, bad) {
			t.Errorf("Run ended with %v", m.err)
		}
		if st, err := storage.Verify(m.disk, raftDir); err != nil || st.Clean {
			t.Errorf("the log is closed as if all were well: %v, %v", st, err)
		}
	})
}

// A member may be stopped, or its store may fail, while a snapshot is being installed: then it
// begins with that snapshot.
func TestEndDuringInstall(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
	}{{"stopped", nil}, {"store fails", errors.New("bad snapshot")}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net, members := cluster(t, 3)
				net.faulty = c.err != nil
				away := follower(members)
				if err := away.stop(); err != nil {
					t.Fatal(err)
				}
				for i := range 150 {
					net.create(t, fmt.Sprint("s", i))
				}
				began, goOn := make(chan struct{}, 1), make(chan struct{})
				net.machine = func(s *store.MemoryStore) state.Machine {
					return machine{s, func() error { return nil }, func() error {
						select {
						case began <- struct{}{}:
							<-goOn
							return c.err
						default:
							return nil // at the next start
						}
					}}
				}
				began <- struct{}{} // not the snapshot that it starts with
				m := net.start(t, away.disk, away.id)
				<-began
				synctest.Wait()
				time.Sleep(5 * time.Second) // until it waits in the snapshot that it is sent
				if c.err == nil {
					go func() {
						time.Sleep(time.Second)
						close(goOn)
					}()
				} else {
					close(goOn)
					<-m.done
				}
				if err := m.stop(); !errors.Is(err, c.err) {
					t.Errorf("Run ended with %v", err)
				}
				net.start(t, away.disk, away.id)
				net.same(t, 150)
			})
		})
	}
}

// A joiner that nobody knows, and a follower without a leader, do nothing but tick. (In a
// bubble a busy loop would never end: time stands still while anybody works.)
func TestIdleMembersRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, members := cluster(t, 2)
		lost := follower(members)
		if err := net.leader(t).stop(); err != nil {
			t.Fatal(err)
		}
		for _, m := range []*member{lost, net.fresh(t, 9)} {
			began := time.Now()
			if err := m.node.ReadIndex(t.Context()); !errkind.Is(err, errkind.NoLeader) {
				t.Errorf("member %d: %v", m.id.RaftID, err)
			}
			if waited := time.Since(began); waited > 5*time.Second {
				t.Errorf("member %d: it took %v to tell that there is no leader", m.id.RaftID, waited)
			}
			wait, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			asked := 0
			if err := m.node.WaitFor(wait, func() bool { asked++; return false }); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			cancel()
			if asked > 10 {
				t.Errorf("member %d: looked %d times", m.id.RaftID, asked)
			}
		}
	})
}
