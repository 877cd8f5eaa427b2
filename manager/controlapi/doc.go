// Package controlapi serves SwarmKit's Control service: one file per kind of object, over
// what they share in read.go, write.go and filter.go.
//
// The server keeps no state. Reads go to the reader that it is given, which knows how fresh
// the caller wants them; writes go to the store in one transaction each, and what may be
// written is decided there by manager/objects. Its methods may be called from anywhere at
// once. They return errors of errkind, which the caller's interceptor turns into statuses.
//
// No reply holds the data of a secret or a private key of the cluster.
package controlapi
