package raft

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	etcdraft "go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"holdfast/manager/state"
	"holdfast/manager/state/raft/storage"
	"holdfast/manager/state/raft/storage/memfs"
)

func TestMerge(t *testing.T) {
	for _, c := range []struct{ before, entries, want string }{
		{"", "1/1 2/1", "1/1 2/1"},
		{"1/1", "", "1/1"},
		{"1/1 2/1", "3/1", "1/1 2/1 3/1"},
		{"1/1 2/1 3/1", "2/2", "1/1 2/2"},
		{"1/1 2/1 3/1", "3/2 4/2", "1/1 2/1 3/2 4/2"},
		{"5/2 6/2", "5/3", "5/3"},
		{"5/2 6/2", "3/3 4/3", "3/3 4/3"},
		{"5/2 6/2 7/2", "4/3", "4/3"},
	} {
		before := logOf(c.before)
		whole := append(logOf(c.before), logOf("9/9")...)
		got := merge(whole[:len(before)], logOf(c.entries))
		if show(got) != c.want {
			t.Errorf("%s, then %s: %s, want %s", c.before, c.entries, show(got), c.want)
		}
		if show(whole) != show(append(before, logOf("9/9")...)) {
			t.Errorf("%s, then %s: raft's own slice became %s", c.before, c.entries, show(whole))
		}
	}
}

func TestAppenderWrites(t *testing.T) {
	for _, c := range []struct {
		name  string
		work  []any
		want  string // on disk
		told  string
		syncs int64
	}{
		{"one", []any{appendTo("1/1", "1/1/0", "a")}, "1/1/0 from 1: 1/1", "a", 1},
		{"two become one", []any{appendTo("1/1", "1/1/0", "a"), appendTo("2/1", "1/1/1", "b")}, "1/1/1 from 1: 1/1 2/1", "a b", 1},
		{"overwritten", []any{
			appendTo("1/1 2/1 3/1", "1/1/1", "a"), appendTo("2/2", "2/0/1", "b"), appendTo("3/2", "", "c"),
		}, "2/0/1 from 1: 1/1 2/2 3/2", "a b c", 1},
		{"last hard state that is there", []any{
			appendTo("", "1/1/0", "a"), appendTo("1/2", "2/1/0", ""), appendTo("", "", "c"),
		}, "2/1/0 from 1: 1/2", "a c", 1},
		{"responses and nothing to write", []any{appendTo("", "", "a"), appendTo("", "", "b")}, "0/0/0 from 1: ", "a b", 0},
		{"vote", []any{appendTo("", "1/2/0", "a")}, "1/2/0 from 1: ", "a", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, emptyDisk(t))
			before := b.log.Metrics().Syncs
			if err := b.do(c.work...); err != nil {
				t.Fatal(err)
			}
			if got := b.told(); got != c.told {
				t.Errorf("responses %q, want %q", got, c.told)
			}
			if got := b.log.Metrics().Syncs - before; got != c.syncs {
				t.Errorf("%d syncs, want %d", got, c.syncs)
			}
			if got := describeState(b.reopen()); got != c.want {
				t.Errorf("on disk: %s, want %s", got, c.want)
			}
		})
	}
}

// Only the commit index may be written without a sync: a crash that loses it loses nothing that
// a response told.
func TestOnlyTheCommitIndexIsNotSynced(t *testing.T) {
	b := newBench(t, emptyDisk(t))
	if err := b.do(appendTo("1/1 2/1", "1/1/0", "")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		m     *pb.Message
		syncs int64
	}{
		{appendTo("", "1/1/1", "a"), 0},
		{appendTo("", "1/1/2", ""), 0},
		{appendTo("", "2/0/2", ""), 1},
		{appendTo("", "2/3/2", ""), 1},
		{appendTo("", "2/3/2", "again"), 0},
		{appendTo("3/2", "", ""), 1},
		{appendTo("3/2", "2/3/3", ""), 1},
	} {
		before := b.log.Metrics().Syncs
		if err := b.do(c.m); err != nil {
			t.Fatal(err)
		}
		if got := b.log.Metrics().Syncs - before; got != c.syncs {
			t.Errorf("%v: %d syncs, want %d", c.m, got, c.syncs)
		}
	}
}

