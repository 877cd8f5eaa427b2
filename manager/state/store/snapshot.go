package store

import (
	"errors"
	"fmt"
	"io"
	"slices"

	memdb "github.com/hashicorp/go-memdb"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/mutant"
	"holdfast/manager/state"
)

// Sections of a snapshot, in this order.
const (
	sectionHeader   = "header"   // one SnapshotHeader
	sectionObjects  = "objects"  // StoreActions: the objects at the floor
	sectionLog      = "log"      // LogRecords: the revisions after the floor
	sectionRequests = "requests" // RequestRecords, in the order of revisions
)

// sectionAt gives the place of a section in a snapshot, or -1.
func sectionAt(name string) int {
	return slices.Index([]string{sectionHeader, sectionObjects, sectionLog, sectionRequests}, name)
}

// image is a root to save.
type image struct {
	root      *root
	clusterID string
	planted   mutant.Set
}

// Image returns the present state, for a snapshot.
func (s *MemoryStore) Image() state.Image {
	return &image{root: s.root.Load(), clusterID: s.opts.ClusterID, planted: s.opts.Planted}
}

// Applied tells which index the image is of, and the membership there.
func (m *image) Applied() state.Applied {
	r := m.root
	return state.Applied{
		Index: r.index, Term: r.term, Revision: r.revision, Hash: r.hash, Peers: r.peers, Removed: r.removed,
	}
}

// Save writes the image.
func (m *image) Save(w state.SectionWriter) error {
	for _, section := range []struct {
		name string
		save func(emit func(marshaler) error) error
	}{
		{sectionHeader, func(emit func(marshaler) error) error { return emit(m.header()) }},
		{sectionObjects, m.saveObjects},
		{sectionLog, m.saveLog},
		{sectionRequests, m.saveRequests},
	} {
		if err := w.Section(section.name); err != nil {
			return fmt.Errorf("save section %s: %w", section.name, err)
		}
		err := section.save(func(r marshaler) error {
			data, err := r.Marshal()
			if err != nil {
				return err
			}
			return w.Record(data)
		})
		if err != nil {
			return fmt.Errorf("save section %s: %w", section.name, err)
		}
	}
	return nil
}

type marshaler interface{ Marshal() ([]byte, error) }

func (m *image) header() *holdfast.SnapshotHeader {
	r := m.root
	h := &holdfast.SnapshotHeader{
		Index: r.index, Term: r.term, Revision: r.revision, Floor: r.log.floor, Incarnation: r.incarnation,
		TransactionID: r.txnID, Hash: r.hash, Removed: r.removed, At: timestamp(r.at),
		ClusterID: m.clusterID, RequestsFloor: r.requests.floor,
	}
	if m.planted.Has(mutant.RequestFloorMissing) {
		h.RequestsFloor = 0
	}
	for i := range r.peers {
		h.Peers = append(h.Peers, &r.peers[i])
	}
	return h
}

// saveObjects writes the objects as they were at the floor: those of the root, with the
// changes of the log taken back.
func (m *image) saveObjects(emit func(marshaler) error) error {
	if m.planted.Has(mutant.ObjectMissing) {
		emit = butLast(emit)
	}
	tx := m.root.read()
	before := map[objectKey]state.Object{} // at the floor, of each object that the log changed
	var changed []state.Change             // the first change of each
	for _, e := range m.root.log.entries {
		for _, c := range e.changes {
			key := objectKey{c.Kind, c.Object().GetID()}
			if _, ok := before[key]; !ok {
				before[key] = c.Old
				changed = append(changed, c)
			}
		}
	}
	for _, t := range tables {
		err := t.Save(tx, func(a api.StoreAction) error {
			if _, ok := before[objectKey{t.Kind, actionID(&a)}]; ok {
				return nil
			}
			return emit(&a)
		})
		if err != nil {
			return err
		}
	}
	for _, c := range changed {
		if c.Old == nil {
			continue
		}
		a := tableOf(c.Kind).NewStoreAction(state.Change{Kind: c.Kind, New: c.Old})
		if err := emit(&a); err != nil {
			return err
		}
	}
	return nil
}

