//go:build mutants

package sim

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"holdfast/internal/mutant"
)

const (
	maxMutantSeeds = 400 // how many a mutant may survive
	rare           = 20  // one whose first seed is above this is left out when time is short
)

// firstSeed is the lowest seed that is known to catch a mutant. It is tried first, and only
// saves time: if the simulator has changed, others are.
func firstSeed(n mutant.Name) uint64 {
	switch n {
	case mutant.SentBeforeSync, mutant.ApplyErrorIgnored, mutant.HeadKept, mutant.StaleQueue, mutant.FenceWithoutTerm:
		return 2
	case mutant.KeptByRevision, mutant.HeadToRoot, mutant.MinRead:
		return 3
	case mutant.FenceWithoutParent:
		return 9
	case mutant.ErrorAtOnce:
		return 10
	case mutant.ErrorWithoutReadIndex, mutant.HeadPassed:
		return 17
	case mutant.UnconfirmedID:
		return 49
	case mutant.OvertakenAfterJump:
		return 50
	case mutant.SuffixKept:
		return 70
	case mutant.JoinedReadIndex:
		return 91
	case mutant.HeadBegunAnew:
		return 164
	case mutant.SnapshotConfState:
		return 171
	}
	return 1
}

// TestMutants runs seeds with a fault planted, until a check tells of it; the same seed holds
// without the fault. HOLDFAST_MUTANTS names some of them; else all are run.
func TestMutants(t *testing.T) {
	names := mutant.All()
	if only := os.Getenv("HOLDFAST_MUTANTS"); only != "" {
		names = nil
		for _, n := range strings.Split(only, ",") {
			names = append(names, mutant.Name(n))
		}
	} else if testing.Short() {
		names = slices.DeleteFunc(names, func(n mutant.Name) bool { return firstSeed(n) > rare })
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
	seeds := []uint64{firstSeed(n)}
	for seed := range uint64(maxMutantSeeds) {
		seeds = append(seeds, seed+1)
	}
	for _, seed := range seeds {
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