// After a sync that failed nothing is told, and nothing more is written.
func TestFailedSyncTellsNothing(t *testing.T) {
	b := newBench(t, emptyDisk(t))
	full := errors.New("no space")
	b.disk.SetFault(func(op memfs.Op, _ string) error {
		if op == memfs.OpSync {
			return full
		}
		return nil
	})
	if err := b.do(appendTo("1/1", "1/1/0", "a")); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	b.disk.SetFault(nil)
	if err := b.do(appendTo("2/1", "1/1/0", "b")); err == nil {
		t.Error("it went on after a failed sync")
	}
	if told := b.told(); told != "" {
		t.Errorf("told %q", told)
	}
}

// A received snapshot is durable before the state is replaced, and that before raft hears.
func TestReceivedSnapshot(t *testing.T) {
	b := newBench(t, emptyDisk(t))
	b.file(10, 3)
	var events []string
	b.appender.install = func(_ context.Context, m storage.Marker) error {
		st, err := storage.Verify(b.disk.Clone(1), labDir)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, fmt.Sprintf("install %d, disk names %d, told %q", m.Index, st.Snapshot.Index, b.told()))
		return nil
	}
	err := b.do(appendTo("1/1 2/1", "1/1/0", "a"), received(10, 3, "11/3", "snap"), appendTo("12/3", "3/0/11", "c"))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{`install 10, disk names 10, told "a"`}; !slices.Equal(events, want) {
		t.Errorf("got %q, want %q", events, want)
	}
	if told := b.told(); told != "snap c" {
		t.Errorf("told %q", told)
	}
	if first, _ := b.memory.FirstIndex(); first != 11 {
		t.Errorf("raft sees entries from %d", first)
	}
	if got, want := describeState(b.reopen()), "3/0/11 from 11: 11/3 12/3"; got != want {
		t.Errorf("on disk: %s, want %s", got, want)
	}
	if len(b.placed) != 1 || !b.placed[0].Received {
		t.Errorf("placed %v", b.placed)
	}
}

// A snapshot that cannot be installed is a fault: raft never hears that it is there.
func TestReceivedSnapshotThatCannotBeInstalled(t *testing.T) {
	b := newBench(t, emptyDisk(t))
	b.file(10, 3)
	bad := errors.New("bad")
	b.appender.install = func(context.Context, storage.Marker) error { return bad }
	if err := b.do(received(10, 3, "", "snap")); !errors.Is(err, bad) || b.told() != "" {
		t.Errorf("got %v, told %q", err, b.told())
	}
}

// A local snapshot is named together with a commit index that reaches it, and the log is cut
// after that; one that a received one overtook is given up.
func TestLocalSnapshot(t *testing.T) {
	b := newBench(t, emptyDisk(t))
	if err := b.do(appendTo("1/1 2/1 3/1 4/1 5/1 6/1", "1/1/0", "a")); err != nil {
		t.Fatal(err)
	}
	b.file(5, 1)
	local := storage.Marker{Index: 5, Term: 1, ConfState: &pb.ConfState{}}
	if err := b.do(local); err != nil {
		t.Fatal(err)
	}
	st, err := storage.Verify(b.disk.Clone(1), labDir)
	if err != nil || st.Snapshot.Index != 5 || st.HardState.GetCommit() < 5 {
		t.Errorf("on disk: %+v, %v", st, err)
	}
	if first, _ := b.memory.FirstIndex(); first != 4 { // two are kept behind it
		t.Errorf("raft sees entries from %d", first)
	}
	b.file(6, 1)
	b.file(20, 2)
	b.file(30, 2) // received, and on its way to raft
	overtaken := storage.Marker{Index: 6, Term: 1, ConfState: &pb.ConfState{}}
	if err := b.do(received(20, 2, "", "snap"), overtaken); err != nil {
		t.Fatal(err)
	}
	if got := b.files(); got != "20 30" {
		t.Errorf("files %s", got)
	}
	if got := b.placed; len(got) != 3 || got[0].Index != 5 || got[1].Index != 20 || got[2].Index != 6 {
		t.Errorf("placed %v", got)
	}
	if st := b.reopen(); st.Snapshot.Index != 20 {
		t.Errorf("on disk: %+v", st.Snapshot)
	}
}

