//go:build mutants

package sim

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"holdfast/internal/mutant"
)

// maxMutantSeeds is how many seeds a mutant may survive.
const maxMutantSeeds = 300

// TestMutants runs seeds with a fault planted, until a check tells of it; the same seed holds
// without the fault. HOLDFAST_MUTANTS names some of them; else all are run.
func TestMutants(t *testing.T) {
	names := mutant.All()
	if only := os.Getenv("HOLDFAST_MUTANTS"); only != "" {
		names = nil
		for _, n := range strings.Split(only, ",") {
			names = append(names, mutant.Name(n))
		}
	}
	caught := 0
	for _, n := range names {
		if f, seed := survive(t, n); f != nil {
			caught++
			fmt.Printf("mutant %-28s caught with seed %3d by: %s\n", n, seed, f.Check)
		} else {
			t.Errorf("%s: not caught by %d seeds", n, maxMutantSeeds)
		}
	}
	fmt.Printf("mutants: %d/%d caught\n", caught, len(names))
}

func survive(t *testing.T, n mutant.Name) (*Failure, uint64) {
	for seed := uint64(1); seed <= maxMutantSeeds; seed++ {
		res := run(t, Options{Seed: seed, Planted: mutant.Plant(n)})
		if res.Failure == nil {
			continue
		}
		if sound := run(t, Options{Seed: seed}); sound.Failure != nil {
			t.Fatalf("seed %d fails without a fault: %v", seed, sound.Failure)
		}
		return res.Failure, seed
	}
	return nil, 0
}
