package stacks_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"
)

// What ctl is called with, and what is to come of it: in pairs, as the steps name them.

// deployFiles deploys the files as they are.
func (l *life) deployFiles() []string {
	return append([]string{"stack", "deploy", "--history", keptReleases, appStack}, l.files...)
}

func (l *life) begins(d deed) {
	l.isRelease(d)
	if l.size = len(of(appStack, d.after)); l.size != len(d.done) || int(l.releases[0].Created) != l.size {
		l.t.Errorf("the first release made %d objects, and there are %d: %v", len(d.done), l.size, d.done)
	}
	l.wantSettings(settings(1), l.app.changed, sidecar)
	l.unmoved("the same files again", func() { l.says(l.run(0, l.deployFiles()...).Err, "nothing to change\n") })
}

// adding deploys the files and one more.
func (l *life) adding(file string) func(*life) []string {
	return func(*life) []string {
		flags := l.copyFiles(file)
		l.published, l.files = append(l.published, flags...), append(l.files, flags...)
		return l.deployFiles()
	}
}

// isRelease checks that a step made the next release, which is what the files say.
func (l *life) isRelease(d deed) {
	l.released(d, 0)
	l.isAsFiles()
	l.was[l.last().Number] = past{slices.Clone(l.files), l.services()}
}

func (l *life) isAsFiles() {
	l.t.Helper()
	if out := l.run(0, append([]string{"stack", "diff", appStack}, l.files...)...).Out; out != "" {
		l.t.Errorf("the stack is not what its files say:\n%s", out)
	}
}

// diffFiles changes the files: one service, the config, and the secrets that have a file.
func (l *life) diffFiles() []string {
	l.writeData(2)
	l.files = append(l.files, "-c", l.write("change.yml", l.app.change))
	return append([]string{"stack", "diff", "--output", "name", appStack}, l.files...)
}

func (l *life) foretells(d deed) {
	l.changedNothing(d)
	l.foretold = strings.Fields(d.out)
	slices.Sort(l.foretold)
	for _, name := range []string{l.app.changed, sidecar, "app_settings"} {
		if !slices.Contains(l.foretold, name) {
			l.t.Errorf("%s would change, and that is not told: %q", name, l.foretold)
		}
	}
}

func (l *life) isChanged(d deed) {
	l.released(d, 0)
	l.isAsFiles()
	if diff := gocmp.Diff(l.foretold, d.names()); diff != "" {
		l.t.Errorf("what changed is not what was foretold (-foretold +done)\n%s", diff)
	}
	for key, o := range d.after {
		// What is not a service is another object, beside the one of before.
		if what := d.done[o.ID]; what != "" && (what == "updated") != strings.HasPrefix(key, "service ") {
			l.t.Errorf("%s was %s", key, what)
		}
	}
	l.wantSettings(settings(2), l.app.changed, sidecar)
}

func (l *life) diffReleases() []string {
	return []string{"stack", "diff", appStack, "--from", "1", "--to", fmt.Sprint(l.last().Number)}
}

func (l *life) tellsChange(d deed) {
	l.changedNothing(d)
	l.says(d.out, short(settings(1))+" → "+short(settings(2)),
		"service "+l.app.changed+" ", "service "+sidecar+" ", "config app_settings ")
	secret := regexp.MustCompile(`(?m)^secret .* changed\n  data   "[0-9a-f]{12}" → "[0-9a-f]{12}"$`)
	if len(l.app.extra) > 0 && !secret.MatchString(d.out) {
		l.t.Errorf("the secret is not told to differ:\n%s", d.out)
	}
}

// rollback goes back to the release before the present one, which ctl is not told: if it were
// done twice, there would be another.
func (l *life) rollback() []string {
	l.goBack(l.last().Number - 1)
	return []string{"stack", "rollback", "--history", keptReleases, appStack}
}

// bringBack goes back to the first release.
func (l *life) bringBack() []string {
	l.goBack(1)
	return []string{"stack", "rollback", "--history", keptReleases, appStack, "1"}
}

func (l *life) isRollback(d deed) {
	l.released(d, l.at)
	l.isBack()
}

// isRight checks that a deployment made the stack again what it was before.
func (l *life) isRight(d deed) {
	l.released(d, 0)
	l.isBack()
	if names := d.names(); !slices.Equal(names, []string{l.app.changed}) {
		l.t.Errorf("%q changed, want only the service that was changed by hand", names)
	}
}

// isBack checks that all is what it was in the release that there is again.
func (l *life) isBack() {
	l.t.Helper()
	if diff := gocmp.Diff(l.was[l.at].services, l.services()); diff != "" {
		l.t.Errorf("the services are not those of release %d (-want +got)\n%s", l.at, diff)
	}
	l.wantSettings(settings(1), l.app.changed, sidecar)
	l.isAsFiles()
}

func (l *life) listReleases() []string { return []string{"stack", "history", appStack} }

