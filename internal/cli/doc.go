// Package cli holds what all commands have in common on a terminal: streams, how objects are
// printed, how errors are told, and which exit code follows from one. It keeps no state, and
// nothing here ends the process.
package cli
