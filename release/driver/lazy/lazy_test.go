package lazy_test

import (
	"context"
	"testing"
	"time"

	"holdfast/internal/errkind"
	"holdfast/release/driver"
	"holdfast/release/driver/lazy"
	"holdfast/release/driver/memory"
)

// closer is a driver that notes whether it was closed.
type closer struct {
	*memory.Driver
	closed int
}

func (c *closer) Close() error {
	c.closed++
	return nil
}

// What could not be opened is opened later, once, and closed for good.
func TestOpensLater(t *testing.T) {
	away, opened := true, 0
	inner := &closer{Driver: memory.New(time.Now)}
	d := lazy.New("lazy", func(context.Context) (lazy.Opened, error) {
		if away {
			return nil, errkind.New(errkind.NoLeader, "away")
		}
		opened++
		return inner, nil
	})
	record := driver.Record{
		Head: driver.Head{Key: driver.Key{Namespace: "n", Name: "a", Revision: 1}, Kind: "k", Status: driver.StatusDeployed},
		Body: []byte("b"),
	}
	calls := map[string]func() error{
		"create": func() error {
			_, err := d.Create(t.Context(), record)
			return err
		},
		"update": func() error {
			_, err := d.Update(t.Context(), 1, record)
			return err
		},
		"get": func() error {
			_, err := d.Get(t.Context(), record.Key)
			return err
		},
		"delete": func() error { return d.Delete(t.Context(), record.Key, 1) },
		"query": func() error {
			for _, err := range d.Query(t.Context(), driver.Query{}) {
				return err
			}
			return errkind.New(errkind.NotFound, "nothing was picked")
		},
	}
	fail := func(when string) {
		t.Helper()
		for name, call := range calls {
			if err := call(); !errkind.Is(err, errkind.NoLeader) {
				t.Errorf("%s: %s: got %v", when, name, err)
			}
		}
	}
	fail("away")
	away = false
	for _, name := range []string{"create", "get", "update", "query"} {
		if err := calls[name](); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if h, err := inner.Get(t.Context(), record.Key); err != nil || h.Version != 2 {
		t.Errorf("got %v, %v after an update", h, err)
	}
	if err := d.Delete(t.Context(), record.Key, 2); err != nil {
		t.Error(err)
	}
	if opened != 1 || d.Name() != "lazy" {
		t.Errorf("it was opened %d times", opened)
	}
	if err := d.Close(); err != nil || inner.closed != 1 {
		t.Errorf("%v, it was closed %d times", err, inner.closed)
	}

	shut := lazy.New("lazy", func(context.Context) (lazy.Opened, error) { panic("opened") })
	if err := shut.Close(); err != nil {
		t.Error(err)
	}
	d = shut
	fail("closed before it was opened")
}

// One call waits for another that opens, and no longer than its context lives.
func TestWaitsItsTurn(t *testing.T) {
	opening, open := make(chan struct{}), make(chan struct{})
	d := lazy.New("lazy", func(context.Context) (lazy.Opened, error) {
		close(opening)
		<-open
		return &closer{Driver: memory.New(time.Now)}, nil
	})
	first := make(chan error, 1)
	go func() {
		_, err := d.Open(t.Context())
		first <- err
	}()
	<-opening
	ctx, cancel := context.WithCancel(t.Context())
	second := make(chan error, 1)
	go func() {
		_, err := d.Open(ctx)
		second <- err
	}()
	cancel()
	if err := <-second; !errkind.Is(err, errkind.Canceled) {
		t.Errorf("got %v", err)
	}
	close(open)
	if err := <-first; err != nil {
		t.Error(err)
	}
}
