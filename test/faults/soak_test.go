package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"holdfast/api/holdfast"
	"holdfast/test/testcluster"
)

const (
	soakWriters = 32
	soakFaults  = 4    // in a round
	soakMost    = 5000 // services in a round, about
)

// TestSoak does one thing after another to members, by chance, while services are created, for
// as long as HOLDFAST_SOAK says. After each round it looks at everything, and removes it.
func TestSoak(t *testing.T) {
	long := testcluster.Soak(t)
	if long == 0 {
		t.Skip("HOLDFAST_SOAK does not say how long")
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	c := testcluster.New(t, 3)
	c.Snapshot(200) // they are taken all the time
	began := time.Now()
	for round := 0; time.Since(began) < long && !t.Failed(); round++ {
		soakRound(t, c, random, round)
	}
}

func soakRound(t *testing.T, c *testcluster.Cluster, random *rand.Rand, round int) {
	t.Helper()
	w := newWriter(c)
	stop := w.start(t, fmt.Sprint("r", round), soakWriters)
	done := ""
	for n := 0; n < soakFaults && w.acknowledged() < soakMost; n++ {
		w.wait(t, w.acknowledged()+100)
		done += " " + soakFault(c, random)
	}
	stop()
	content := c.Same()
	if others := check(t, content, w.made()); others > w.unknown() {
		t.Errorf("%d services that were not acknowledged, and only %d outcomes were unknown", others, w.unknown())
	}
	t.Logf("round %d: %d services, %d unknown;%s", round, len(content.Services), w.unknown(), done)
	for len(content.Services) > 0 {
		removeSome(t, c, content)
	}
}

// soakFault does something to a member, or all, and tells what.
func soakFault(c *testcluster.Cluster, random *rand.Rand) string {
	m := c.Members[random.IntN(len(c.Members))]
	if random.IntN(2) == 0 {
		m = c.Leader()
	}
	switch what := random.IntN(4); what {
	case 0:
		m.Kill()
		m.Start()
		return "kill " + m.Name
	case 1:
		m.Stop()
		m.Start()
		return "stop " + m.Name
	case 2:
		m.Pause()
		c.Leader()
		m.Resume()
		return "pause " + m.Name
	default:
		for _, m := range c.Members {
			m.Kill()
		}
		for _, i := range random.Perm(len(c.Members)) {
			c.Members[i].Launch()
		}
		for _, m := range c.Members {
			m.WaitReady()
		}
		return "kill all"
	}
}

// removeSome removes as many of the services as a transaction may.
func removeSome(t *testing.T, c *testcluster.Cluster, content *testcluster.Content) {
	t.Helper()
	const most = 512
	r := &holdfast.TxnRequest{}
	for _, s := range content.Services[:min(most, len(content.Services))] {
		r.Operations = append(r.Operations, &holdfast.Operation{Op: &holdfast.Operation_Remove{
			Remove: &holdfast.Remove{Kind: holdfast.Kind_KIND_SERVICE, ID: s.ID},
		}})
	}
	content.Services = content.Services[len(r.Operations):]
	cl := c.Client()
	testcluster.Wait(t, "services removed", func(ctx context.Context) error {
		_, err := cl.Objects().Txn(ctx, r)
		return err
	})
}
