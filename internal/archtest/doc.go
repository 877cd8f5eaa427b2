// Package archtest holds the rules of the repository's structure as tests: which package may
// import which, and that each says what it is for.
package archtest
