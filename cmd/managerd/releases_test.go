package main

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/internal/errkind"
)

func TestParseReleases(t *testing.T) {
	for _, c := range []struct {
		value, driver string
		alone, fails  bool
	}{
		{value: "object"},
		{value: "memory", driver: "memory", alone: true},
		{value: "sql=sqlite:" + filepath.Join(t.TempDir(), "releases"), driver: "sqlite", alone: true},
		{value: "sql=postgres://u@/db", driver: "postgresql"},
		{value: "sql=host=/run user=u", driver: "postgresql"},
		{value: "", fails: true},
		{value: "sql", fails: true},
		{value: "sql=", fails: true},
		{value: "sql=sqlite:", fails: true},
		{value: "postgres://u:hunter2@/db", fails: true},
	} {
		got, err := parseReleases(c.value)
		if c.fails {
			if !errkind.Is(err, errkind.Invalid) || !strings.HasPrefix(err.Error(), "--release-driver: ") ||
				errkind.Hint(err) == "" || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%q: got %v", c.value, err)
			}
			continue
		}
		name := ""
		if err == nil && got.Driver != nil {
			name = got.Driver.Name()
		}
		if err != nil || name != c.driver || got.Alone != c.alone {
			t.Errorf("%q: got %q, alone %v, %v", c.value, name, got.Alone, err)
		}
		if err := got.close(); err != nil {
			t.Errorf("%q: %v", c.value, err)
		}
	}
}

// A mistake is told at the start, without the password; a database that is away is not one.
func TestReachReleases(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		value string
		kind  errkind.Kind
		fails bool
	}{
		{value: "object"},
		{value: "memory"},
		{value: "sql=sqlite:" + filepath.Join(dir, "releases")},
		{value: "sql=sqlite:" + filepath.Join(dir, "nowhere", "releases"), kind: errkind.NoLeader, fails: true},
		{value: "sql=postgres://u:hunter2@%zz/db", kind: errkind.Invalid, fails: true},
		{value: "sql=password=hunter2 host", kind: errkind.Invalid, fails: true},
		{value: "sql=host=" + dir + " user=u password=hunter2"},
	} {
		got, err := parseReleases(c.value)
		if err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		err = got.reach(t.Context(), slog.New(slog.NewTextHandler(&log, nil)))
		if (err != nil) != c.fails || c.fails && (!errkind.Is(err, c.kind) || !strings.HasPrefix(err.Error(), "--release-driver: ")) {
			t.Errorf("%q: got %v", c.value, err)
		}
		if strings.Contains(log.String(), "hunter2") || err != nil && strings.Contains(err.Error()+errkind.Hint(err), "hunter2") {
			t.Errorf("%q: the password is told: %v, %s", c.value, err, &log)
		}
		if err := got.close(); err != nil {
			t.Errorf("%q: %v", c.value, err)
		}
	}
}
