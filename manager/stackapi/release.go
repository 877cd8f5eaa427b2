package stackapi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gogo/protobuf/types"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/internal/id"
	"holdfast/manager/state/store"
	"holdfast/release/driver"
	"holdfast/release/storage"
)

// Labels of a record's head: what can be told of a release without its body.
const (
	labelActor      = "actor"
	labelMessage    = "message"
	labelCreated    = "created"
	labelUpdated    = "updated"
	labelRemoved    = "removed"
	labelRollbackOf = "rollback_of"
	labelContent    = "content"  // digest of what was deployed
	labelAt         = "at"       // time of the deployment; older records lack it
	labelRevision   = "revision" // of the store, where that did not make the record then
	labelObjects    = "objects." // and a number: IDs of secrets and configs, one after the other
)

// Bounds of what a release names. The labels of a head have 32 KiB.
const (
	maxReleaseObjects = 1000
	objectsOfLabel    = driver.MaxLabelValue / id.Length
	maxSaid           = 2 << 10 // bytes of who, and of why
)

// content is the body of a record, as JSON.
type content struct {
	// Request is what was deployed: a DeployRequest without data, that names the objects which
	// have it as staged.
	Request json.RawMessage `json:"request"`
	// Compose is the file that it was made of.
	Compose    string `json:"compose,omitempty"`
	RollbackOf uint64 `json:"rollbackOf,omitempty"`
}

// keepRequest makes of a request what its release is to keep of it: all that is not the doing
// of this one call, without data. The names of objects are left to the transaction.
func (s *Server) keepRequest(d *desired, r *holdfast.DeployRequest) error {
	kept := &holdfast.DeployRequest{
		Name: r.Name, Services: r.Services, Networks: r.Networks, ExternalNetworks: r.ExternalNetworks,
		ExternalSecrets: r.ExternalSecrets, ExternalConfigs: r.ExternalConfigs, KeepOthers: r.KeepOthers,
		Secrets: slices.Clone(r.Secrets), Configs: slices.Clone(r.Configs),
	}
	for i := range kept.Secrets {
		kept.Secrets[i].Data = nil
	}
	for i := range kept.Configs {
		kept.Configs[i].Data = nil
	}
	var err error
	if d.request, err = s.json.Marshal(kept); err != nil {
		return fmt.Errorf("keep the request: %w", err)
	}
	d.digest = sha256.Sum256(append(append(slices.Clone(d.request), 0), d.compose...))
	return nil
}

// contentDigest tells what is deployed from what else could be.
func (d *deployment) contentDigest(want *desired) string {
	h := sha256.New()
	h.Write(want.digest[:])
	for _, names := range []map[string]string{d.secretNames, d.configNames} {
		for _, name := range slices.Sorted(maps.Keys(names)) {
			fmt.Fprintf(h, "%q=%q\n", name, names[name]) //nolint:errcheck // a hash takes everything
		}
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))
}

// body makes the body of the release's record.
func (d *deployment) body(want *desired) ([]byte, error) {
	request := slices.Clone(want.request[:len(want.request)-1]) // it has a name at least
	for _, staged := range []struct {
		field string
		names map[string]string
	}{{"stagedSecrets", d.secretNames}, {"stagedConfigs", d.configNames}} {
		if len(staged.names) == 0 {
			continue
		}
		names, err := json.Marshal(staged.names)
		if err != nil {
			return nil, fmt.Errorf("encode the release: %w", err)
		}
		request = fmt.Appendf(request, ",%q:%s", staged.field, names)
	}
	b, err := json.Marshal(content{Request: append(request, '}'), Compose: want.compose, RollbackOf: want.rollbackOf})
	if err != nil {
		return nil, fmt.Errorf("encode the release: %w", err)
	}
	return storage.Encode(b)
}

// deployed returns the record of the release that is deployed, or nil.
func (d *deployment) deployed() *record { return deployedOf(d.records.all) }

func deployedOf(all []*record) *record {
	for _, r := range slices.Backward(all) {
		if r.Status == driver.StatusDeployed {
			return r
		}
	}
	return nil
}

// expected holds the release that is deployed to the one that the caller expects.
func (d *deployment) expected(expect *uint64) error {
	if expect == nil {
		return nil
	}
	deployed := d.deployed()
	now := uint64(0)
	if deployed != nil {
		now = deployed.number()
	}
	if now == *expect {
		return nil
	}
	e := &errkind.Error{Kind: errkind.OutOfSequence, Field: "expect_release", Seen: *expect, Now: now}
	wanted := fmt.Sprintf("release %d was expected", *expect)
	if *expect == 0 {
		wanted = "none was expected"
	}
	e.Msg = "no release is deployed; " + wanted
	if deployed != nil {
		said := []string{fmt.Sprintf("release %d came first", now)}
		if actor := deployed.Labels[labelActor]; actor != "" {
			said[0] += ", by " + actor
		}
		if message := deployed.Labels[labelMessage]; message != "" {
			said = append(said, strconv.Quote(message))
		}
		e.Msg = strings.Join(said, ": ") + "; " + wanted
	}
	return e.On("stack", d.stack).WithHint("see what is deployed now, and deploy again from there")
}

