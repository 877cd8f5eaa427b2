package memory

import (
	"testing"

	"holdfast/release/driver"
)

// Corrupt changes a bit of a body.
func (d *Driver) Corrupt(_ testing.TB, key driver.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.records[key].Body[0] ^= 1
}
