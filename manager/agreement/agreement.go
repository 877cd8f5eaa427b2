// Package agreement compares the state hashes that members tell of themselves. A member whose
// hash differs from that of a majority of the voters has another state than they have, from a
// fault of its memory, its disk or its program, and must not go on.
//
// It holds no lock: one goroutine uses a Record.
package agreement

import "slices"

// maxPoints is how many points are kept of each member: enough that two members which are a
// little apart have one in common.
const maxPoints = 8

// Point is the state hash at a revision.
type Point struct {
	Revision uint64
	Hash     string
}

// Record is what the members told last.
type Record struct {
	points map[uint64][]Point // by raft ID, newest last
}

// NewRecord makes an empty one.
func NewRecord() *Record { return &Record{points: map[uint64][]Point{}} }

// Note takes a point that a member told. One without a hash says nothing.
func (r *Record) Note(member uint64, p Point) {
	told := r.points[member]
	if p.Hash == "" || slices.Contains(told, p) {
		return
	}
	if len(told) == maxPoints {
		told = told[1:]
	}
	r.points[member] = append(told, p)
}

// Keep forgets the members that are not among these.
func (r *Record) Keep(members []uint64) {
	for id := range r.points {
		if !slices.Contains(members, id) {
			delete(r.points, id)
		}
	}
}

// at returns the hash that a member told at a revision; of two that it told, the later one.
func (r *Record) at(member, revision uint64) (hash string, ok bool) {
	for _, p := range slices.Backward(r.points[member]) {
		if p.Revision == revision {
			return p.Hash, true
		}
	}
	return "", false
}

// Finding is how a member's state compares with that of the others.
type Finding struct {
	Revision uint64   // at which a difference was found
	Equal    []uint64 // members with the same hash, at the newest revision in common
	Differ   []uint64 // … with another one
	// Minority tells that a majority of the voters has one hash, and it is not this member's.
	Minority bool
	// Split tells that all voters told a hash, and no majority told the same.
	Split bool
}

// Judge compares a member with the others.
func (r *Record) Judge(self uint64, voters, others []uint64) Finding {
	var f Finding
	for _, other := range others {
		revision, equal, ok := r.compare(self, other)
		switch {
		case !ok:
		case equal:
			f.Equal = append(f.Equal, other)
		default:
			f.Differ = append(f.Differ, other)
			f.Revision = max(f.Revision, revision)
		}
	}
	if f.Revision > 0 {
		f.Minority, f.Split = r.count(self, voters, f.Revision)
	}
	return f
}

// compare compares two members at the newest revision of which both told the hash.
func (r *Record) compare(a, b uint64) (revision uint64, equal, ok bool) {
	for _, p := range r.points[a] {
		if hash, told := r.at(b, p.Revision); told && p.Revision >= revision {
			revision, equal, ok = p.Revision, hash == p.Hash, true
		}
	}
	return revision, equal, ok
}

// count counts the hashes that the voters told at a revision.
func (r *Record) count(self uint64, voters []uint64, revision uint64) (minority, split bool) {
	own, _ := r.at(self, revision)
	counts, told, most := map[string]int{}, 0, ""
	for _, v := range voters {
		hash, ok := r.at(v, revision)
		if !ok {
			continue
		}
		told++
		counts[hash]++
		if counts[hash] > counts[most] {
			most = hash
		}
	}
	majority := counts[most] >= len(voters)/2+1
	return majority && most != own, !majority && told == len(voters)
}
