//go:build !mutants

package mutant_test

import (
	"testing"

	"holdfast/internal/mutant"
)

func TestNonePlanted(t *testing.T) {
	for _, n := range mutant.All() {
		if (mutant.Set{}).Has(n) {
			t.Errorf("%s is planted in the product", n)
		}
	}
}
