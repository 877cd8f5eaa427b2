package drivertest

import (
	"maps"
	"testing"

	"holdfast/release/driver"
)

// Same tells whether two heads are the same in all that they tell.
func Same(a, b driver.Head) bool {
	return a.Key == b.Key && a.Kind == b.Kind && a.Status == b.Status && maps.Equal(a.Labels, b.Labels) &&
		a.Overlap == b.Overlap && a.Created.Equal(b.Created) && a.Modified.Equal(b.Modified) &&
		a.Digest == b.Digest && a.Size == b.Size && a.Version == b.Version
}

// records is how many records BenchmarkList lists.
const records = 1000

// BenchmarkList measures the listing of 1,000 releases, whose bodies have 10 KB each.
func BenchmarkList(b *testing.B, d driver.Driver) {
	body := make([]byte, 10_000)
	for i := range records {
		key := driver.Key{Namespace: "default", Name: "release-" + string(rune('a'+i%26)), Revision: int64(i + 1)}
		r := driver.Record{Head: driver.Head{
			Key: key, Kind: "test", Status: driver.StatusSuperseded,
			Labels: map[string]string{"team": "shop", "tier": "front"},
		}, Body: body}
		if _, err := d.Create(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for _, err := range d.Query(b.Context(), driver.Query{Namespace: "default"}) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != records {
			b.Fatalf("%d heads", n)
		}
	}
}
