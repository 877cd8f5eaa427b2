// Package call is what every call to a manager goes through, whatever the service: who answers
// it, what it is stamped with, how fresh a read is, and how errors look.
package call
