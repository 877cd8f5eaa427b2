//go:build mutants

package mutant

// Set is the fault that is planted in one part of the product; the zero value is none.
type Set struct{ name Name }

// Plant returns the Set with one fault.
func Plant(n Name) Set { return Set{n} }

// Has tells whether a fault is planted.
func (s Set) Has(n Name) bool { return s.name == n && n != "" }