// labels makes the labels of the release's head.
func (d *deployment) labels(want *desired, digest string) (map[string]string, error) {
	counts := map[holdfast.StackChange_Action]uint64{}
	for _, c := range d.changes {
		counts[c.Action]++
	}
	labels := map[string]string{labelContent: digest}
	for key, value := range map[string]string{
		// Of these the caller may say what no label can be.
		labelActor: plain(d.request.Caller), labelMessage: plain(d.request.Message),
		labelCreated:    number(counts[holdfast.StackChange_CREATED]),
		labelUpdated:    number(counts[holdfast.StackChange_UPDATED]),
		labelRemoved:    number(counts[holdfast.StackChange_REMOVED]),
		labelRollbackOf: number(want.rollbackOf), labelAt: d.tx.Now().UTC().Format(time.RFC3339Nano),
	} {
		if value != "" {
			labels[key] = value
		}
	}
	slices.Sort(d.ids)
	ids := slices.Compact(d.ids)
	if len(ids) > maxReleaseObjects {
		return nil, (&errkind.Error{
			Kind: errkind.Limit, Max: fmt.Sprintf("%d secrets and configs", maxReleaseObjects),
			Msg:  fmt.Sprintf("has %d secrets and configs, at most %d are allowed", len(ids), maxReleaseObjects),
			Hint: "deploy it as several stacks",
		}).On("stack", d.stack)
	}
	i := 0
	for some := range slices.Chunk(ids, objectsOfLabel) {
		labels[labelObjects+strconv.Itoa(i)] = strings.Join(some, "")
		i++
	}
	return labels, nil
}

// plain makes a text what a label can be.
func plain(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) > maxSaid {
		text = strings.ToValidUTF8(text[:maxSaid], "")
	}
	return text
}

// number gives a number as a label; 0 is none.
func number(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

// number returns the number of a release.
func (r *record) number() uint64 {
	return uint64(r.Key.Revision) //nolint:gosec // it is not below 0
}

// count returns a number that a label has; 0 if there is none.
func (r *record) count(label string) uint64 {
	n, err := strconv.ParseUint(r.Labels[label], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// addObjects adds the IDs of the secrets and configs that a release names.
func (r *record) addObjects(to map[string]bool) {
	for i := 0; ; i++ {
		ids, ok := r.Labels[labelObjects+strconv.Itoa(i)]
		if !ok {
			return
		}
		for ; len(ids) >= id.Length; ids = ids[id.Length:] {
			to[ids[:id.Length]] = true
		}
	}
}

// portable gives the labels of a record with what else would get lost where another one makes the
// record anew: when the release was deployed.
func (r *record) portable() map[string]string {
	labels := maps.Clone(r.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	if labels[labelAt] == "" {
		labels[labelAt] = r.Created.Format(time.RFC3339Nano)
	}
	if r.revision != 0 {
		labels[labelRevision] = number(r.revision)
	}
	return labels
}

// release tells of a record. What cannot be read of it is told, too.
func (r *record) release() *holdfast.Release {
	out := &holdfast.Release{Number: r.number(), Status: string(r.Status), Revision: r.revision}
	if r.damaged != nil {
		out.Message = r.damaged.Error()
		return out
	}
	at, err := time.Parse(time.RFC3339Nano, r.Labels[labelAt])
	if err != nil {
		at = r.Created
	}
	out.At = &types.Timestamp{Seconds: at.Unix(), Nanos: int32(at.Nanosecond())} //nolint:gosec // below 1e9
	out.Actor, out.Message = r.Labels[labelActor], r.Labels[labelMessage]
	out.RollbackOf = r.count(labelRollbackOf)
	out.Created = uint32(r.count(labelCreated)) //nolint:gosec // a release names at most 1000
	out.Updated = uint32(r.count(labelUpdated)) //nolint:gosec // as above
	out.Removed = uint32(r.count(labelRemoved)) //nolint:gosec // as above
	return out
}

// request reads what a release deployed.
func (s *Server) request(tx store.ReadTx, r *record) (*holdfast.DeployRequest, content, error) {
	body, err := readBody(tx, r)
	if err != nil {
		return nil, content{}, driver.On(err, r.Key)
	}
	packed, err := storage.Decode(body)
	if err != nil {
		return nil, content{}, driver.On(err, r.Key)
	}
	var c content
	request := &holdfast.DeployRequest{}
	if err := json.Unmarshal(packed, &c); err != nil {
		return nil, content{}, driver.Corrupt(r.Key, "body", "%v", err)
	}
	if err := s.json.Unmarshal(c.Request, request); err != nil {
		return nil, content{}, driver.Corrupt(r.Key, "body", "%v", err)
	}
	return request, c, nil
}
