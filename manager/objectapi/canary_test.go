package objectapi_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/objects"
	"holdfast/manager/state/store"
	"holdfast/manager/state/store/storetest"
)

// canary begins every secret here. Its length is one of three, so that base64 shows it alike.
const canary = "canary-4711!"

// guard collects what is told and fails the test if a secret is in it.
type guard struct {
	t    *testing.T
	told strings.Builder
}

func (g *guard) tell(m interface {
	Marshal() ([]byte, error)
	String() string
}, err error,
) {
	g.t.Helper()
	text := ""
	if err != nil {
		text = err.Error() + errkind.Hint(err) + errkind.Status(err).Message()
	} else {
		data, err := m.Marshal()
		if err != nil {
			g.t.Fatal(err)
		}
		text = string(data) + m.String()
	}
	for _, form := range []string{
		canary, base64.StdEncoding.EncodeToString([]byte(canary)), hex.EncodeToString([]byte(canary)),
		fmt.Sprint([]byte(canary))[1:20],
	} {
		if strings.Contains(text, form) {
			g.t.Errorf("a secret is in %q", text)
		}
	}
	g.told.WriteString(text)
}

// keyed is a cluster that has a secret wherever it can have one.
func keyed(n int) *api.Cluster {
	key := func(what string) []byte { return fmt.Appendf(nil, "%s%s%d", canary, what, n) }
	return &api.Cluster{
		ID: "cluster", FIPS: n%2 == 0,
		Spec: api.ClusterSpec{Annotations: annotations("default"), CAConfig: api.CAConfig{SigningCAKey: key("signing")}},
		RootCA: api.RootCA{
			CAKey: key("ca"), CACert: []byte("cert"),
			RootRotation: &api.RootRotation{CAKey: key("rotation"), CACert: []byte("next")},
		},
		NetworkBootstrapKeys: []*api.EncryptionKey{{Key: key("bootstrap")}},
		UnlockKeys:           []*api.EncryptionKey{{Key: key("unlock")}, {Key: key("more")}},
	}
}

// guarded is a store whose secret and cluster were created, changed in all ways, removed and
// created again, in 10 revisions.
func guarded(t *testing.T) (*fixture, *storetest.Script) {
	f, s := newLog(t)
	update := func(fn func(*store.Tx) error) {
		t.Helper()
		if _, err := f.store.Update(t.Context(), fn); err != nil {
			t.Fatal(err)
		}
	}
	secretOf := func(n int, label string) *api.Secret {
		return &api.Secret{ID: "secret", Spec: api.SecretSpec{
			Annotations: annotations("sec", label), Data: fmt.Appendf(nil, "%s%d", canary, n),
		}}
	}
	replace := func(n int, label string) {
		update(func(tx *store.Tx) error {
			c, o := keyed(n), secretOf(n, label)
			c.Meta, o.Meta = store.Clusters.Get(tx, "cluster").Meta, store.Secrets.Get(tx, "secret").Meta
			if _, err := store.Clusters.Update(tx, c); err != nil {
				return err
			}
			_, err := store.Secrets.Update(tx, o)
			return err
		})
	}
	put := func(tx *store.Tx) error {
		if _, err := store.Clusters.Create(tx, keyed(0)); err != nil {
			return err
		}
		_, err := store.Secrets.Create(tx, secretOf(0, "a=b"))
		return err
	}
	update(put)                       // 1
	replace(1, "a=b")                 // 2: the data alone
	replace(3, "a=c")                 // 3: more than that
	update(func(tx *store.Tx) error { // 4: keys go
		c := store.Clusters.Get(tx, "cluster").Copy()
		c.UnlockKeys, c.RootCA.RootRotation, c.RootCA.CAKey = nil, nil, nil
		_, err := store.Clusters.Update(tx, c)
		return err
	})
	replace(5, "a=c") // 5: and come
	update(func(tx *store.Tx) error {
		if _, err := store.Clusters.Delete(tx, "cluster"); err != nil {
			return err
		}
		_, err := store.Secrets.Delete(tx, "secret")
		return err
	})
	update(put)                       // 7
	update(func(tx *store.Tx) error { // 8: more fields than are told one by one
		c, o := store.Clusters.Get(tx, "cluster").Copy(), store.Secrets.Get(tx, "secret").Copy()
		c.Spec.Annotations.Labels, o.Spec.Annotations.Labels = map[string]string{}, map[string]string{}
		for i := range 1200 {
			c.Spec.Annotations.Labels[fmt.Sprint("l", i)] = "x"
			o.Spec.Annotations.Labels[fmt.Sprint("l", i)] = "x"
		}
		c.Spec.CAConfig.SigningCAKey, o.Spec.Data = []byte(canary+"other"), []byte(canary+"other")
		c.RootCA.CAKey = []byte(canary + "other")
		if _, err := store.Clusters.Update(tx, c); err != nil {
			return err
		}
		_, err := store.Secrets.Update(tx, o)
		return err
	})
	f.txn(create(network("n"))) // 9
	f.txn(create(network("m"))) // 10
	return f, s
}

