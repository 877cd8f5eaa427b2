// Package objects holds the rules for what may be written to the store. Every service that
// writes, for people or for controllers, creates, updates and removes objects through it, so
// all are held to the same rules.
//
// The functions that write take a store.Tx and belong inside the function that is given to
// Update: they read the state that the write is made on, so a rule that holds between
// objects holds when the write is committed. They keep no state of their own, read no clock
// and no source of randomness but the transaction's, and never change what they are given,
// so they may run twice.
//
// Errors are those of errkind. Their field is the path in the request's spec, in the names of
// the API, such as spec.task.container.secrets[1].secret_id.
package objects