// actionID returns the ID of the object in an action.
func actionID(a *api.StoreAction) string {
	switch t := a.Target.(type) {
	case *api.StoreAction_Node:
		return t.Node.ID
	case *api.StoreAction_Service:
		return t.Service.ID
	case *api.StoreAction_Task:
		return t.Task.ID
	case *api.StoreAction_Network:
		return t.Network.ID
	case *api.StoreAction_Cluster:
		return t.Cluster.ID
	case *api.StoreAction_Secret:
		return t.Secret.ID
	case *api.StoreAction_Config:
		return t.Config.ID
	}
	return ""
}

func (m *image) saveLog(emit func(marshaler) error) error {
	for _, e := range m.root.log.entries {
		h := e.header()
		t := &holdfast.Transaction{
			ID: h.ID, Parent: h.Parent, Revision: h.Revision, Term: h.Term, At: h.At,
			RequestID: h.RequestID, Digest: h.Digest, Caller: h.Caller, Message: h.Message,
		}
		for _, c := range e.changes {
			a := tableOf(c.Kind).NewStoreAction(c)
			t.Actions = append(t.Actions, &a)
		}
		record := &holdfast.LogRecord{Transaction: t, Hash: e.hash, SizeBytes: uint64(e.size)} //nolint:gosec // a length
		if err := emit(record); err != nil {
			return err
		}
	}
	return nil
}

func (m *image) saveRequests(emit func(marshaler) error) error {
	if m.planted.Has(mutant.RequestsMissing) {
		return nil
	}
	for _, r := range m.root.requests.records {
		if err := emit(r); err != nil {
			return err
		}
	}
	return nil
}

