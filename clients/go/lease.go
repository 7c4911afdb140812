package eldest

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// By how much clocks of two machines may differ in pace, and how coarse a timer may be.
	driftPart = 100
	margin    = 10 * time.Millisecond
	// After a renewal that failed, the next one: a part of what is left, but not more often than this.
	retryPart  = 5
	retryLeast = 50 * time.Millisecond
	// So that a node that says nothing leaves time for another one.
	renewalPart  = 3
	renewalLeast = 100 * time.Millisecond

	ttlUnlessTold   = 30 * time.Second
	renewUnlessTold = 10 * time.Second
)

// HeldBy is with what a role is held.
type HeldBy int

const (
	// Connection: by a stream to one node besides the lease. When this process is killed the role is free a second later.
	Connection HeldBy = iota
	// LeaseAlone: when this process is killed the role is free when its ttl is over.
	LeaseAlone
)

var errLate = errors.New("no renewal came through in time")

// believable is for how long a holder may believe, from the moment at which it sent the request.
func believable(ttl, expiresIn time.Duration) time.Duration {
	span := shorter(ttl, expiresIn)
	return span - span/driftPart - margin
}

// held is what a lease is made of.
type held struct {
	role       string
	instanceID string
	ttl        time.Duration
	renewEvery time.Duration
	attempt    time.Duration
	by         HeldBy
	// failed hears of renewals that failed.
	failed func(error)
}

// lease is one grant of a role, kept: renewed in the background, believed in only for as long as it certainly lasts.
type lease struct {
	held
	token uint64
	store store
	clock clock
	ties  *ties
	// ctx ends when the lease is over, for whatever reason.
	ctx  context.Context
	over context.CancelFunc
	work sync.WaitGroup

	mu    sync.Mutex
	until time.Duration
	// What was sent before proves nothing.
	doubtedAt    time.Duration
	tie          uint64
	hurry        chan struct{}
	cancelExpiry func()
	reason       error
}

func newLease(s store, h held, token uint64) *lease {
	ctx, over := context.WithCancel(context.Background())
	l := &lease{held: h, token: token, store: s, clock: s.time(), ctx: ctx, over: over, cancelExpiry: func() {}}
	l.hurry = make(chan struct{})
	if h.by == Connection {
		l.tie = risingNumber()
		l.ties = &ties{lease: l, proved: make(chan uint64, 1)}
	}
	return l
}

// isHeld is read off the clock at every call: no timer has to have fired.
func (l *lease) isHeld() bool { return l.left() > 0 }

// left is for how much longer it is believed in.
func (l *lease) left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reason != nil {
		return 0
	}
	return longer(l.until-l.clock.now(), 0)
}

// lostBecause is why it is over; nil while it is not.
func (l *lease) lostBecause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reason
}

// begin starts with what the acquire answered. A grant that was waited for may be as old as the wait: it is renewed first, and believed
// in from that renewal's sending on. So is one that is nearly over on arrival. It tells whether the lease is held.
func (l *lease) begin(ctx context.Context, grant Grant) bool {
	if !grant.waited {
		l.believe(grant.proof, l.number())
	}
	if l.left() < believable(l.ttl, l.ttl)/2 {
		l.confirm(ctx)
	}
	if !l.isHeld() {
		l.end(errors.New("the grant was over before it could be confirmed"))
		return false
	}
	l.work.Add(1)
	go func() {
		defer l.work.Done()
		l.keep()
	}()
	if l.ties != nil {
		l.work.Add(1)
		go func() {
			defer l.work.Done()
			l.ties.run()
		}()
	}
	return true
}

// end: nobody believes in it any more, and what is under way is given up.
func (l *lease) end(reason error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reason != nil {
		return
	}
	l.reason = reason
	l.cancelExpiry()
	l.over()
}

