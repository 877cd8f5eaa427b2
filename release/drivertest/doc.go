// Package drivertest tests that a driver does what driver.Driver says. There is one suite for
// all drivers: what passes it can take the place of any other that does.
//
// A driver's own tests call Run with a Backend. The suite keeps no state but what it puts into
// that backend, and starts no goroutine that outlives a test.
package drivertest