func TestKeepFrom(t *testing.T) {
	for _, c := range []struct {
		name     string
		entries  uint64
		bytes    uint64
		applied  uint64
		snapshot uint64
		want     uint64
	}{
		{"by number", 3, 1 << 20, 99, 8, 5},
		{"more than there are", 99, 1 << 20, 99, 8, 0},
		{"all but one", 7, 1 << 20, 99, 8, 1},
		{"by bytes", 99, 35, 99, 8, 5},
		{"exactly the bytes", 99, 30, 99, 8, 5},
		{"one that is too large", 99, 9, 99, 8, 8},
		{"raft is behind", 3, 1 << 20, 4, 8, 4},
		{"raft is behind, by bytes", 99, 9, 6, 8, 6},
		{"raft is at the start", 3, 1 << 20, 0, 8, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			memory := etcdraft.NewMemoryStorage()
			for i := uint64(1); i <= 10; i++ {
				if err := memory.Append([]*pb.Entry{{Index: new(i), Term: new(uint64(1)), Data: make([]byte, 10)}}); err != nil {
					t.Fatal(err)
				}
			}
			a := &appender{
				memory: memory, applied: func() uint64 { return c.applied },
				keep: func() Settings { return Settings{KeepEntries: c.entries, KeepBytes: c.bytes} },
			}
			if got := a.keepFrom(c.snapshot); got != c.want {
				t.Errorf("cut up to %d, want %d", got, c.want)
			}
		})
	}
}

// The power fails at any effect on the disk while snapshots come in: what was told is there, and
// the snapshot that the log names.
func TestCrashAtEveryEffect(t *testing.T) {
	for n := 1; ; n++ {
		disk := emptyDisk(t)
		b := newBench(t, disk)
		b.file(4, 1)
		b.file(20, 2)
		disk.CrashAt(n)
		err := b.do(appendTo("1/1 2/1 3/1 4/1 5/1", "1/1/4", "5"),
			storage.Marker{Index: 4, Term: 1, ConfState: &pb.ConfState{}},
			appendTo("6/1", "1/1/5", "6"), received(20, 2, "21/2", "21"), appendTo("22/2", "2/0/21", "22"))
		if err == nil {
			if n < 8 {
				t.Errorf("only %d effects", n)
			}
			return
		}
		told := b.told()
		st := b.reopen()
		last := uint64(0)
		if i := strings.LastIndex(told, " "); told != "" {
			if _, err := fmt.Sscan(told[i+1:], &last); err != nil {
				t.Fatal(err)
			}
		}
		if st.LastIndex() < last || st.HardState.GetCommit() < st.Snapshot.Index {
			t.Errorf("crash at effect %d: told %q, on disk %s, snapshot %d", n, told, describeState(st), st.Snapshot.Index)
		}
		if !st.Snapshot.IsZero() {
			r, err := storage.OpenSnapshot(disk, labDir, st.Snapshot.Index, st.Snapshot.Term)
			if err != nil {
				t.Fatalf("crash at effect %d: %v", n, err)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := memoryOf(st); err != nil {
			t.Errorf("crash at effect %d: %v", n, err)
		}
	}
}

// What is restored must be what the log says: that entry, that term, that membership.
func TestRestoreRefusesAnotherState(t *testing.T) {
	disk := emptyDisk(t)
	image := ledgerImage{At: state.Applied{Index: 5, Term: 2, Peers: nil}}
	image.At.Peers = append(image.At.Peers, labPeer(1))
	marker, err := save(disk, labDir, image)
	if err != nil {
		t.Fatal(err)
	}
	a := &applier{machine: &ledger{}, fsys: disk, dir: labDir}
	if err := a.restore(marker); err != nil {
		t.Error(err)
	}
	other := marker
	other.ConfState = &pb.ConfState{Voters: []uint64{1, 2}}
	if err := a.restore(other); err == nil {
		t.Error("another membership is taken")
	}
	other = marker
	other.Index = 6
	if err := a.restore(other); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a snapshot that is not there: %v", err)
	}
}

// The applier ends with ctx, and may never get to a snapshot that the appender waits for.
func TestInstallEndsWithTheNode(t *testing.T) {
	n := &Node{applies: &applier{queue: newWorkQueue[applyWork]()}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := n.install(ctx, storage.Marker{Index: 1, Term: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
