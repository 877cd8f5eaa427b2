package storage_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"holdfast/manager/state/raft/storage"
	"holdfast/manager/state/raft/storage/memfs"
)

const dir = "/state/raft"

var ident = storage.Identity{ClusterID: "cluster0cluster0cluster01", NodeID: "node1node1node1node1node1", RaftID: 0x1234}

func newFS(seed uint64) *memfs.FS {
	m := memfs.New(seed)
	m.WriteFile("/state/lock", nil)
	return m
}

func ent(index, term uint64, data string) *raftpb.Entry {
	return &raftpb.Entry{Index: proto.Uint64(index), Term: proto.Uint64(term), Data: []byte(data)}
}

func ents(from, to, term uint64) []*raftpb.Entry {
	var es []*raftpb.Entry
	for i := from; i <= to; i++ {
		es = append(es, ent(i, term, fmt.Sprintf("entry %d of term %d", i, term)))
	}
	return es
}

func hard(term, vote, commit uint64) *raftpb.HardState {
	return &raftpb.HardState{Term: proto.Uint64(term), Vote: proto.Uint64(vote), Commit: proto.Uint64(commit)}
}

func conf(voters ...uint64) *raftpb.ConfState { return &raftpb.ConfState{Voters: voters} }

func local(index, term uint64) *storage.Marker {
	return &storage.Marker{Index: index, Term: term, ConfState: conf(1, 2, 3)}
}

func received(index, term uint64) *storage.Marker {
	return &storage.Marker{Index: index, Term: term, ConfState: conf(1, 2), Received: true}
}

// first is a usual first batch: one entry of term 1, committed.
func first() storage.Batch {
	return storage.Batch{HardState: hard(1, 1, 1), Entries: ents(1, 1, 1)}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, fsys storage.FS, size int64) (*storage.Log, *storage.State) {
	t.Helper()
	l, s, err := storage.Open(fsys, dir, storage.Options{SegmentSize: size})
	must(t, err)
	return l, s
}

// created makes a log with the first batch and opens it.
func created(t testing.TB, fsys storage.FS, size int64) *storage.Log {
	t.Helper()
	must(t, storage.Create(fsys, dir, ident, first()))
	l, _ := open(t, fsys, size)
	return l
}

// describe is a state as text, to compare and to print. Dropped and Clean are
// not in it.
func describe(s *storage.State) string {
	var b bytes.Buffer
	hs := s.HardState
	fmt.Fprintf(&b, "%+v\nterm %d vote %d commit %d\n", s.Identity, hs.GetTerm(), hs.GetVote(), hs.GetCommit())
	fmt.Fprintf(&b, "snapshot %d/%d received %v voters %v\n", s.Snapshot.Index, s.Snapshot.Term, s.Snapshot.Received, s.Snapshot.ConfState.GetVoters())
	fmt.Fprintf(&b, "first %d previous term %d\n", s.FirstIndex, s.PrevTerm)
	for _, e := range s.Entries {
		fmt.Fprintf(&b, "%d/%d %v %x\n", e.GetIndex(), e.GetTerm(), e.GetType(), e.GetData())
	}
	return b.String()
}

// span is a state in short: entries first-last, hard state, snapshot.
func span(s *storage.State) string {
	return fmt.Sprintf("%d-%d prev %d, term %d commit %d, snap %d/%d", s.FirstIndex, s.LastIndex(), s.PrevTerm,
		s.HardState.GetTerm(), s.HardState.GetCommit(), s.Snapshot.Index, s.Snapshot.Term)
}

func segmentPath(n int) string { return fmt.Sprintf("%s/log/%016x.log", dir, n) }

// wantDamage checks that err names a file.
func wantDamage(t testing.TB, err error, file string) {
	t.Helper()
	d, ok := errors.AsType[*storage.DamageError](err)
	if !ok || file != "" && d.File != file {
		t.Fatalf("want damage of %s, got %v", file, err)
	}
	if d.File == "" || d.Reason == "" {
		t.Fatalf("the error names no file: %v", err)
	}
}
