package object_test

import (
	"crypto/rand"
	"testing"
	"time"

	"holdfast/internal/errkind"
	"holdfast/release/driver"
	"holdfast/release/driver/object"
	"holdfast/release/drivertest"
)

func newDriver(s object.Store, clock func() time.Time) *object.Driver {
	return object.New(object.Options{
		Name: "object/test", Store: s, Planner: object.Planner{Clock: clock, Random: rand.Reader},
	})
}

func TestDriverOnFake(t *testing.T) {
	drivertest.Run(t, func(_ testing.TB, clock func() time.Time) drivertest.Backend {
		s := newFake(clock)
		return drivertest.Backend{
			Open: func(testing.TB) driver.Driver { return newDriver(s, clock) },
			Corrupt: func(t testing.TB, key driver.Key) {
				upload := ""
				s.edit(t, object.HeadName(key), func(o *object.Object) { upload = o.Labels[object.LabelUpload] })
				s.edit(t, object.ChunkName(upload, 0), func(o *object.Object) { o.Data[0] ^= 1 })
			},
			Stop: func(testing.TB) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.away = errkind.New(errkind.NoLeader, "away")
			},
		}
	})
}

func BenchmarkListFake(b *testing.B) {
	s := newFake(time.Now)
	drivertest.BenchmarkList(b, newDriver(s, time.Now))
}
