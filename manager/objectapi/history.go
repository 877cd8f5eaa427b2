package objectapi

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gogo/protobuf/types"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/kinds"
	"holdfast/manager/objects"
	"holdfast/manager/state"
	"holdfast/manager/state/store"
)

// History returns the versions of one object, or of all objects that have or had a name.
func (s *Server) History(ctx context.Context, r *holdfast.HistoryRequest) (*holdfast.HistoryResponse, error) {
	k, err := named(r.Kind, r.ID, r.Name)
	if err != nil {
		return nil, err
	}
	tx, token, err := s.beginHistory(ctx, r.Continue)
	if err != nil {
		return nil, err
	}
	log, err := logOf(tx)
	if err != nil {
		return nil, err
	}
	h := history{server: s, kind: k, log: log, tx: tx, floor: log.Floor(), ids: []string{r.ID}, fields: r.Fields}
	if token != nil { // of a manager that may have compacted more
		h.floor = max(h.floor, token.floor)
	}
	if r.Name != "" {
		if h.ids, err = h.everNamed(r.Name); err != nil {
			return nil, err
		}
	}
	if err := h.check(token, r.NewestFirst); err != nil {
		return nil, err
	}
	versions := h.versions(r.NewestFirst)
	if len(versions) == 0 {
		return nil, errkind.New(errkind.NotFound, "not found: nothing is known of it since revision %d, the floor", h.floor).
			On(k.Noun(), cmp.Or(r.ID, r.Name))
	}
	return h.page(ctx, h.rest(versions, token, r.NewestFirst), pageLimit(r.Limit, maxPage))
}

// beginHistory returns what a page shows, and where it goes on; nil if it is the first.
func (s *Server) beginHistory(ctx context.Context, continued string) (store.ReadTx, *historyToken, error) {
	if continued == "" {
		tx, err := s.reader.Read(ctx)
		return tx, nil, err
	}
	token, err := decodeHistoryToken(continued)
	if err != nil {
		return nil, nil, err
	}
	tx, err := s.at(ctx, token.revision)
	return tx, &token, err
}

// history makes the reply to a History.
type history struct {
	server *Server
	kind   kinds.Kind
	log    store.Log
	tx     store.ReadTx // the last state that is shown
	floor  uint64       // what is older is not
	ids    []string
	fields bool
}

