package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"holdfast/internal/errkind"
	"holdfast/internal/wire"
)

// Delays between two rounds through all endpoints: doubled each time, with jitter.
const (
	firstDelay = 50 * time.Millisecond
	maxDelay   = time.Second
)

// call is one call and its attempts. It belongs to the goroutine that makes the call.
type call struct {
	c         *Client
	write     bool
	requestID string

	start     time.Time
	contact   time.Time // when a manager was last reached; the start, if none was
	uncertain bool      // an attempt may have been done without an answer
	endless   bool      // it goes on for as long as its context lives
	tried     []attempt // by endpoint, in the order of the first attempt
	failures  int       // attempts that failed
	delay     time.Duration

	// retried, if it is set, is told of each failure after which the call is tried again.
	retried func(e *endpoint, err error)
}

// attempt is what came of trying one endpoint.
type attempt struct {
	endpoint string
	times    int
	err      error // of the last time
	sent     bool  // the last time
}

func newCall(c *Client, write bool, requestID string) *call {
	now := time.Now()
	return &call{c: c, write: write, requestID: requestID, start: now, contact: now, delay: firstDelay}
}

// run tries the endpoints in turn, from the one that answered last, until one gives an
// answer that a retry would not change.
func (l *call) run(ctx context.Context, do func(context.Context, *endpoint) error) error {
	for i := int(l.c.preferred.Load()); ; i++ {
		e := l.c.endpoints[i%len(l.c.endpoints)]
		sent, err := l.try(ctx, e, do)
		if err == nil {
			l.c.prefer(e)
			return nil
		}
		if !l.again(ctx, e, err, sent) {
			return l.finalError(ctx, err, sent)
		}
		if l.retried != nil {
			l.retried(e, err)
		}
		if !l.pause(ctx) {
			return l.retryError(ctx)
		}
	}
}

// pause waits after each round through all endpoints, each time longer. It returns false if
// there shall be no other attempt.
func (l *call) pause(ctx context.Context) bool {
	if l.failures++; l.failures%len(l.c.endpoints) != 0 {
		return true
	}
	if l.gaveUp() || !wait(ctx, l.delay) {
		return false
	}
	l.delay = min(2*l.delay, maxDelay)
	return true
}

// renew forgets what failed: a call that goes on for long, and was well in between, is tried
// again as if it began now.
func (l *call) renew() { l.tried, l.failures, l.delay = nil, 0, firstDelay }

// try makes one attempt, and tells whether any of it was sent.
func (l *call) try(ctx context.Context, e *endpoint, do func(context.Context, *endpoint) error) (sent bool, err error) {
	if l.write && l.requestID == "" {
		if err := l.c.learn(ctx, e); err != nil {
			return false, err
		}
		l.requestID = l.c.NewRequestID()
	}
	if l.write {
		ctx = metadata.AppendToOutgoingContext(ctx, wire.RequestID, l.requestID)
	}
	ctx, wasSent := withSent(ctx)
	err = do(ctx, e)
	return wasSent.Load(), err
}

// again takes in a failed attempt and tells whether the call may be tried again.
func (l *call) again(ctx context.Context, e *endpoint, err error, sent bool) bool {
	if sent {
		l.contact = time.Now()
	}
	if ctx.Err() != nil || l.c.closed.Load() {
		l.cut(e.name, err, sent)
		return false
	}
	kind := errkind.Of(errkind.FromStatus(err))
	switch {
	case isUnavailable(err):
		l.uncertain = l.uncertain || sent
	case kind == errkind.NoLeader:
	case kind == errkind.UnknownOutcome && isOurs(err):
		l.uncertain = true
	case kind == errkind.Canceled, kind == errkind.DeadlineReached: // the manager's own end, or ours that came to it first
		l.uncertain = true
		err = l.saidBefore(e.name, err)
	default:
		return false
	}
	l.note(e.name, err, sent)
	return true
}

func (l *call) note(endpoint string, err error, sent bool) {
	for i := range l.tried {
		if a := &l.tried[i]; a.endpoint == endpoint {
			a.times, a.err, a.sent = a.times+1, err, sent
			return
		}
	}
	l.tried = append(l.tried, attempt{endpoint: endpoint, times: 1, err: err, sent: sent})
}

// cut notes an attempt that our own end cut short, unless the endpoint said something before.
func (l *call) cut(endpoint string, err error, sent bool) {
	if l.saidBefore(endpoint, nil) == nil {
		l.note(endpoint, err, sent)
	}
}

