// Package holdfast is Holdfast's own protobuf API, package holdfast.v1: the services Objects,
// Stacks, Cluster and Raft, and the formats that are replicated and kept on disk.
package holdfast
