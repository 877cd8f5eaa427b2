package raft

import (
	"context"
	"fmt"
	"strings"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"

	"holdfast/manager/state"
	"holdfast/manager/state/raft/storage"
	"holdfast/manager/state/raft/storage/memfs"
)

// appendTo is a message for the appender. entries are "index/term …", hs is "term/vote/commit"
// or empty, and the response is marked by its name.
func appendTo(entries, hs, response string) *pb.Message {
	m := &pb.Message{Type: pb.MsgStorageAppend.Enum(), Entries: logOf(entries)}
	if hs != "" {
		var term, vote, commit uint64
		if _, err := fmt.Sscanf(hs, "%d/%d/%d", &term, &vote, &commit); err != nil {
			panic(err)
		}
		m.Term, m.Vote, m.Commit = &term, &vote, &commit
	}
	if response != "" {
		m.Responses = []*pb.Message{{Context: []byte(response)}}
	}
	return m
}

func logOf(s string) []*pb.Entry {
	var entries []*pb.Entry
	for _, f := range strings.Fields(s) {
		var index, term uint64
		if _, err := fmt.Sscanf(f, "%d/%d", &index, &term); err != nil {
			panic(err)
		}
		entries = append(entries, &pb.Entry{Index: &index, Term: &term, Data: []byte(f)})
	}
	return entries
}

func show(entries []*pb.Entry) string {
	var s []string
	for _, e := range entries {
		s = append(s, fmt.Sprintf("%d/%d", e.GetIndex(), e.GetTerm()))
	}
	return strings.Join(s, " ")
}

// bench is an appender on a disk in memory.
type bench struct {
	*appender
	t       *testing.T
	disk    *memfs.FS
	placed  []storage.Marker
	install []storage.Marker
}

func newBench(t *testing.T, disk *memfs.FS) *bench {
	t.Helper()
	log, st, err := storage.Open(disk, labDir, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	memory, err := memoryOf(st)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, disk: disk}
	b.appender = &appender{
		log: log, memory: memory, fsys: disk, dir: labDir, hard: st.HardState,
		keep:  func() Settings { return Settings{KeepEntries: 2, KeepBytes: 1 << 20} },
		queue: newWorkQueue[appendWork](), responses: newWorkQueue[[]*pb.Message](),
		install: func(_ context.Context, m storage.Marker) error { b.install = append(b.install, m); return nil },
		inPlace: func(m storage.Marker) { b.placed = append(b.placed, m) },
		applied: func() uint64 { return 1 << 60 },
	}
	return b
}

func emptyDisk(t *testing.T) *memfs.FS {
	t.Helper()
	disk := memfs.New(1)
	if err := Join(disk, labDir, ident(1)); err != nil {
		t.Fatal(err)
	}
	return disk
}

// do writes messages, or markers of local snapshots, that were queued together.
func (b *bench) do(work ...any) error {
	var queued []appendWork
	for _, w := range work {
		switch w := w.(type) {
		case *pb.Message:
			queued = append(queued, appendWork{message: w})
		case storage.Marker:
			queued = append(queued, appendWork{snapshot: &w})
		}
	}
	for len(queued) > 0 {
		n, err := b.write(context.Background(), queued)
		if err != nil {
			return err
		}
		queued = queued[n:]
	}
	return nil
}

// told returns the names of the responses that were given back, in order.
func (b *bench) told() string {
	var s []string
	for _, responses := range b.responses.take() {
		for _, m := range responses {
			s = append(s, string(m.GetContext()))
		}
	}
	return strings.Join(s, " ")
}

// reopen returns what the disk has after a crash.
func (b *bench) reopen() *storage.State {
	b.t.Helper()
	b.disk.Crash()
	_, st, err := storage.Open(b.disk, labDir, storage.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	return st
}

func describeState(st *storage.State) string {
	return fmt.Sprintf("%d/%d/%d from %d: %s", st.HardState.GetTerm(), st.HardState.GetVote(), st.HardState.GetCommit(),
		st.FirstIndex, show(st.Entries))
}

// file makes a snapshot file, as the saver or a peer does.
func (b *bench) file(index, term uint64) {
	b.t.Helper()
	image := ledgerImage{At: state.Applied{Index: index, Term: term}}
	if _, err := save(b.disk, labDir, image); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) files() string {
	names, err := b.disk.ReadDir(labDir + "/snap")
	if err != nil {
		b.t.Fatal(err)
	}
	var s []string
	for _, n := range names {
		var index, term uint64
		if _, err := fmt.Sscanf(n, "snap-%x-%x.snap", &index, &term); err != nil {
			s = append(s, n)
			continue
		}
		s = append(s, fmt.Sprint(index))
	}
	return strings.Join(s, " ")
}

func received(index, term uint64, entries, response string) *pb.Message {
	m := appendTo(entries, fmt.Sprintf("%d/0/%d", term, index), response)
	m.Snapshot = &pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: &index, Term: &term, ConfState: &pb.ConfState{}}}
	return m
}
