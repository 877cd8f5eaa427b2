//go:build mutants

package mutant_test

import (
	"testing"

	"holdfast/internal/mutant"
)

func TestPlant(t *testing.T) {
	seen := map[mutant.Name]bool{}
	for _, n := range mutant.All() {
		if n == "" || seen[n] {
			t.Errorf("%q is empty, or comes twice", n)
		}
		seen[n] = true
		if (mutant.Set{}).Has(n) {
			t.Errorf("the zero Set has %s", n)
		}
		for _, other := range mutant.All() {
			if got := mutant.Plant(n).Has(other); got != (n == other) {
				t.Errorf("with %s planted, Has(%s) is %t", n, other, got)
			}
		}
	}
	if (mutant.Set{}).Has("") {
		t.Error("the zero Set has the fault without a name")
	}
}