// everNamed returns the IDs of the objects that have a name, or had it since the floor. It fails
// as Get does if several have it now.
func (h history) everNamed(name string) ([]string, error) {
	ids := map[string]bool{}
	o, err := h.kind.Get(h.tx, "", name)
	switch {
	case err == nil:
		ids[o.GetID()] = true
	case !errkind.Is(err, errkind.NotFound):
		return nil, err
	}
	has := nameIs(h.kind, name)
	for r := range h.log.Between(h.floor, h.log.Revision()) {
		for _, c := range r.Changes {
			if c.Kind == h.kind.Kind() && (has(c.Old) || has(c.New)) {
				ids[c.Object().GetID()] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(ids)), nil
}

// nameIs returns what tells whether an object, which may be nil, has a name.
func nameIs(k kinds.Kind, name string) func(state.Object) bool {
	name = strings.ToLower(name)
	return func(o state.Object) bool { return o != nil && strings.ToLower(k.NameOf(o)) == name }
}

// version is one version: a revision, and the object that it is of.
type version struct {
	revision uint64
	id       string
}

func (v version) compare(w version) int {
	return cmp.Or(cmp.Compare(v.revision, w.revision), cmp.Compare(v.id, w.id))
}

// versions returns all versions, in order: those in the log, and those that were current at the
// floor.
func (h history) versions(newestFirst bool) []version {
	var all []version
	for _, id := range h.ids {
		if o := h.base(id); o != nil {
			meta := o.GetMeta()
			all = append(all, version{meta.Version.Index, id})
		}
		for r := range h.log.Of(h.kind.Kind(), id) {
			if r.Revision > h.floor {
				all = append(all, version{r.Revision, id})
			}
		}
	}
	slices.SortFunc(all, func(a, b version) int {
		if newestFirst {
			a, b = b, a
		}
		return a.compare(b)
	})
	return all
}

// base returns an object as it was at the floor, or nil.
func (h history) base(id string) state.Object {
	for r, c := range h.log.Of(h.kind.Kind(), id) {
		if r.Revision > h.floor {
			return c.Old
		}
	}
	return h.kind.Find(h.tx, id)
}

// check tells whether a history can go on where it ended: nothing of what follows, and nothing
// by which objects were found, was compacted since.
func (h history) check(token *historyToken, newestFirst bool) error {
	if token == nil || token.floor == h.floor {
		return nil
	}
	lost := token.last < h.floor || newestFirst && token.last == h.floor
	if lost || token.objects != sumOf(h.ids) {
		return h.log.Check(token.floor)
	}
	return nil
}

// rest returns the versions that follow a token's.
func (history) rest(versions []version, token *historyToken, newestFirst bool) []version {
	if token == nil {
		return versions
	}
	last := version{token.last, token.id}
	i := slices.IndexFunc(versions, func(v version) bool {
		c := v.compare(last)
		return c > 0 && !newestFirst || c < 0 && newestFirst
	})
	if i < 0 {
		return nil
	}
	return versions[i:]
}

// page makes the reply of the first versions.
func (h history) page(ctx context.Context, versions []version, limit int) (*holdfast.HistoryResponse, error) {
	resp := &holdfast.HistoryResponse{Revision: h.log.Revision(), Floor: h.floor}
	bytes := 0
	for i, v := range versions {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var told *holdfast.Version
		if i < limit {
			var err error
			if told, err = h.tell(v); err != nil {
				return nil, err
			}
			bytes += told.Size()
		}
		if i == limit || i > 0 && bytes > h.server.pageBytes {
			last := versions[i-1]
			resp.Continue = historyToken{
				revision: h.log.Revision(), floor: h.floor, objects: sumOf(h.ids), last: last.revision, id: last.id,
			}.encode()
			break
		}
		resp.Versions = append(resp.Versions, told)
	}
	return resp, nil
}

// tell tells one version.
func (h history) tell(v version) (*holdfast.Version, error) {
	if v.revision <= h.floor {
		return h.tellCompacted(v)
	}
	r, _ := h.log.Get(v.revision)
	c, ok := r.Change(h.kind.Kind(), v.id)
	if !ok {
		return nil, errkind.New(errkind.Internal, "revision %d does not have it", v.revision).On(h.kind.Noun(), v.id)
	}
	told := &holdfast.Version{
		Revision: r.Revision, Action: actionOf(c.Old, c.New), Object: objects.Wrap(objects.Redact(c.Object())),
		At: timestamp(r.At), Actor: r.Request.Caller, Message: r.Request.Message,
	}
	if h.fields && told.Action == holdfast.Action_ACTION_UPDATE {
		var err error
		if told.Fields, err = h.server.fieldsOf(h.kind, c.Old, c.New); err != nil {
			return nil, err
		}
	}
	return told, nil
}

// tellCompacted tells the version that was current at the floor: what it did is in its meta.
func (h history) tellCompacted(v version) (*holdfast.Version, error) {
	o := h.base(v.id)
	if o == nil {
		return nil, errkind.New(errkind.Internal, "it was not there at the floor").On(h.kind.Noun(), v.id)
	}
	meta := o.GetMeta()
	action := holdfast.Action_ACTION_UPDATE
	if meta.CreatedVersion.Index == meta.Version.Index {
		action = holdfast.Action_ACTION_CREATE
	}
	return &holdfast.Version{
		Revision: v.revision, Action: action, Object: objects.Wrap(objects.Redact(o)), At: meta.UpdatedAt, Compacted: true,
	}, nil
}

// actionOf tells what became of an object.
func actionOf(before, after state.Object) holdfast.Action {
	switch {
	case before == nil:
		return holdfast.Action_ACTION_CREATE
	case after == nil:
		return holdfast.Action_ACTION_REMOVE
	}
	return holdfast.Action_ACTION_UPDATE
}

// fieldsOf tells in which fields two versions of an object differ. Values are of what a client
// may see.
func (s *Server) fieldsOf(k kinds.Kind, before, after state.Object) ([]holdfast.FieldDiff, error) {
	fields, err := s.differ.Diff(before, after, objects.Redact(before), objects.Redact(after))
	if err != nil {
		return nil, errkind.New(errkind.Internal, "its versions cannot be compared: %v", err).On(k.Noun(), after.GetID())
	}
	out := make([]holdfast.FieldDiff, len(fields))
	for i, f := range fields {
		out[i] = holdfast.FieldDiff{Path: f.Path, Old: f.Old, New: f.New, Secret: f.Secret}
	}
	return out, nil
}

func timestamp(t time.Time) *types.Timestamp {
	return &types.Timestamp{Seconds: t.Unix(), Nanos: int32(t.Nanosecond())} //nolint:gosec // below 1e9
}
