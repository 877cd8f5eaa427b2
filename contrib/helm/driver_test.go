package helm_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/release"
	"helm.sh/helm/v4/pkg/release/common"
	v1 "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage"
	helmdriver "helm.sh/helm/v4/pkg/storage/driver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"holdfast/contrib/helm"
	"holdfast/internal/errkind"
	"holdfast/release/driver"
	"holdfast/release/driver/memory"
	"holdfast/release/driver/sql/sqlite"
)

func newMemory() *memory.Driver { return memory.New(time.Now) }

func newSQLite(t testing.TB) driver.Driver {
	t.Helper()
	d, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "db")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func stub(name string, version int, status common.Status) *v1.Release {
	return &v1.Release{
		Name: name, Version: version, Namespace: "elsewhere", Manifest: "kind: ConfigMap\n",
		Info:   &v1.Info{Status: status, Description: "a test", LastDeployed: time.Unix(1_700_000_000, 0).UTC()},
		Config: map[string]any{"replicas": 3.0},
		Labels: map[string]string{"team": "shop"},
	}
}

func asV1(t *testing.T, r release.Releaser) *v1.Release {
	t.Helper()
	rel, ok := r.(*v1.Release)
	require.True(t, ok, "%T", r)
	return rel
}

func key(name string, version int) string {
	return fmt.Sprintf("sh.helm.release.v1.%s.v%d", name, version)
}

// A record is what Helm's own driver makes of the release, byte by byte.
func TestRecordsAreHelms(t *testing.T) {
	clock := func() time.Time { return time.Unix(1_700_000_123, 0) }
	kube := fake.NewClientset().CoreV1().Secrets("default")
	theirs := helmdriver.NewSecrets(kube)
	below := newMemory()
	ours := helm.New(helm.Options{Driver: below, Namespace: "default", Clock: clock})
	rel := stub("web.v1", 12, common.StatusPendingInstall)
	k := key("web.v1", 12)
	check := func(without ...string) {
		t.Helper()
		want, err := kube.Get(t.Context(), k, metav1.GetOptions{})
		require.NoError(t, err)
		got, err := below.Get(t.Context(), driver.Key{Namespace: "default", Name: "sh.helm.release.v1.web.v1", Revision: 12})
		require.NoError(t, err)
		require.Equal(t, string(want.Data["release"]), string(got.Body))
		require.Equal(t, string(want.Type), got.Kind)
		require.Equal(t, "default/"+want.Name, got.Key.String())
		// The times are of another clock.
		wantLabels, gotLabels := maps.Clone(want.Labels), maps.Clone(got.Labels)
		for _, label := range append(without, "createdAt", "modifiedAt") {
			delete(wantLabels, label)
			delete(gotLabels, label)
		}
		require.Equal(t, wantLabels, gotLabels)
		require.Equal(t, "1700000123", got.Labels["createdAt"])
		_, modified := want.Labels["modifiedAt"]
		require.Equal(t, map[bool]string{true: "1700000123"}[modified], got.Labels["modifiedAt"])
	}
	require.NoError(t, theirs.Create(k, rel))
	require.NoError(t, ours.Create(k, rel))
	check()
	rel.Info.Status = common.StatusDeployed
	rel.Labels = map[string]string{"tier": "front"}
	require.NoError(t, theirs.Update(k, rel))
	require.NoError(t, ours.Update(k, rel))
	check()

	for name, d := range map[string]helmdriver.Driver{"theirs": theirs, "ours": ours} {
		got, err := d.Get(k)
		require.NoError(t, err, name)
		require.Equal(t, rel, got, name)
		found, err := d.Query(map[string]string{"name": "web.v1", "owner": "helm", "status": "deployed", "tier": "front"})
		require.NoError(t, err, name)
		require.Len(t, found, 1, name)
		require.Equal(t, "12", asV1(t, found[0]).Labels["version"], name)
		gone, err := d.Delete(k)
		require.NoError(t, err, name)
		require.Equal(t, rel, gone, name)
	}
}

