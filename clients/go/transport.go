package eldest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// No attempt begins so near the end of a call that it would be cut off: that would only make its outcome unknown.
	lastAttempt     = 250 * time.Millisecond
	lastAttemptPart = 5
	// This is less than the time after which a node closes idle connections.
	idleTimeout = 30 * time.Second
	// Connections to one node. Leases have separate ones, so that no crowd of other calls takes a renewal's place.
	callConnsMost  = 64
	leaseConnsMost = 16
)

// transport makes calls to many nodes: attempts, pauses, a time limit, and what is known in the end.
type transport struct {
	settings
	bases []string
	// Whether another life of this process can know the secret too. If so, processes with chosen names are guarded by
	// it as well.
	secretIsNamed bool

	calls, leases, waits, lines *http.Client

	mu     sync.Mutex
	at     int
	beside int
}

func newTransport(nodes []string, options []Option) (*transport, error) {
	t := &transport{settings: settings{call: callTimeout, attempt: attemptTimeout}}
	for _, option := range options {
		if err := option(&t.settings); err != nil {
			return nil, err
		}
	}
	bases, err := nodesOf(nodes)
	if err != nil {
		return nil, err
	}
	t.bases = bases
	t.secretIsNamed = t.secret != ""
	if !t.secretIsNamed {
		t.secret = randomID()
	}
	if t.clock == nil {
		t.clock = newSystemClock()
	}
	t.calls, t.leases = t.client(callConnsMost), t.client(leaseConnsMost)
	t.waits, t.lines = t.client(0), t.client(0)
	t.lines.Transport.(*http.Transport).DisableKeepAlives = true
	return t, nil
}

// client goes to the given nodes and nowhere else: no proxy, no redirect. It speaks HTTP/1.1, where each stream has its
// own connection, whose end differs from that of a call.
func (t *transport) client(connsMost int) *http.Client {
	dialer := &net.Dialer{KeepAlive: 15 * time.Second}
	return &http.Client{
		Transport: &http.Transport{
			DialContext:         dialer.DialContext,
			TLSClientConfig:     t.tls,
			TLSNextProto:        nil,
			ForceAttemptHTTP2:   false,
			MaxIdleConnsPerHost: 8,
			MaxConnsPerHost:     connsMost,
			IdleConnTimeout:     idleTimeout,
			DisableCompression:  true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (t *transport) close() {
	for _, client := range []*http.Client{t.calls, t.leases, t.waits, t.lines} {
		client.CloseIdleConnections()
	}
}

// answer is the answer to a call. The times are when its first attempt and the answered one were sent, on the clock.
// lost: an earlier attempt had an unknown outcome; it is set for a failed call too.
type answer struct {
	status      int
	header      http.Header
	body        []byte
	firstSentAt time.Duration
	sentAt      time.Duration
	lost        bool
}

var errNoTime = errors.New("its time was over before the first attempt")

// do makes a call. A 421, 429 or 503 of a node means surely not applied, so the call goes on at the next node. It also
// does after an unknown outcome, with the same key, unless the call may be made once at most.
func (t *transport) do(ctx context.Context, s spec) (answer, error) {
	request, err := t.prepare(s)
	if err != nil {
		return answer{}, err
	}
	began := t.clock.now()
	patience := t.patience(ctx, s)
	end := began + patience
	lastStart := end - shorter(lastAttempt, patience/lastAttemptPart)
	pauses := newBackoff()
	at, lost, cause := t.first(), false, errNoTime
	for attempts := 1; t.clock.now() < lastStart && ctx.Err() == nil; attempts++ {
		sentAt := t.clock.now()
		most := orElse(s.attempt, t.attempt) + s.wait
		// A call that waits has time, and a call that is made once is not abandoned for another node.
		watched := len(t.bases) > 1 && s.wait == 0 && !s.once
		got := t.try(ctx, at, request, shorter(most, end-sentAt), watched)
		if got.kind == answered {
			t.answeredBy(at)
			got.answer.firstSentAt, got.answer.sentAt, got.answer.lost = began, sentAt, lost
			return got.answer, nil
		}
		if got.kind == final {
			if lost && isTheDoor(got.err) {
				return answer{lost: lost}, &Indeterminate{Call: request.name(), Cause: got.err, IdempotencyKey: request.key}
			}
			return answer{lost: lost}, got.err
		}
		cause = got.err
		lost = lost || (got.kind == unknown && request.write)
		if lost && s.once {
			break
		}
		at = t.next(at, got.err)
		if got.kind == unsent && attempts < len(t.bases) {
			continue
		}
		t.clock.rest(ctx, shorter(pauses.next(), lastStart-t.clock.now()), nil)
	}
	return answer{lost: lost}, givenUp(ctx, request, lost, cause)
}

// patience is how long a call may take. The context's deadline is a moment of the wall clock; in the end the context
// itself judges it.
func (t *transport) patience(ctx context.Context, s spec) time.Duration {
	patience := orElse(s.patience, t.call) + s.wait
	if deadline, ok := ctx.Deadline(); ok {
		patience = shorter(patience, time.Until(deadline))
	}
	return patience
}

// isTheDoor reports whether the refusal was made before the call was looked at: then it says nothing about an earlier
// attempt.
func isTheDoor(err error) bool {
	var problem *Problem
	if !errors.As(err, &problem) {
		return true
	}
	return problem.Status == http.StatusUnauthorized || problem.Status == http.StatusForbidden
}

func givenUp(ctx context.Context, request *prepared, lost bool, cause error) error {
	if err := ctx.Err(); err != nil && !errors.Is(cause, err) {
		cause = fmt.Errorf("%w (%v)", err, cause)
	}
	if lost {
		return &Indeterminate{Call: request.name(), Cause: cause, IdempotencyKey: request.key}
	}
	return &Unavailable{Call: request.name(), Cause: cause}
}

// first is the node that is tried first: the one that answered last.
func (t *transport) first() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.at
}

func (t *transport) answeredBy(at int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at = at
}

// next is the leader, if the error names it and it is one of the given nodes: a call never goes anywhere else.
func (t *transport) next(at int, err error) int {
	next := (at + 1) % len(t.bases)
	var problem *Problem
	if errors.As(err, &problem) && problem.Status == http.StatusMisdirectedRequest && problem.LeaderNode != nil {
		url := strings.TrimRight(problem.LeaderNode.URL, "/")
		for i, base := range t.bases {
			if base == url && i != at {
				next = i
			}
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.at == at {
		t.at = next
	}
	return next
}

// leave: the next stream is tried elsewhere.
func (t *transport) leave(err error) {
	t.next(t.first(), err)
}

// besides returns a node other than the one that answers calls, if there is one, each time the next.
func (t *transport) besides() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.beside = (t.beside + 1) % len(t.bases)
	if t.beside == t.at {
		t.beside = (t.beside + 1) % len(t.bases)
	}
	return t.bases[t.beside]
}

func orElse(d, otherwise time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return otherwise
}
