package memory_test

import (
	"testing"
	"time"

	"holdfast/release/driver"
	"holdfast/release/driver/memory"
	"holdfast/release/drivertest"
)

func TestDriver(t *testing.T) {
	drivertest.Run(t, func(_ testing.TB, clock func() time.Time) drivertest.Backend {
		d := memory.New(clock)
		return drivertest.Backend{
			Open:    func(testing.TB) driver.Driver { return d },
			Corrupt: d.Corrupt,
		}
	})
}

func BenchmarkList(b *testing.B) { drivertest.BenchmarkList(b, memory.New(time.Now)) }
