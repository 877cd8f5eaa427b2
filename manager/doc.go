// Package manager is one manager of a cluster: it owns the state folder, the listeners, the
// raft node and the store, and runs what the leader does for as long as this one leads.
//
// Open prepares everything and changes nothing that is not its own; Run serves until its
// context ends. Every call goes through one interceptor, which says who answers it.
package manager