func TestErrors(t *testing.T) {
	for name, below := range map[string]driver.Driver{"memory": newMemory(), "sqlite": newSQLite(t)} {
		t.Run(name, func(t *testing.T) {
			d := helm.New(helm.Options{Driver: below, Namespace: "default"})
			rel := stub("web", 1, common.StatusDeployed)
			k := key("web", 1)
			require.ErrorIs(t, d.Update(k, rel), helmdriver.ErrReleaseNotFound)
			_, err := d.Get(k)
			require.ErrorIs(t, err, helmdriver.ErrReleaseNotFound)
			_, err = d.Delete(k)
			require.ErrorIs(t, err, helmdriver.ErrReleaseNotFound)
			_, err = d.Query(map[string]string{"name": "web"})
			require.ErrorIs(t, err, helmdriver.ErrReleaseNotFound)
			none, err := d.List(func(release.Releaser) bool { return true })
			require.NoError(t, err)
			require.Empty(t, none)
			require.NoError(t, d.Create(k, rel))
			err = d.Create(k, rel)
			require.ErrorIs(t, err, helmdriver.ErrReleaseExists)
			require.True(t, errkind.Is(err, errkind.Exists))

			for _, bad := range []string{"", "web", "web.v", "web.v-1", "web.v01", "web.vx", ".v1"} {
				require.ErrorIs(t, d.Create(bad, rel), helmdriver.ErrInvalidKey, bad)
				require.ErrorIs(t, d.Update(bad, rel), helmdriver.ErrInvalidKey, bad)
				_, err := d.Get(bad)
				require.ErrorIs(t, err, helmdriver.ErrInvalidKey, bad)
				_, err = d.Delete(bad)
				require.ErrorIs(t, err, helmdriver.ErrInvalidKey, bad)
			}
			for _, bad := range []release.Releaser{nil, "text", (*v1.Release)(nil), &v1.Release{Name: "x"}} {
				require.True(t, errkind.Is(d.Create(key("x", 1), bad), errkind.Invalid))
			}
			require.NoError(t, d.Create(key("value", 1), *rel))
		})
	}
}

// One driver has one namespace, whatever the releases say; one without looks into all.
func TestNamespaces(t *testing.T) {
	below := newSQLite(t)
	in := func(namespace string) *helm.Driver {
		return helm.New(helm.Options{Driver: below, Namespace: namespace})
	}
	a, b, all := in("a"), in("b"), in("")
	rel := stub("web", 1, common.StatusDeployed)
	require.NoError(t, a.Create(key("web", 1), rel))
	_, err := b.Get(key("web", 1))
	require.ErrorIs(t, err, helmdriver.ErrReleaseNotFound)
	require.ErrorIs(t, b.Update(key("web", 1), rel), helmdriver.ErrReleaseNotFound)
	require.NoError(t, b.Create(key("web", 1), rel))
	for d, want := range map[*helm.Driver]int{a: 1, b: 1, all: 2} {
		found, err := d.Query(map[string]string{"name": "web"})
		require.NoError(t, err)
		require.Len(t, found, want)
		found, err = d.List(func(release.Releaser) bool { return true })
		require.NoError(t, err)
		require.Len(t, found, want)
	}
	_, err = all.Get(key("web", 1))
	require.True(t, errkind.Is(err, errkind.Invalid), "%v", err)
	require.True(t, errkind.Is(all.Create(key("web", 2), rel), errkind.Invalid))
}

// away is a backend that cannot be reached, and says so in words that mislead.
type away struct{ driver.Driver }

func (away) fail() error { return errkind.New(errkind.NoLeader, "host not found") }

func (a away) Create(context.Context, driver.Record) (driver.Head, error) {
	return driver.Head{}, a.fail()
}

func (a away) Get(context.Context, driver.Key) (driver.Record, error) {
	return driver.Record{}, a.fail()
}

func (a away) Query(context.Context, driver.Query) iter.Seq2[driver.Head, error] {
	return func(yield func(driver.Head, error) bool) { yield(driver.Head{}, a.fail()) }
}

// A backend that is away is not a release that is not there, not even for Helm, which looks
// for words.
func TestAwayIsNotNotFound(t *testing.T) {
	s := storage.Init(helm.New(helm.Options{Driver: away{}, Namespace: "default"}))
	_, getErr := s.Get("web", 1)
	_, deployedErr := s.Deployed("web")
	_, historyErr := s.History("web")
	_, lastErr := s.Last("web")
	_, listErr := s.ListReleases()
	_, deleteErr := s.Delete("web", 1)
	for i, err := range []error{
		getErr, deployedErr, historyErr, lastErr, listErr, deleteErr,
		s.Create(stub("web", 1, common.StatusDeployed)), s.Update(stub("web", 1, common.StatusDeployed)),
	} {
		require.Error(t, err, i)
		require.True(t, errkind.Is(err, errkind.NoLeader), "%d: %v", i, err)
		require.NotErrorIs(t, err, helmdriver.ErrReleaseNotFound, i)
		require.NotErrorIs(t, err, helmdriver.ErrNoDeployedReleases, i)
	}
}

