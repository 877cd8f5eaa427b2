package sim

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/cryptotest"
	"time"
)

// Settings come from the environment: HOLDFAST_SIM_SEED runs that seed alone, and its failure
// shows HOLDFAST_SIM_TRACE lines of what happened before; HOLDFAST_SIM_TIME goes on with fresh
// seeds for so long, and at least until HOLDFAST_SIM_COUNT were run. HOLDFAST_SIM_PART=1/2 is
// for one of two processes that share the work.
func setting(name string, def int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return def
}

// run runs a seed as a test of its own: raft's random source is the process's.
func run(t *testing.T, o Options) (res Result) {
	t.Run(fmt.Sprint("seed ", o.Seed), func(t *testing.T) {
		cryptotest.SetGlobalRandom(t, o.Seed)
		res = Run(o)
	})
	return res
}

// hold runs a seed that must hold. A failure is told with its trace, by running it again.
func hold(t *testing.T, seed uint64, all *Stats) {
	res := run(t, Options{Seed: seed})
	all.Add(res.Stats)
	if res.Failure == nil {
		return
	}
	all.Failures++
	again := run(t, Options{Seed: seed, Keep: setting("HOLDFAST_SIM_TRACE", 60)})
	if again.Failure == nil {
		t.Errorf("seed %d fails, and not when it is run again: %v", seed, res.Failure)
		return
	}
	t.Errorf("seed %d: %v\nrun it alone: HOLDFAST_SIM_SEED=%d HOLDFAST_SIM_TRACE=1000 go test -run TestSeeds ./test/sim",
		seed, again.Failure, seed)
}

// kept reads the seeds that once failed.
func kept(t *testing.T) []uint64 {
	f, err := os.Open("testdata/seeds")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	var seeds []uint64
	for s := bufio.NewScanner(f); s.Scan(); {
		number, _, _ := strings.Cut(s.Text(), " ")
		seed, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			t.Fatalf("testdata/seeds: %v", err)
		}
		seeds = append(seeds, seed)
	}
	return seeds
}

// TestSeeds runs the seeds that once failed, then the first ones, then fresh ones if there is
// time.
func TestSeeds(t *testing.T) {
	part, parts := 1, 1
	if p := os.Getenv("HOLDFAST_SIM_PART"); p != "" {
		if n, err := fmt.Sscanf(p, "%d/%d", &part, &parts); n != 2 {
			t.Fatalf("HOLDFAST_SIM_PART: %v", err)
		}
	}
	began := time.Now()
	limit, err := time.ParseDuration(os.Getenv("HOLDFAST_SIM_TIME"))
	if err != nil {
		limit = 0
	}
	var all Stats
	seeds := kept(t)
	for seed := range setting("HOLDFAST_SIM_COUNT", 40) {
		seeds = append(seeds, uint64(seed+1)) //nolint:gosec // small
	}
	if seed := setting("HOLDFAST_SIM_SEED", 0); seed != 0 {
		seeds = []uint64{uint64(seed)} //nolint:gosec // as it was printed
	}
	for i, seed := range seeds {
		if i%parts == part-1 {
			hold(t, seed, &all)
		}
	}
	for time.Since(began) < limit {
		seed := rand.Uint64N(1 << 40)
		fmt.Printf("sim: fresh seed %d\n", seed)
		hold(t, seed, &all)
	}
	fmt.Println(all)
	for _, c := range all.seen() {
		if c.count == 0 && all.Seeds > 10 {
			t.Errorf("never seen: %s", c.what)
		}
	}
}

// A seed tells everything that happens.
func TestSeedReplays(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		first := run(t, Options{Seed: seed})
		second := run(t, Options{Seed: seed})
		if first.Trace != second.Trace || first.Stats != second.Stats {
			t.Errorf("two runs of seed %d differ: %+v, %+v", seed, first.Stats, second.Stats)
		}
	}
}
