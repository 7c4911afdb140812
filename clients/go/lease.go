package eldest

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// How much the clocks of two machines may differ in pace, and how coarse a timer may be.
	driftPart = 100
	margin    = 10 * time.Millisecond
	// The pause after a failed renewal: a part of the time left, but at least this long.
	retryPart  = 5
	retryLeast = 50 * time.Millisecond
	// The limit of one attempt of a renewal, so that a silent node leaves time for another one.
	renewalPart  = 3
	renewalLeast = 100 * time.Millisecond

	ttlUnlessTold   = 30 * time.Second
	renewUnlessTold = 10 * time.Second
)

// HeldBy is the means by which a role is held.
type HeldBy int

const (
	// Connection: by a lease and a stream to one node. If this process is killed, the role is free a second later.
	Connection HeldBy = iota
	// LeaseAlone: if this process is killed, the role is free when its ttl is over.
	LeaseAlone
)

var errLate = errors.New("no renewal came through in time")

// believable is how long a holder may believe, from the moment at which it sent the request.
func believable(ttl, expiresIn time.Duration) time.Duration {
	span := shorter(ttl, expiresIn)
	return span - span/driftPart - margin
}

// held is the description of a lease.
type held struct {
	role       string
	instanceID string
	ttl        time.Duration
	renewEvery time.Duration
	attempt    time.Duration
	by         HeldBy
	// failed is called with each error of a renewal.
	failed func(error)
}

// lease is one grant of a role, kept: renewed in the background, and believed only as long as it certainly lasts.
type lease struct {
	held
	token uint64
	store store
	clock clock
	ties  *ties
	// ctx ends when the lease is over, for any reason.
	ctx  context.Context
	over context.CancelFunc
	work sync.WaitGroup

	mu    sync.Mutex
	until time.Duration
	// Answers to requests that were sent before this time prove nothing.
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

// isHeld reads the clock at every call, and does not depend on a timer.
func (l *lease) isHeld() bool { return l.left() > 0 }

// left is how much longer the lease is believed.
func (l *lease) left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reason != nil {
		return 0
	}
	return longer(l.until-l.clock.now(), 0)
}

// lostBecause is the reason of the end; nil while the lease lasts.
func (l *lease) lostBecause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reason
}

// begin starts with the answer to the acquire. A grant that was waited for may be as old as the wait: it is renewed
// first, and believed from the sending of that renewal. The same is done with a grant that is nearly over on arrival.
// begin returns whether the lease is held.
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

// end stops all belief in the lease, and cancels calls that are running.
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

// release ends the lease, and gives the role to the next at once. A lease that was lost meanwhile is no error.
func (l *lease) release(ctx context.Context, patience time.Duration) error {
	l.end(ErrStopped)
	l.work.Wait()
	err := l.store.release(ctx, l.role, l.instanceID, l.token, patience)
	if errors.Is(err, ErrLeaseLost) {
		return nil
	}
	return err
}

// number is the number of the connection that the lease ends with; 0 without one.
func (l *lease) number() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tie
}

// believe accepts a proof that was requested under this number. A proof under an older number does not outweigh the end
// of the newer connection.
func (l *lease) believe(p proof, number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.sentAt < l.doubtedAt || number != l.tie || l.reason != nil {
		return
	}
	l.expire(p.sentAt + believable(l.ttl, p.expiresIn))
}

// The caller of expire holds the lock.
func (l *lease) expire(until time.Duration) {
	l.until = until
	l.cancelExpiry()
	l.cancelExpiry = l.clock.after(until-l.clock.now(), l.expired)
}

// expired may run late, after another proof: the clock decides.
func (l *lease) expired() {
	if !l.isHeld() {
		l.end(errLate)
	}
}

// goOn takes the next number, and has it renewed at once. If the connection broke, the node may take this process for
// dead, and end the lease once its grace is over: the lease is believed for half of that.
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

// The caller of hasten holds the lock.
func (l *lease) hasten() {
	select {
	case <-l.hurry:
	default:
		close(l.hurry)
	}
}

// calm resets the hurry, and returns the channel that the next hurry closes.
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

// keepOnce renews, and returns the pause before the next renewal. A renewal that runs when a tie breaks is worth
// nothing: it names the old number.
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

// renew returns whether the lease was renewed. Any error but ErrLeaseLost leaves the belief as it was.
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
