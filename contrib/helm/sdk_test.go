package helm_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/action"
	chartcommon "helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	kubefake "helm.sh/helm/v4/pkg/kube/fake"
	"helm.sh/helm/v4/pkg/release"
	"helm.sh/helm/v4/pkg/release/common"
	v1 "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage"
	helmdriver "helm.sh/helm/v4/pkg/storage/driver"

	"holdfast/client"
	"holdfast/contrib/helm"
	"holdfast/manager"
	"holdfast/release/driver"
	"holdfast/release/driver/object"
)

// newCluster makes a driver on the configs of a real cluster, of one manager.
func newCluster(t *testing.T) driver.Driver {
	t.Helper()
	dir := t.TempDir()
	ready := make(chan manager.Ready, 1)
	m, err := manager.Open(t.Context(), manager.Config{
		StateDir: dir, Control: filepath.Join(dir, "s"), Remote: "127.0.0.1:0", Hostname: "m1",
		ReadyTimeout: time.Minute, Logger: slog.New(slog.DiscardHandler),
		Ready: func(r manager.Ready) { ready <- r },
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	r := <-ready // or the test's own deadline
	c, err := client.New(client.Options{Endpoints: []string{"unix://" + r.Control}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return object.New(object.Options{
		Name: "object/config", Store: object.NewClient(c), Planner: object.Planner{Clock: time.Now, Random: rand.Reader},
	})
}

// program is one that embeds the SDK.
type program struct {
	t   *testing.T
	cfg *action.Configuration
	out bytes.Buffer
}

func newProgram(t *testing.T, below driver.Driver) *program {
	p := &program{t: t, cfg: action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))}
	p.cfg.Releases = storage.Init(helm.New(helm.Options{Driver: below, Namespace: "default"}))
	p.cfg.KubeClient = &kubefake.PrintingKubeClient{Out: &p.out, LogOutput: io.Discard}
	p.cfg.Capabilities = chartcommon.DefaultCapabilities
	return p
}

func (p *program) chart(version string) *chart.Chart {
	return &chart.Chart{
		Metadata: &chart.Metadata{APIVersion: chart.APIVersionV2, Name: "shop", Version: version},
		Templates: []*chartcommon.File{{
			Name: "templates/config.yaml",
			Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {color: {{ .Values.color }}}\n"),
		}},
		Values: map[string]any{"color": "red"},
	}
}

func (p *program) install(name string, labels map[string]string) *v1.Release {
	p.t.Helper()
	i := action.NewInstall(p.cfg)
	i.ReleaseName, i.Namespace, i.Labels = name, "default", labels
	i.WaitStrategy = "hookOnly"
	rel, err := i.RunWithContext(p.t.Context(), p.chart("0.1.0"), nil)
	require.NoError(p.t, err)
	return asV1(p.t, rel)
}

func (p *program) upgrade(name, color string) *v1.Release {
	p.t.Helper()
	u := action.NewUpgrade(p.cfg)
	u.Namespace, u.MaxHistory = "default", 3
	u.WaitStrategy = "hookOnly"
	rel, err := u.RunWithContext(p.t.Context(), name, p.chart("0.2.0"), map[string]any{"color": color})
	require.NoError(p.t, err)
	return asV1(p.t, rel)
}

// list gives "NAME.vREVISION STATUS" of what helm list shows.
func (p *program) list(selector string) []string {
	p.t.Helper()
	l := action.NewList(p.cfg)
	l.All, l.StateMask, l.Selector = true, action.ListAll, selector
	found, err := l.Run()
	require.NoError(p.t, err)
	return texts(p.t, found)
}

func texts(t *testing.T, releases []release.Releaser) []string {
	t.Helper()
	var all []string
	for _, r := range releases {
		rel := asV1(t, r)
		all = append(all, key(rel.Name, rel.Version)[len("sh.helm.release.v1."):]+" "+rel.Info.Status.String())
	}
	return all
}

func (p *program) history(name string) []string {
	p.t.Helper()
	found, err := action.NewHistory(p.cfg).Run(name)
	require.NoError(p.t, err)
	return texts(p.t, found)
}

// A program that embeds the SDK does with its releases in Holdfast what it does with them in
// Kubernetes.
func TestSDKProgram(t *testing.T) {
	for name, below := range map[string]func(t *testing.T) driver.Driver{
		"memory":  func(*testing.T) driver.Driver { return newMemory() },
		"sqlite":  func(t *testing.T) driver.Driver { return newSQLite(t) },
		"cluster": newCluster,
	} {
		t.Run(name, func(t *testing.T) { testProgram(t, below(t)) })
	}
}

func testProgram(t *testing.T, below driver.Driver) {
	p := newProgram(t, below)
	first := p.install("web", map[string]string{"team": "shop"})
	require.Equal(t, 1, first.Version)
	require.Contains(t, first.Manifest, "color: red")
	p.install("api.v2", nil)
	require.Equal(t, []string{"api.v2.v1 deployed", "web.v1 deployed"}, p.list(""))
	require.Equal(t, []string{"web.v1 deployed"}, p.list("team=shop"))

	again := action.NewInstall(p.cfg)
	again.ReleaseName, again.Namespace = "web", "default"
	_, err := again.RunWithContext(t.Context(), p.chart("0.1.0"), nil)
	require.ErrorContains(t, err, "cannot reuse a name that is still in use")

	second := p.upgrade("web", "blue")
	require.Equal(t, 2, second.Version)
	require.Contains(t, second.Manifest, "color: blue")
	require.Equal(t, []string{"web.v1 superseded", "web.v2 deployed"}, p.history("web"))

	back := action.NewRollback(p.cfg)
	back.Version, back.WaitStrategy, back.ServerSideApply = 1, "hookOnly", "auto"
	require.NoError(t, back.Run("web"))
	require.Equal(t, []string{"web.v1 superseded", "web.v2 superseded", "web.v3 deployed"}, p.history("web"))
	got, err := action.NewGet(p.cfg).Run("web")
	require.NoError(t, err)
	require.Contains(t, asV1(t, got).Manifest, "color: red")
	require.Equal(t, "shop", asV1(t, got).Labels["team"])

	// Another program, which opens the same backend, sees the same; only three revisions stay.
	p = newProgram(t, below)
	p.upgrade("web", "green")
	require.Equal(t, []string{"web.v2 superseded", "web.v3 superseded", "web.v4 deployed"}, p.history("web"))

	keep := action.NewUninstall(p.cfg)
	keep.KeepHistory, keep.WaitStrategy = true, "hookOnly"
	_, err = keep.Run("api.v2")
	require.NoError(t, err)
	require.Equal(t, []string{"api.v2.v1 uninstalled", "web.v4 deployed"}, p.list(""))

	all := action.NewUninstall(p.cfg)
	all.WaitStrategy = "hookOnly"
	_, err = all.Run("web")
	require.NoError(t, err)
	_, err = action.NewHistory(p.cfg).Run("web")
	require.ErrorIs(t, err, helmdriver.ErrReleaseNotFound)
	require.Equal(t, []string{"api.v2.v1 uninstalled"}, p.list(""))
	left := 0
	for h, err := range below.Query(t.Context(), driver.Query{}) {
		require.NoError(t, err)
		require.Equal(t, "default/sh.helm.release.v1.api.v2.v1", h.Key.String())
		require.Equal(t, driver.StatusUninstalled, h.Status)
		require.Equal(t, string(common.StatusUninstalled), h.Labels["status"])
		left++
	}
	require.Equal(t, 1, left)
}