// release ends it, and gives the role to the next at once. One that was lost meanwhile is no error.
func (l *lease) release(ctx context.Context, patience time.Duration) error {
	l.end(ErrStopped)
	l.work.Wait()
	err := l.store.release(ctx, l.role, l.instanceID, l.token, patience)
	if errors.Is(err, ErrLeaseLost) {
		return nil
	}
	return err
}

// number is that of the connection which the lease ends with; 0 without one.
func (l *lease) number() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tie
}

// believe takes a proof in that was asked for under that number; one of an older number is no proof against the newer one's end.
func (l *lease) believe(p proof, number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.sentAt < l.doubtedAt || number != l.tie || l.reason != nil {
		return
	}
	l.expire(p.sentAt + believable(l.ttl, p.expiresIn))
}

// expire is called under the lock.
func (l *lease) expire(until time.Duration) {
	l.until = until
	l.cancelExpiry()
	l.cancelExpiry = l.clock.after(until-l.clock.now(), l.expired)
}

// expired may come late, after another proof: the clock decides.
func (l *lease) expired() {
	if !l.isHeld() {
		l.end(errLate)
	}
}

// goOn takes the next number, and has it renewed at once. Where the connection broke, the node may take this process for dead, and end the
// lease once its grace is over: it is believed in for half of that.
func (l *lease) goOn(broken bool) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tie++
	if broken && l.reason == nil {
		l.doubtedAt = l.clock.now()
		l.expire(shorter(l.until, l.doubtedAt+grace(l.ttl)/2))
	}
	l.hasten()
	return l.tie
}

func (l *lease) renewNow() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hasten()
}

// hasten is called under the lock.
func (l *lease) hasten() {
	select {
	case <-l.hurry:
	default:
		close(l.hurry)
	}
}

// calm begins a time without hurry, and gives back what ends it.
func (l *lease) calm() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.hurry:
		l.hurry = make(chan struct{})
	default:
	}
	return l.hurry
}

func (l *lease) hurried() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hurry
}

func (l *lease) confirm(ctx context.Context) {
	end := l.clock.now() + l.ttl
	for ctx.Err() == nil && l.lostBecause() == nil && l.clock.now() < end {
		if l.renew(ctx, end-l.clock.now()) {
			return
		}
		l.clock.rest(ctx, retryLeast, l.ctx.Done())
	}
}

// keep renews until the lease is over.
func (l *lease) keep() {
	for pause := l.renewEvery; l.isHeld(); {
		l.clock.rest(l.ctx, shorter(pause, l.left()), l.hurried())
		if !l.isHeld() {
			break
		}
		pause = l.keepOnce()
	}
	l.end(errLate)
}

// keepOnce renews, and tells after which pause to renew again. What is under way when a tie breaks is worth nothing: it names the old number.
func (l *lease) keepOnce() time.Duration {
	hurry := l.calm()
	ctx, cancel := context.WithCancel(l.ctx)
	done := make(chan struct{})
	go func() {
		select {
		case <-hurry:
			cancel()
		case <-done:
		}
	}()
	renewed := l.renew(ctx, l.left())
	close(done)
	cancel()
	select {
	case <-hurry:
		return 0
	default:
	}
	if renewed {
		return l.renewEvery
	}
	return longer(retryLeast, l.left()/retryPart)
}

// renew tells whether it was renewed. Anything but ErrLeaseLost leaves what is believed as it was.
func (l *lease) renew(ctx context.Context, within time.Duration) bool {
	number := l.number()
	asked := renewal{instanceID: l.instanceID, token: l.token, tie: number, ttl: l.ttl, patience: within}
	asked.attempt = longer(renewalLeast, shorter(orElse(l.attempt, attemptTimeout), within/renewalPart))
	proof, err := l.store.renew(ctx, l.role, asked)
	if err == nil {
		l.believe(proof, number)
		l.ties.hasProof(number)
		return true
	}
	if errors.Is(err, ErrLeaseLost) {
		l.end(err)
	}
	if ctx.Err() == nil && l.failed != nil {
		l.failed(err)
	}
	return false
}
