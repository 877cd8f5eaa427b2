// Package driver says what keeps the records of releases: the Driver, the record, and the rules
// that are the same for every driver.
//
// A record is a head and a body. The head tells what the record is, and is all that a list
// reads; the body is bytes that the driver does not look into. Each revision of a release is a
// record of its own, named by a Key.
//
// The state belongs to the backend of a driver: a database, the cluster's store, or memory. A
// driver keeps nothing between two calls but its connections, so that any number of drivers,
// in any number of processes, may work on one backend. What it writes is there for all of them
// when the call returns.
//
// The rest of this package is for those who write drivers: what a record may hold (Begin,
// Next), what a query picks (Query.Match), and the errors that all drivers give. It has no
// state, and may be used from anywhere.
package driver
