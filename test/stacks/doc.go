// Package stacks tests stacks from end to end: Compose files, ctl, and managers that are real
// processes. What a test does with ctl and what comes of it is compared with a transcript in
// testdata, in which IDs, revisions and times are replaced; -update writes the transcripts
// anew, and a person reads them against Docker's rules for stacks.
//
// Other tests kill the leader in the middle of what is done to a stack. ctl is not to notice, and
// what it was asked for is done once.
package stacks
