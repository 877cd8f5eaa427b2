//go:build !race

package testcluster

// withRace tells whether the tests are built with the race detector.
const withRace = false
