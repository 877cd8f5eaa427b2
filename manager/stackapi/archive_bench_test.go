package stackapi_test

import (
	"path/filepath"
	"testing"
	"time"

	"holdfast/api/holdfast"
	"holdfast/internal/testpostgres"
	"holdfast/manager/stackapi"
	"holdfast/manager/state/store/storetest"
	"holdfast/release/driver"
	"holdfast/release/driver/memory"
	"holdfast/release/driver/sql/postgres"
	"holdfast/release/driver/sql/sqlite"
)

// BenchmarkArchive measures, for each place where releases can be kept: a deployment that changes
// one of five objects, and the history of 1,000 releases.
func BenchmarkArchive(b *testing.B) {
	for _, place := range []struct {
		name string
		open func(b *testing.B) driver.Driver
	}{
		{"object", func(*testing.B) driver.Driver { return nil }},
		{"memory", func(*testing.B) driver.Driver { return memory.New(time.Now) }},
		{"sqlite", func(b *testing.B) driver.Driver {
			d := must(sqlite.Open(b.Context(), sqlite.Options{Path: filepath.Join(b.TempDir(), "releases")}))
			b.Cleanup(func() { d.Close() }) //nolint:errcheck // it was measured
			return d
		}},
		{"postgres", func(b *testing.B) driver.Driver {
			server := testpostgres.Start(b)
			d := must(postgres.Open(b.Context(), postgres.Options{DSN: server.DSN("")}))
			b.Cleanup(func() { d.Close() }) //nolint:errcheck // it was measured
			return d
		}},
	} {
		b.Run(place.name, func(b *testing.B) {
			s := storetest.New(b)
			c := config(b, s)
			c.Archive, c.Namespace = place.open(b), namespace
			f := &fixture{stackapi.New(c), b, s}
			count := uint64(0)
			next := func() {
				count++
				r := scaled("a", count)
				r.MaxHistory = 1000
				f.deploy(r)
			}
			b.Run("deploy", func(b *testing.B) {
				for b.Loop() {
					next()
				}
			})
			for count < 1000 {
				next()
			}
			b.Run("history", func(b *testing.B) {
				for b.Loop() {
					resp := must(f.History(b.Context(), &holdfast.StackHistoryRequest{Name: "a"}))
					if len(resp.Releases) != 1000 {
						b.Fatalf("%d releases", len(resp.Releases))
					}
				}
			})
		})
	}
}
