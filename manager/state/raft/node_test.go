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
	"holdfast/internal/errkind"
	"holdfast/manager/state/raft"
	"holdfast/manager/state/store"
)

func TestOneMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, members := cluster(t, 1)
		for i := range 200 {
			net.create(t, fmt.Sprint("s", i))
		}
		net.same(t, 200)
		if err := members[0].stop(); err != nil {
			t.Fatal(err)
		}
		net.start(t, members[0].disk, members[0].id)
		net.same(t, 200)
		net.create(t, "after")
		net.same(t, 201)
	})
}

func TestThreeMembersLoseTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, _ := cluster(t, 3)
		const writers, each = 8, 20
		var group errgroup.Group
		for w := range writers {
			group.Go(func() error {
				for i := range each {
					net.create(t, fmt.Sprintf("s%d-%d", w, i))
				}
				return nil
			})
		}
		for range 2 {
			old := net.leader(t)
			if err := old.stop(); err != nil {
				t.Fatal(err)
			}
			net.leader(t)
			net.start(t, old.disk, old.id)
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		net.same(t, writers*each)
	})
}

// One member stops and misses so much that it needs a snapshot, and one joins that needs a
// newer one than there is.
func TestMembersCatchUpBySnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, members := cluster(t, 3)
		away := follower(members)
		if err := away.stop(); err != nil {
			t.Fatal(err)
		}
		for i := range 300 {
			net.create(t, fmt.Sprint("s", i))
		}
		net.start(t, away.disk, away.id)
		net.add(t, net.fresh(t, 4))
		net.same(t, 300)
	})
}

func TestCutLeaderDoesNotAcknowledge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, _ := cluster(t, 3)
		net.create(t, "before")
		old := net.leader(t)
		net.away(old, true)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err := old.store.Update(ctx, func(tx *store.Tx) error {
			_, err := store.Services.Create(tx, &api.Service{Spec: api.ServiceSpec{Annotations: api.Annotations{Name: "lost"}}})
			return err
		})
		if !errkind.Is(err, errkind.UnknownOutcome) {
			t.Errorf("write on a leader that is cut off: %v", err)
		}
		if err := old.node.ReadIndex(t.Context()); !errkind.Is(err, errkind.NoLeader) {
			t.Errorf("read on a leader that is cut off: %v", err)
		}
		net.create(t, "after")
		net.away(old, false)
		net.create(t, "lost") // the name is free: the first one was never committed
		net.same(t, 3)
	})
}

func TestRemovedMemberStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, members := cluster(t, 3)
		gone := follower(members)
		if err := gone.node.Remove(t.Context(), gone.id.RaftID); !errkind.Is(err, errkind.NoLeader) {
			t.Errorf("asked of a follower: %v", err)
		}
		for range 2 {
			retry(t, func() error { return net.leader(t).node.Remove(t.Context(), gone.id.RaftID) })
		}
		<-gone.done
		if !errors.Is(gone.err, raft.ErrRemoved) {
			t.Errorf("Run ended with %v", gone.err)
		}
		at := net.leader(t).store.Applied()
		if _, ok := at.Peer(gone.id.RaftID); ok || len(at.Removed) != 1 || at.Removed[0] != gone.id.RaftID {
			t.Errorf("members after removal: %v, removed %v", at.Peers, at.Removed)
		}
		// The leader hands over, and the next one removes it.
		old := net.leader(t)
		retry(t, func() error { return net.leader(t).node.Remove(t.Context(), old.id.RaftID) })
		<-old.done
		net.create(t, "after")
		net.same(t, 1)
	})
}

func TestTransferKeepsWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, _ := cluster(t, 3)
		var group errgroup.Group
		group.Go(func() error {
			for i := range 50 {
				net.create(t, fmt.Sprint("s", i))
			}
			return nil
		})
		for range 5 {
			old := net.leader(t)
			if err := old.node.Transfer(t.Context()); err != nil && !errkind.Is(err, errkind.Refused) {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		net.same(t, 50)
	})
}
