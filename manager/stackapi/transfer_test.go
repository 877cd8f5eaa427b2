package stackapi_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/release/driver"
	"holdfast/release/storage"
)

// export returns the records of a stack's releases.
func (f *fixture) export(stack string) []*holdfast.ReleaseRecord {
	f.t.Helper()
	var all []*holdfast.ReleaseRecord
	for _, r := range must(f.History(f.t.Context(), &holdfast.StackHistoryRequest{Name: stack})).Releases {
		resp := must(f.ExportRelease(f.t.Context(), &holdfast.ExportReleaseRequest{Name: stack, Number: r.Number}))
		if strings.Contains(resp.String(), canary) {
			f.t.Errorf("the data of a secret is in %s", resp)
		}
		all = append(all, resp.Record)
	}
	return all
}

// add imports records, and tells how many were not there before.
func (f *fixture) add(all []*holdfast.ReleaseRecord) (created int) {
	f.t.Helper()
	for _, r := range all {
		if must(f.ImportRelease(f.t.Context(), &holdfast.ImportReleaseRequest{Record: r})).Created {
			created++
		}
	}
	return created
}

// Releases come back from an archive into the store, and from the store into an archive, with all
// that is told of them.
func TestTransfer(t *testing.T) {
	a := newArchived(t)
	inArchive, inStore := a.manager(), over(t, a.store)
	for i := range uint64(4) {
		must(inArchive.Deploy(as(t, "alice", "why"), scaled("a", 1+i)))
	}
	must(inArchive.Rollback(as(t, "bob", ""), &holdfast.RollbackRequest{Name: "a", Number: 2}))
	releases := func(f *fixture) []*holdfast.Release {
		return must(f.History(t.Context(), &holdfast.StackHistoryRequest{Name: "a"})).Releases
	}
	want := releases(inArchive)
	records := inArchive.export("a")
	if got := inStore.history("a"); got != "5 deployed of 2" {
		t.Fatalf("without the archive: %s", got)
	}
	if n := inStore.add(records); n != 4 {
		t.Errorf("%d were imported", n)
	}
	revision := a.store.Root().Revision()
	if n := inStore.add(records); n != 0 || a.store.Root().Revision() != revision {
		t.Errorf("%d were imported again", n)
	}
	if got := releases(inStore); !slices.EqualFunc(got, want, func(a, b *holdfast.Release) bool { return a.Equal(b) }) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	if resp := must(inStore.Rollback(t.Context(), &holdfast.RollbackRequest{Name: "a", Number: 3})); resp.Release != 6 {
		t.Errorf("release %d", resp.Release)
	}
	again := &archived{t, a.store, newArchived(t).archive}
	if n := again.manager().add(inStore.export("a")); n != 0 { // those of the store get there by themselves
		t.Errorf("%d were imported", n)
	}
	if got, want := again.manager().history("a"), inStore.history("a"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// What is imported is not deployed, whatever it says.
func TestImportedStatus(t *testing.T) {
	f := newFixture(t)
	f.deploy(app("a"))
	r := f.export("a")[0]
	for n, is := range []string{
		"deployed", "superseded", "uninstalled", "uninstalling", "failed", "unknown", "pending-install", "pending-upgrade", "pending-rollback",
	} {
		r.Number, r.Status = uint64(2+n), is
		f.add([]*holdfast.ReleaseRecord{r})
	}
	if got := f.history("a"); got != "1 deployed, 2 superseded, 3 superseded, 4 uninstalled, 5 superseded, 6 failed, "+
		"7 unknown, 8 failed, 9 failed, 10 failed" {
		t.Errorf("got %s", got)
	}
}

func TestImportRefuses(t *testing.T) {
	f := newFixture(t)
	f.deploy(app("a"))
	f.deploy(scaled("a", 2))
	records := f.export("a")
	before := f.store.Root().Revision()
	body := func(r *holdfast.ReleaseRecord, text string) {
		r.Body = must(storage.Encode([]byte(text)))
	}
	for _, c := range []struct {
		name   string
		spoil  func(r *holdfast.ReleaseRecord)
		kind   errkind.Kind
		says   string
		digest bool // of what is spoilt
	}{
		{"another release", func(r *holdfast.ReleaseRecord) { r.Number = 2 }, errkind.Exists, "stack a: has another release 2", false},
		{"no name", func(r *holdfast.ReleaseRecord) { r.Name = "" }, errkind.Invalid, "record.name", false},
		{"number", func(r *holdfast.ReleaseRecord) { r.Number = 0 }, errkind.Invalid, "record.number", false},
		{"large number", func(r *holdfast.ReleaseRecord) { r.Number = 1 << 63 }, errkind.Invalid, "record.number", false},
		{"status", func(r *holdfast.ReleaseRecord) { r.Status = "fine" }, errkind.Invalid, "record.status", false},
		{"label", func(r *holdfast.ReleaseRecord) { r.Labels["colour"] = "red" }, errkind.Invalid, "record.labels", false},
		{"long label", func(r *holdfast.ReleaseRecord) { r.Labels["message"] = strings.Repeat("m", 1<<20) }, errkind.Limit, "record.labels", false},
		{"no body", func(r *holdfast.ReleaseRecord) { r.Body = nil }, errkind.Invalid, "record.body", false},
		{"another body", func(r *holdfast.ReleaseRecord) { r.Body[0] ^= 1 }, errkind.Invalid, "record.digest", false},
		{"a body that is none", func(r *holdfast.ReleaseRecord) { r.Body = []byte("body") }, errkind.Invalid, "record.body", true},
		{"no JSON", func(r *holdfast.ReleaseRecord) { body(r, `[]`) }, errkind.Invalid, "record.body", true},
		{"no request", func(r *holdfast.ReleaseRecord) { body(r, `{"request": {"colour": 1}}`) }, errkind.Invalid, "record.body", true},
		{"another stack", func(r *holdfast.ReleaseRecord) { body(r, `{"request": {"name": "b"}}`) }, errkind.Invalid, `is of the stack "b"`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := records[0].Copy()
			r.Number, r.Labels = 9, maps.Clone(r.Labels)
			c.spoil(r)
			if c.digest {
				r.Digest = driver.Digest(r.Body)
			}
			_, err := f.ImportRelease(t.Context(), &holdfast.ImportReleaseRequest{Record: r})
			if !errkind.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := f.ImportRelease(t.Context(), &holdfast.ImportReleaseRequest{}); !errkind.Is(err, errkind.Invalid) {
		t.Errorf("got %v", err)
	}
	if f.store.Root().Revision() != before {
		t.Error("something was changed")
	}
}

// FuzzImport imports what anybody may have written, and works with what is taken.
func FuzzImport(f *testing.F) {
	setup := newFixture(f)
	setup.deploy(app("a"))
	setup.deploy(scaled("a", 2))
	for _, r := range setup.export("a") {
		content, err := storage.Decode(r.Body)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(content), r.Labels["objects.0"])
	}
	f.Add([]byte(`{"request": {"name": "a", "services": [{}], "stagedSecrets": {"": ""}}}`), "x")
	f.Add([]byte(`{"request": {"name": "a", "services": [{"task": {"container": {"secrets": [{}], "configs": [{}]}}}]}}`), "")
	f.Fuzz(func(t *testing.T, content []byte, ids string) {
		body, err := storage.Encode(content)
		if err != nil {
			t.Skip()
		}
		fix := newFixture(t)
		fix.deploy(app("a"))
		before := fix.store.Root().Revision()
		_, err = fix.ImportRelease(t.Context(), &holdfast.ImportReleaseRequest{Record: &holdfast.ReleaseRecord{
			Name: "a", Number: 7, Status: "superseded", Labels: map[string]string{"objects.0": ids}, Body: body,
			Digest: driver.Digest(body),
		}})
		if err != nil {
			if fix.store.Root().Revision() != before {
				t.Error("what was refused changed something")
			}
			return
		}
		// Whatever it is, the managers live on, and the stack can be deployed.
		for _, use := range []func() error{
			func() error {
				_, err := fix.GetRelease(t.Context(), &holdfast.GetReleaseRequest{Name: "a", Number: 7})
				return err
			},
			func() error {
				_, err := fix.Compare(t.Context(), &holdfast.CompareStackRequest{Name: "a", From: 7})
				return err
			},
			func() error {
				_, err := fix.Rollback(t.Context(), &holdfast.RollbackRequest{Name: "a", Number: 7, DryRun: true})
				return err
			},
			func() error {
				_, err := fix.Rollback(t.Context(), &holdfast.RollbackRequest{Name: "a", Number: 7})
				return err
			},
		} {
			if err := use(); errkind.Is(err, errkind.Internal) {
				t.Error(err)
			}
		}
		fix.deploy(scaled("a", 3))
	})
}