func (l *life) tellsReleases(d deed) {
	l.changedNothing(d)
	if n := strings.Count(d.out, "\n"); n != 1+len(l.releases) {
		l.t.Errorf("%d lines, want a title and %d releases:\n%s", n, len(l.releases), d.out)
	}
	for _, r := range l.releases {
		if !r.row().MatchString(d.out) {
			l.t.Errorf("release %d is not told as %s in\n%s", r.Number, r.row(), d.out)
		}
	}
}

func (l *life) printRelease() []string { return []string{"stack", "get", appStack, fmt.Sprint(l.at)} }

// canBeDeployed deploys what was printed of the release that there is again.
func (l *life) canBeDeployed(d deed) {
	l.changedNothing(d)
	l.says(d.out, settings(1))
	l.unmoved("the printed release", func() {
		r := l.input(0, d.out, "stack", "deploy", "-c", "-", appStack)
		l.says(r.Err, "nothing to change\n")
		l.says(r.Out, fmt.Sprintf("release %d\n", l.last().Number))
	})
}

func (l *life) listStacks() []string { return []string{"stack", "ls"} }

func (l *life) tellsStack(d deed) {
	l.changedNothing(d)
	mine := of(appStack, d.after)
	row := fmt.Sprintf(`(?m)^%s +%d +deployed +%d +%d +%d +%d +\d+[smh]$`, appStack, l.last().Number,
		len(only("service", mine)), len(only("network", mine)), len(only("secret", mine)), len(only("config", mine)))
	if strings.Count(d.out, "\n") != 2 || !regexp.MustCompile(row).MatchString(d.out) {
		l.t.Errorf("the stack is not told as %s in\n%s", row, d.out)
	}
}

// scale changes a service behind the stack's back.
func (l *life) scale() []string {
	return []string{"service", "scale", fmt.Sprintf("%s=%d", l.app.changed, handScale)}
}

func (l *life) isScaled(d deed) {
	key := "service " + l.app.changed
	l.updated(d.before, d.after, key)
	l.same("scaling, beside the one service,", without(d.before, l.app.changed), without(d.after, l.app.changed))
	if was, is := d.before[key].Generation, d.after[key].Generation; is != was+1 {
		l.t.Errorf("%s was changed %d times, want once", key, is-was)
	}
}

func (l *life) diffLive() []string { return []string{"stack", "diff", appStack} }

func (l *life) tellsDrift(d deed) {
	l.changedNothing(d)
	lines := strings.Split(strings.TrimSpace(d.out), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "service "+l.app.changed+" ") ||
		!strings.Contains(lines[1], "spec.replicated.replicas ") ||
		!strings.HasSuffix(lines[1], fmt.Sprintf(` → "%d"`, handScale)) {
		l.t.Errorf("the replicas of one service differ, and that is told:\n%s", d.out)
	}
}

// deployLess deploys the published files alone, and leaves what they do not have.
func (l *life) deployLess() []string {
	l.files = l.published
	return append([]string{"stack", "deploy", "--prune=false", "--history", keptReleases, appStack}, l.files...)
}

func (l *life) keepsRest(d deed) {
	l.released(d, 0)
	if names := d.names(); !slices.Equal(names, []string{l.app.changed}) {
		l.t.Errorf("%q changed, want only the service that has no config any more", names)
	}
	if l.services()[sidecar] != l.was[l.at].services[sidecar] {
		l.t.Errorf("%s is not what it was", sidecar)
	}
	l.wantSettings("", l.app.changed)
	l.wantSettings(settings(1), sidecar)
}

func (l *life) removeOnly() []string { return []string{"stack", "rm", "--keep-history", appStack} }

// isUninstalled checks that secrets and configs are left as they were, since releases name them.
func (l *life) isUninstalled(d deed) {
	l.isTold(d)
	l.last().Status = "uninstalled"
	kept := only("secret", of(appStack, d.before))
	maps.Copy(kept, only("config", of(appStack, d.before)))
	l.same("the removal that keeps the history", kept, of(appStack, d.after))
}

// prune deploys the published files alone, and forgets what was before.
func (l *life) prune() []string {
	l.files = l.published
	return append([]string{"stack", "deploy", "--history", "1", appStack}, l.files...)
}

func (l *life) isPruned(d deed) {
	l.released(d, 0)
	l.isAsFiles()
	l.releases = l.releases[len(l.releases)-1:]
	// What is left is what the published files say: of the first release, all but the sidecar and
	// the config. No secret or config is left that only releases before had.
	left := of(appStack, d.after)
	if len(left) != l.size-2 {
		l.t.Errorf("%d objects are left, want %d: %v", len(left), l.size-2, left)
	}
	for key := range left {
		if strings.Contains(key, "sidecar") || strings.Contains(key, "settings") {
			l.t.Errorf("%s is left", key)
		}
	}
	l.wantSettings("", l.app.changed)
}

func (l *life) remove() []string { return []string{"stack", "rm", appStack} }

func (l *life) isGone(d deed) {
	l.isTold(d)
	l.releases = nil
	if left := of(appStack, d.after); len(left) > 0 || l.records > 0 {
		l.t.Errorf("%d parts of releases are left, and objects: %v", l.records, left)
	}
	for _, verb := range []string{"services", "history", "rm"} {
		l.run(7, "stack", verb, appStack)
	}
}