// A release that cannot be read is an error, and not one that is not there.
func TestCorruptRelease(t *testing.T) {
	below := newMemory()
	d := helm.New(helm.Options{Driver: below, Namespace: "default"})
	require.NoError(t, d.Create(key("good", 1), stub("good", 1, common.StatusDeployed)))
	for i, body := range []string{"not base64!", "bm90IEpTT04=", "H4sIAAAAAAAA/w==", "bnVsbA=="} {
		r := driver.Record{Head: driver.Head{
			Key:  driver.Key{Namespace: "default", Name: "sh.helm.release.v1.bad", Revision: int64(i + 1)},
			Kind: helm.Kind, Status: driver.StatusDeployed, Overlap: true,
			Labels: map[string]string{"owner": "helm", "name": "bad"},
		}, Body: []byte(body)}
		_, err := below.Create(t.Context(), r)
		require.NoError(t, err)
		_, getErr := d.Get(key("bad", i+1))
		_, queryErr := d.Query(map[string]string{"name": "bad"})
		_, listErr := d.List(func(release.Releaser) bool { return true })
		for _, err := range []error{getErr, queryErr, listErr} {
			require.ErrorIs(t, err, driver.ErrCorrupt, body)
			require.NotErrorIs(t, err, helmdriver.ErrReleaseNotFound, body)
			e, ok := errors.AsType[*errkind.Error](err)
			require.True(t, ok)
			require.Contains(t, e.ID, "sh.helm.release.v1.bad.v")
		}
	}
	found, err := d.Query(map[string]string{"name": "good"})
	require.NoError(t, err)
	require.Len(t, found, 1)
}

// Records of other kinds are not Helm's to see.
func TestOtherKinds(t *testing.T) {
	below := newMemory()
	d := helm.New(helm.Options{Driver: below, Namespace: "default"})
	_, err := below.Create(t.Context(), driver.Record{Head: driver.Head{
		Key: driver.Key{Namespace: "default", Name: "sh.helm.release.v1.web", Revision: 1}, Kind: "stack", Status: driver.StatusDeployed,
	}, Body: []byte("x")})
	require.NoError(t, err)
	_, err = d.Get(key("web", 1))
	require.ErrorIs(t, err, helmdriver.ErrReleaseNotFound)
	require.ErrorIs(t, d.Update(key("web", 1), stub("web", 1, common.StatusDeployed)), helmdriver.ErrReleaseNotFound)
	_, err = d.Delete(key("web", 1))
	require.ErrorIs(t, err, helmdriver.ErrReleaseNotFound)
	require.ErrorIs(t, d.Create(key("web", 1), stub("web", 1, common.StatusDeployed)), helmdriver.ErrReleaseExists)
}

// Releases of more than a megabyte are stored: helm#6711.
func TestLargeRelease(t *testing.T) {
	d := helm.New(helm.Options{Driver: newSQLite(t), Namespace: "default"})
	rel := stub("big", 1, common.StatusDeployed)
	var b strings.Builder
	for i := range 400_000 { // text that does not compress well
		fmt.Fprintf(&b, "%x\n", uint64(i)*0x9e3779b97f4a7c15)
	}
	rel.Manifest = b.String()
	require.NoError(t, d.Create(key("big", 1), rel))
	got, err := d.Get(key("big", 1))
	require.NoError(t, err)
	require.Equal(t, rel, got)
}

// Updates at once all succeed, as in Helm, and leave one of them.
func TestUpdatesAtOnce(t *testing.T) {
	d := helm.New(helm.Options{Driver: newMemory(), Namespace: "default"})
	require.NoError(t, d.Create(key("web", 1), stub("web", 1, common.StatusPendingInstall)))
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if err := d.Update(key("web", 1), stub("web", 1, common.StatusDeployed)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	got, err := d.Get(key("web", 1))
	require.NoError(t, err)
	require.Equal(t, common.StatusDeployed, asV1(t, got).Info.Status)
}

func TestTimeout(t *testing.T) {
	d := helm.New(helm.Options{Driver: newMemory(), Namespace: "default", Timeout: time.Nanosecond})
	require.True(t, errkind.Is(d.Create(key("web", 1), stub("web", 1, common.StatusDeployed)), errkind.DeadlineReached))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d = helm.New(helm.Options{Driver: newMemory(), Namespace: "default", Context: ctx})
	require.True(t, errkind.Is(d.Create(key("web", 1), stub("web", 1, common.StatusDeployed)), errkind.Canceled))
}

func TestNameAndLogger(t *testing.T) {
	d := helm.New(helm.Options{Driver: newMemory()})
	require.Equal(t, "Holdfast/memory", d.Name())
	require.NotNil(t, d.Logger())
	var text strings.Builder
	d.SetLogger(slog.NewTextHandler(&text, nil))
	d.Logger().Info("hello")
	require.Contains(t, text.String(), "hello")
	d.SetLogger(nil)
	d.Logger().Info("not there")
	require.NotContains(t, text.String(), "not there")
}