// Restore replaces everything by a snapshot: it is read into a fresh database, checked, and
// then swapped in. If it fails, nothing has changed.
func (s *MemoryStore) Restore(r state.SectionReader) error {
	next, err := s.load(r)
	if err != nil {
		return fmt.Errorf("restore snapshot: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.head = nil
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	s.queue.opened = 0
	s.reset(next) // before settle: who hears that it is committed reads it
	s.settle(next)
	return nil
}

// settle tells what waits how it came out, as far as the snapshot's log tells. Both locks are
// held.
func (s *MemoryStore) settle(next *root) {
	var keep []*pending
	for _, p := range s.queue.waiting {
		e := next.log.entry(p.entry.revision)
		switch {
		case next.term > p.entry.term && s.opts.Planted.Has(mutant.OvertakenAfterJump):
			s.queue.tell(p, errNotLeading("another leader was elected before it was replicated"))
		case p.entry.revision <= next.log.floor:
			s.queue.tell(p, errUnknown("the log was compacted before it was seen", nil))
		case e != nil && string(e.txnID) == string(p.entry.txnID):
			s.queue.tell(p, nil)
		case e != nil || next.term > p.entry.term:
			s.queue.tell(p, errNotLeading("another leader was elected before it was replicated"))
		default:
			keep = append(keep, p)
			continue
		}
		s.queue.bytes -= len(p.raw)
	}
	s.queue.handed -= len(s.queue.waiting) - len(keep)
	s.queue.handed = max(s.queue.handed, 0)
	s.queue.waiting = keep
	s.queue.signalLocked()
}

// load reads a snapshot into a fresh root.
func (s *MemoryStore) load(r state.SectionReader) (*root, error) {
	db, err := newDB()
	if err != nil {
		return nil, err
	}
	l := loader{store: s, txn: db.Txn(true), next: &root{position: position{db: db}, versions: &s.versions}, requests: map[requestKey]uint64{}}
	defer l.txn.Abort()
	for {
		section, record, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := l.record(section, record); err != nil {
			return nil, fmt.Errorf("section %s: %w", section, err)
		}
	}
	if err := l.check(); err != nil {
		return nil, err
	}
	l.txn.Commit()
	return l.next, nil
}

type loader struct {
	store  *MemoryStore
	txn    *memdb.Txn
	next   *root
	header *holdfast.SnapshotHeader

	requests map[requestKey]uint64 // revisions, of those that were read

	section int    // place of the last record's
	table   int    // place of the last table that objects came of
	object  string // highest ID of its objects
	request uint64 // revision of the last request
}

func (l *loader) record(section string, data []byte) error {
	if l.header == nil {
		if section != sectionHeader {
			return errors.New("comes before the header")
		}
		return l.loadHeader(data)
	}
	at := sectionAt(section)
	if at < l.section {
		return errors.New("is unknown to this version, or out of order, or comes twice")
	}
	l.section = at
	switch section {
	case sectionObjects:
		return l.loadObject(data)
	case sectionLog:
		return l.loadLog(data)
	case sectionRequests:
		return l.loadRequest(data)
	}
	return errors.New("comes twice")
}

func (l *loader) loadHeader(data []byte) error {
	h := &holdfast.SnapshotHeader{}
	if err := h.Unmarshal(data); err != nil {
		return err
	}
	if h.ClusterID != l.store.opts.ClusterID {
		return fmt.Errorf("is of cluster %s, this is %s", h.ClusterID, l.store.opts.ClusterID)
	}
	l.header = h
	n := l.next
	n.index, n.term, n.incarnation, n.removed = h.Index, h.Term, h.Incarnation, h.Removed
	n.log.floor, n.revision = h.Floor, h.Floor
	n.requests.floor = h.RequestsFloor
	for _, p := range h.Peers {
		n.peers = append(n.peers, *p)
	}
	return nil
}

func (l *loader) loadObject(data []byte) error {
	a := &api.StoreAction{}
	if err := a.Unmarshal(data); err != nil {
		return err
	}
	id := actionID(a)
	for i, t := range tables {
		later := i > l.table || i == l.table && id > l.object
		ok, err := t.Restore(l.txn, a, later)
		if !ok {
			continue
		}
		if later {
			l.table, l.object = i, id
		}
		return err
	}
	return errors.New("holds an object of a kind that this version does not know")
}

// loadRequest adds a record to the request table, which remembers the last ones, in the order
// of their revisions.
func (l *loader) loadRequest(data []byte) error {
	r := &holdfast.RequestRecord{}
	if err := r.Unmarshal(data); err != nil {
		return err
	}
	if r.Revision <= max(l.request, l.header.RequestsFloor) || r.Revision > l.header.Revision {
		return fmt.Errorf("request of revision %d follows one of revision %d", r.Revision, l.request)
	}
	key := keyOf(r.Caller, r.ID)
	if known := l.requests[key]; known != 0 {
		return fmt.Errorf("the request of revision %d comes again at revision %d", known, r.Revision)
	}
	l.requests[key] = r.Revision
	l.request = r.Revision
	l.next.requests.records = append(l.next.requests.records, storeRequest(r))
	return nil
}

func (l *loader) loadLog(data []byte) error {
	var r holdfast.LogRecord
	if err := r.Unmarshal(data); err != nil {
		return err
	}
	t := r.Transaction
	if t == nil || t.Revision != l.next.revision+1 {
		return fmt.Errorf("revision %d follows revision %d", t.GetRevision(), l.next.revision)
	}
	e := &logEntry{
		revision: t.Revision, term: t.Term, txnID: t.ID, parent: t.Parent, at: t.At, hash: r.Hash,
		size:    int(r.SizeBytes), //nolint:gosec // at most a transaction's size
		request: state.Request{ID: t.RequestID, Digest: t.Digest, Caller: t.Caller, Message: t.Message},
	}
	for _, a := range t.Actions {
		c, err := ApplyStoreAction(l.txn, a)
		if err != nil {
			return fmt.Errorf("revision %d: %w", t.Revision, err)
		}
		e.changes = append(e.changes, c)
	}
	n := l.next
	n.revision = e.revision
	n.log.entries = append(n.log.entries, e)
	n.log.bytes += e.size
	n.hash, n.txnID = e.hash, e.txnID
	return nil
}

// check compares what was read with the header.
func (l *loader) check() error {
	h, n := l.header, l.next
	switch {
	case h == nil:
		return errors.New("has no header")
	case n.revision != h.Revision:
		return fmt.Errorf("its log ends at revision %d, its header says %d", n.revision, h.Revision)
	case len(n.log.entries) > 0 && (string(n.hash) != string(h.Hash) || string(n.txnID) != string(h.TransactionID)):
		return fmt.Errorf("its log ends in another state than its header says, at revision %d", n.revision)
	}
	n.hash, n.txnID, n.at = h.Hash, h.TransactionID, fromTimestamp(h.At)
	if l.store.opts.Planted.Has(mutant.FloorMissing) {
		n.log = changeLog{floor: n.revision}
	}
	return nil
}