// No read of the past, and no error, gives a secret away.
func TestSecretsStayInside(t *testing.T) {
	f, s := guarded(t)
	g := &guard{t: t}
	if !strings.Contains(fmt.Sprint(string(store.Secrets.Get(f.store.Root(), "secret").Spec.Data)), canary) {
		t.Fatal("the store has no secret")
	}
	secretPaths := map[string]bool{}
	for _, kind := range []holdfast.Kind{holdfast.Kind_KIND_SECRET, holdfast.Kind_KIND_CLUSTER} {
		id, name := "secret", "sec"
		if kind == holdfast.Kind_KIND_CLUSTER {
			id, name = "cluster", "default"
		}
		for _, r := range []*holdfast.HistoryRequest{
			{Kind: kind, ID: id, Fields: true},
			{Kind: kind, Name: name, NewestFirst: true},
			{Kind: kind, ID: "nobody"},
		} {
			resp, err := f.History(t.Context(), r)
			g.tell(resp, err)
			for _, v := range resp.GetVersions() {
				noteSecrets(t, secretPaths, v.Fields)
			}
		}
		for from := uint64(0); from <= 10; from++ {
			for to := uint64(1); to <= 11; to++ { // 11 is to come
				if from > 1 && max(from, to)-min(from, to) > 2 {
					continue
				}
				for _, r := range []*holdfast.DiffRequest{{From: from, To: to, Kind: kind}, {From: from, To: to, Kind: kind, ID: id}} {
					resp, err := f.Diff(t.Context(), r)
					g.tell(resp, err)
					for _, d := range resp.GetObjects() {
						noteSecrets(t, secretPaths, d.Fields)
					}
				}
			}
		}
		tellReads(t, f, g, kind, id)
	}
	for _, floor := range []uint64{2, 8} { // versions of which only the object is known
		compact(t, s, floor)
		for kind, id := range map[holdfast.Kind]string{holdfast.Kind_KIND_SECRET: "secret", holdfast.Kind_KIND_CLUSTER: "cluster"} {
			resp, err := f.History(t.Context(), &holdfast.HistoryRequest{Kind: kind, ID: id})
			g.tell(resp, err)
			if len(resp.GetVersions()) == 0 || !resp.Versions[0].Compacted {
				t.Errorf("above %d: %v", floor, resp)
			}
		}
	}
	for _, path := range []string{
		"spec.data", "rootCa.caKey", "rootCa.rootRotation.caKey", "spec.caConfig.signingCaKey", "unlockKeys[1].key",
		"networkBootstrapKeys[0].key",
	} {
		if !secretPaths[path] {
			t.Errorf("%s was never told to differ", path)
		}
	}
	if !strings.Contains(g.told.String(), "secret") || !strings.Contains(g.told.String(), "cluster") {
		t.Error("nothing was collected")
	}
}

// noteSecrets notes the paths that are told as secret, and holds that they have no values.
func noteSecrets(t *testing.T, paths map[string]bool, fields []holdfast.FieldDiff) {
	t.Helper()
	for _, f := range fields {
		if f.Secret {
			paths[f.Path] = true
		}
		if f.Secret != (f.Old == "" && f.New == "") {
			t.Errorf("%v", f)
		}
	}
}

// tellReads tells what Read and Scan find, at every revision.
func tellReads(t *testing.T, f *fixture, g *guard, kind holdfast.Kind, id string) {
	t.Helper()
	for revision := uint64(1); revision <= 10; revision++ {
		then := f.at(revision)
		resp, err := then.Read(t.Context(), &holdfast.ReadRequest{Operations: []*holdfast.ReadOperation{
			getting(kind, id, ""), listing(&holdfast.ListRequest{Kind: kind}), listing(&holdfast.ListRequest{Kind: kind, KeysOnly: true}),
		}})
		g.tell(resp, err)
		for _, by := range []holdfast.Sort{holdfast.Sort_SORT_ID, holdfast.Sort_SORT_NAME} {
			got := &stream{ctx: t.Context()}
			if err := then.Scan(&holdfast.ListRequest{Kind: kind, Sort: by}, got); err != nil {
				t.Fatal(err)
			}
			for _, m := range got.sent {
				g.tell(m, nil)
			}
			if sent := got.sent[0].Objects; (len(sent) == 1) != (revision != 6) || len(sent) > 0 && !slices.Equal(ids(sent), []string{id}) {
				t.Errorf("at %d: %v", revision, ids(sent))
			}
		}
		if revision == 6 {
			continue
		}
		list, err := then.List(t.Context(), &holdfast.ListRequest{Kind: kind, Sort: holdfast.Sort_SORT_CHANGED, Descending: true})
		g.tell(list, err)
		if o := objects.Unwrap(list.GetObjects()[0]); o.GetID() != id {
			t.Errorf("at %d: %v", revision, o)
		}
	}
}
