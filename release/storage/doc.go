// Package storage keeps the releases of whatever is deployed by revisions: which there are,
// which is deployed, and how many are kept.
//
// It owns no state: that is the driver's, and any number of Storages, in any number of
// processes, may work on one backend. Lists read heads alone; the content of a release is read
// only by Get, Last and Deployed. All methods may be called from many goroutines, and block as
// the driver does.
//
// A record's body is a version byte, 1, and then gzip of the content, which is JSON. Its digest
// stands in the head, so that a body that was changed is found out.
package storage
