// Package testcluster runs managers as processes, for tests of the whole.
//
// A test binary that uses it has a TestMain which calls Run: that builds managerd and ctl
// once, with the race detector if the tests have it or HOLDFAST_RACE is set. A Cluster
// belongs to the test that made it. When that test ends, its processes are killed, one by
// one, its files are removed, and if it failed the ends of their logs are shown.
//
// Everything that waits does so through Wait or Poll and has a bound. Functions that take or
// hold a testing.TB fail the test, and are for the test's own goroutine; those that return an
// error may be called from any.
package testcluster