// saidBefore returns what an endpoint said in an earlier attempt, which says more than that a time
// is over; or, if there was none, err.
func (l *call) saidBefore(endpoint string, err error) error {
	for _, a := range l.tried {
		if a.endpoint == endpoint {
			return a.err
		}
	}
	return err
}

// gaveUp tells, after a round through all endpoints, that there shall be no other.
func (l *call) gaveUp() bool {
	if l.endless {
		return false
	}
	now := time.Now()
	if r := l.c.opts.RetryFor; r != 0 && now.Sub(l.start) >= r {
		return true
	}
	// While the outcome of a write is open, it is worth waiting for a manager to come back.
	return !(l.write && l.uncertain) && now.Sub(l.contact) >= l.c.opts.ConnectWait && !l.reached()
}

// reached tells whether a manager was reached in the last round.
func (l *call) reached() bool {
	for _, a := range l.tried {
		if a.sent {
			return true
		}
	}
	return false
}

// finalError gives the error that ended a call at once.
func (l *call) finalError(ctx context.Context, err error, sent bool) error {
	if ctx.Err() != nil {
		l.uncertain = l.uncertain || sent
		return l.retryError(ctx)
	}
	if l.c.closed.Load() {
		return &errkind.Error{Kind: errkind.Canceled, Msg: "the client is closed", Err: err}
	}
	return errkind.FromStatus(err)
}

// retryError gives the error of a call that was tried in vain, with all that was tried.
func (l *call) retryError(ctx context.Context) error {
	e := &errkind.Error{Err: ctx.Err()}
	var noLeader *errkind.Error
	for _, a := range l.tried {
		if ours, ok := errors.AsType[*errkind.Error](errkind.FromStatus(a.err)); ok && ours.Kind == errkind.NoLeader {
			noLeader = ours
		}
	}
	switch {
	case l.write && l.uncertain:
		e.Kind = errkind.UnknownOutcome
		e.Msg = fmt.Sprintf("no answer; whether it was done is not known (request ID %s)", l.requestID)
		e.Hint = "see whether it was done before you do it again"
	case noLeader != nil:
		e.Kind, e.Msg, e.Hint = errkind.NoLeader, "the cluster has no leader, and nothing was done", noLeader.Hint
		if noLeader.Object != "" { // it is not the cluster that is away, but what it needs for an object
			e.Msg = "nothing was done"
		}
	case ctx.Err() == context.Canceled:
		e.Kind, e.Msg = errkind.Canceled, "canceled"
	case len(l.tried) > 0 && !l.reached():
		e.Kind, e.Msg = errkind.NoLeader, "cannot connect to any manager"
		e.Hint = "is managerd running, and is this its address?"
	default:
		e.Kind, e.Msg = errkind.DeadlineReached, "no answer in time"
	}
	if ctx.Err() == context.DeadlineExceeded {
		e.Msg += fmt.Sprintf("; gave up after %v", time.Since(l.start).Round(time.Millisecond))
	}
	if len(l.tried) > 0 {
		e.Msg += ": " + l.describe()
	}
	return e
}

// describe names the endpoints that failed, and what they said, each reason once.
func (l *call) describe() string {
	var reasons []string
	endpoints := map[string][]string{} // by the reason
	for _, a := range l.tried {
		why, times := reason(a.err), ""
		if a.times > 1 {
			times = fmt.Sprintf(" (%d times)", a.times)
		}
		if endpoints[why] == nil {
			reasons = append(reasons, why)
		}
		endpoints[why] = append(endpoints[why], a.endpoint+times)
	}
	for i, why := range reasons {
		reasons[i] = strings.Join(endpoints[why], ", ") + ": " + why
	}
	return strings.Join(reasons, "; ")
}

// reason shortens what gRPC says of a connection to what a person can use.
func reason(err error) string {
	text := errkind.FromStatus(err).Error()
	if _, cause, ok := strings.Cut(text, "Error while dialing: "); ok {
		return strings.TrimSuffix(cause, `"`)
	}
	return text
}

// isUnavailable tells whether err is gRPC's own: the connection broke, or there was none.
func isUnavailable(err error) bool {
	return status.Code(err) == codes.Unavailable && !isOurs(err)
}

// isOurs tells whether err came from a manager with details, and not from gRPC.
func isOurs(err error) bool {
	if _, ok := errors.AsType[*errkind.Error](err); ok { // told by a message
		return true
	}
	s, ok := status.FromError(err)
	return ok && len(s.Details()) > 0
}

// wait waits for about d; it returns false if ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d/2 + rand.N(d))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
