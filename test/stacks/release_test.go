package stacks_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"holdfast/api/holdfast"
	"holdfast/internal/compose"
	"holdfast/internal/errkind"
	"holdfast/test/testcluster"
)

// shop is a Compose file whose config and secret are of a version.
func shop(version int) string {
	return fmt.Sprintf(`
services:
  web:
    image: 'web:1'
    configs: [conf]
    secrets: [key]
configs: {conf: {content: 'listen %d'}}
secrets: {key: {file: key}}
`, version)
}

// loaded makes a request of a file.
func (s *session) loaded(version int) *holdfast.DeployRequest {
	s.t.Helper()
	s.write("key", fmt.Sprintf("key %d", version))
	loaded, err := compose.Load(s.t.Context(), compose.Options{
		Files: []string{s.write("shop.yml", shop(version))}, Stack: "shop",
	})
	if err != nil {
		s.t.Fatal(err)
	}
	loaded.Request.Compose = shop(version)
	return loaded.Request
}

// history gives the releases of a stack, as a manager has them: "1 superseded, 2 deployed".
func history(ctx context.Context, m holdfast.StacksClient, stack string) (string, error) {
	r, err := m.History(ctx, &holdfast.StackHistoryRequest{Name: stack})
	if err != nil {
		return "", err
	}
	var all []string
	for _, release := range r.Releases {
		said := fmt.Sprint(release.Number, " ", release.Status)
		if release.RollbackOf != 0 {
			said += fmt.Sprint(" of ", release.RollbackOf)
		}
		all = append(all, said)
	}
	return strings.Join(all, ", "), nil
}

// wantHistory checks the history at each manager that runs.
func (s *session) wantHistory(stack, want string) {
	s.t.Helper()
	ctx := testcluster.Context(s.t, testcluster.Bound)
	for _, m := range s.cluster.Running() {
		if got, err := history(ctx, m.Client().Stacks(), stack); err != nil || got != want {
			s.t.Errorf("%s: got %s, %v; want %s", m.Name, got, err, want)
		}
	}
}

// serves checks which version the service has.
func (s *session) serves(version int) {
	s.t.Helper()
	conf := s.data(s.container("shop_web").Configs[0])
	if got, want := string(conf), fmt.Sprintf("listen %d", version); got != want {
		s.t.Errorf("the service has %q, want %q", got, want)
	}
}

// TestReleases takes a stack through its releases, while its leader dies.
func TestReleases(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, 3)
	s := newSession(t, c)
	ctx := testcluster.Context(t, 2*testcluster.Bound)
	stacks := s.client.Stacks()
	deploy := func(version int, expect uint64) *holdfast.DeployResponse {
		t.Helper()
		r := s.loaded(version)
		r.Expect = &holdfast.DeployRequest_ExpectRelease{ExpectRelease: expect}
		resp, err := stacks.Deploy(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	deploy(1, 0)
	deploy(2, 1) // the file of the config is another one now, and so is that of the secret
	s.serves(2)
	s.wantHistory("shop", "1 superseded, 2 deployed")
	if _, err := stacks.Deploy(ctx, &holdfast.DeployRequest{
		Name: "shop", Services: s.loaded(3).Services, Expect: &holdfast.DeployRequest_ExpectRelease{ExpectRelease: 1},
	}); !errkind.Is(err, errkind.OutOfSequence) || !strings.Contains(err.Error(), "release 2 came first") {
		t.Errorf("got %v", err)
	}

	lead := c.Leader()
	rolledBack := make(chan error, 1)
	go func() {
		_, err := stacks.Rollback(ctx, &holdfast.RollbackRequest{
			Name: "shop", Expect: &holdfast.RollbackRequest_ExpectRelease{ExpectRelease: 2},
		})
		rolledBack <- err
	}()
	lead.Kill()
	// Whatever the leader came to do: the client goes on until it knows, and it is done once.
	if err := <-rolledBack; err != nil {
		t.Fatal(err)
	}
	s.serves(1)
	s.wantHistory("shop", "1 superseded, 2 superseded, 3 deployed of 1")
	if r, err := stacks.GetRelease(ctx, &holdfast.GetReleaseRequest{Name: "shop"}); err != nil ||
		r.Compose != shop(1) || r.Release.RollbackOf != 1 || len(r.Request.StagedSecrets) != 1 {
		t.Errorf("got %v, %v", r, err)
	}
	diff, err := stacks.Compare(ctx, &holdfast.CompareStackRequest{Name: "shop", Request: s.loaded(2)})
	if err != nil || len(diff.Objects) != 3 || strings.Contains(diff.String(), "key 2") {
		t.Errorf("got %v, %v", diff, err)
	}
	lead.Start()
	c.Same()

	if _, err := stacks.Remove(ctx, &holdfast.RemoveStackRequest{Name: "shop", KeepHistory: true}); err != nil {
		t.Fatal(err)
	}
	s.wantHistory("shop", "1 superseded, 2 superseded, 3 uninstalled of 1")
	if _, err := stacks.Rollback(ctx, &holdfast.RollbackRequest{Name: "shop", Number: 2}); err != nil {
		t.Fatal(err)
	}
	s.serves(2)
	s.run(0, "stack", "rm", "shop")
	s.nothingLeft()
}
