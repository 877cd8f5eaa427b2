// Package sim runs a whole cluster from one seed: the raft node's own step, the log and the
// snapshots on a disk that breaks, the store with its pipeline, the interceptor and the proxy,
// under a virtual clock, a network and clients of its own. Nothing runs by itself: everything
// that happens is an event of one queue, and a call that waits is a coroutine, so a seed
// replays exactly.
//
// The files from the inside out: world (events, chance, failures), task (calls that wait),
// truth (what was committed, and what may not be contradicted), machine and process (one
// member), network, rpc, ops (what calls do), client, faults, run.
package sim
