// Package watchapi serves what changes: holdfast.v1's Watch, whose streams carry any number of
// watchers, and SwarmKit's Watch.
//
// A watcher is a position in the store's log of changes. The handler of a stream owns all of the
// stream's watchers: it reads the log from their positions, sends, and sleeps when all is sent
// until the store wakes it, which it does if one of their kinds changed. A second goroutine
// takes in what the client asks for. A client that does not read stops its own handler, and
// holds nothing up; if the log is compacted past a position, the watcher is canceled and told.
package watchapi

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
	"holdfast/manager/state/store"
)

// Store is where the server finds changes.
type Store interface {
	// Entries appends the revisions after one, and returns a revision up to which there was
	// nothing else. It fails with errkind.OutOfRange below the floor.
	Entries(after uint64, buffer []store.Entry) ([]store.Entry, uint64, error)
	NewWaker() *store.Waker
	// At returns the state at a revision, or an errkind.OutOfRange error.
	At(revision uint64) (store.ReadTx, error)
	Root() store.ReadTx
}

// Reader is where a watcher without a start begins.
type Reader interface {
	// Read returns a state as fresh as the caller asked for.
	Read(ctx context.Context) (store.ReadTx, error)
}

// Config is what a server is made of. Store, Reader and HasLeader are needed.
type Config struct {
	Store  Store
	Reader Reader
	// HasLeader tells whether this manager hears of a leader. A stream of one that does not for
	// long is ended, so that the client goes on with another, unless it reads locally.
	HasLeader func() bool

	Interval      time.Duration // of progress, and of looking for the leader; 1s
	Patience      time.Duration // without a leader; 5s
	MaxStreams    int           // 10,000
	MaxWatchers   int           // of one stream; 10,000
	MaxAll        int           // watchers of all streams; 100,000
	FragmentBytes int           // of a message that may be split, and of initial objects; 1 MiB
	MessageBytes  int           // of a message that may not be split; 48 MiB
}

func (c *Config) setDefaults() {
	if c.Interval == 0 {
		c.Interval = time.Second
	}
	if c.Patience == 0 {
		c.Patience = 5 * time.Second
	}
	for _, d := range []struct {
		field *int
		value int
	}{
		{&c.MaxStreams, 10_000},
		{&c.MaxWatchers, 10_000},
		{&c.MaxAll, 100_000},
		{&c.FragmentBytes, 1 << 20},
		{&c.MessageBytes, 48 << 20},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
}

// Server implements holdfast.WatchServer.
type Server struct {
	holdfast.UnimplementedWatchServer
	cfg      Config
	streams  budget
	watchers budget
}

var _ holdfast.WatchServer = (*Server)(nil)

// New returns a server.
func New(cfg Config) *Server {
	cfg.setDefaults()
	return &Server{
		cfg:      cfg,
		streams:  budget{most: int64(cfg.MaxStreams), what: "streams that watch"},
		watchers: budget{most: int64(cfg.MaxAll), what: "watchers"},
	}
}

// budget is how many of something there may be.
type budget struct {
	used atomic.Int64
	most int64
	what string
}

// take takes one; it fails with errkind.Limit.
func (b *budget) take() error {
	if b.used.Add(1) <= b.most {
		return nil
	}
	b.used.Add(-1)
	return &errkind.Error{
		Kind: errkind.Limit, Max: fmt.Sprint(b.most),
		Msg:  fmt.Sprintf("this manager has %d %s, and takes no more", b.most, b.what),
		Hint: "try another manager, or end one",
	}
}

func (b *budget) give(n int) { b.used.Add(int64(-n)) }

// leaderless tells when a manager has been without a leader for too long.
type leaderless struct {
	cfg   *Config
	since time.Duration
}

// tick looks, once an interval. It fails with errkind.NoLeader.
func (l *leaderless) tick() error {
	if l.cfg.HasLeader() {
		l.since = 0
		return nil
	}
	if l.since += l.cfg.Interval; l.since <= l.cfg.Patience {
		return nil
	}
	return errkind.New(errkind.NoLeader, "this manager has heard of no leader for %v, and may miss what changes", l.cfg.Patience).
		WithHint("go on with another manager, from where this stream ended")
}
