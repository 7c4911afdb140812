package eldest

import (
	"context"
	"errors"
	"time"
)

// LockOptions: the zero value is a lock that is not waited for, of a lease of 30 s.
type LockOptions struct {
	// Wait is for how long a lock that another holds is waited for.
	Wait time.Duration
	// TTL is how long it stays with a holder that is not heard of: 1 s to 1 h, 30 s unless told.
	TTL time.Duration
	// RenewEvery is 10 s, or a third of a shorter TTL.
	RenewEvery time.Duration
	HeldBy     HeldBy
	// Priority: of those that wait, the highest is next.
	Priority int
	// InstanceID is one life of one process; drawn by lot unless told.
	InstanceID string
	Address    string
	Metadata   any
	// Failed hears of renewals that failed; the next one follows while there is time. It is not the place to release the lock.
	Failed func(error)
}

// Lock is a role that is held for as long as a piece of work takes. It is renewed in the background until Release.
type Lock struct{ lease *lease }

// Lock waits for at most Wait, and then returns ErrHeld.
func (c *Client) Lock(ctx context.Context, role string, options LockOptions) (*Lock, error) {
	return lockOf(ctx, c.store, role, options)
}

func lockOf(ctx context.Context, s store, role string, options LockOptions) (*Lock, error) {
	drawn := options.InstanceID == ""
	held, err := heldOf(role, options.InstanceID, options.TTL, options.RenewEvery)
	if err != nil {
		return nil, err
	}
	held.by, held.failed = options.HeldBy, options.Failed
	asked := Asked{InstanceID: held.instanceID, TTL: held.ttl, Address: options.Address, Metadata: options.Metadata}
	asked.Priority, asked.Wait = options.Priority, options.Wait
	grant, err := s.acquire(ctx, role, asked)
	if err != nil {
		// Another lock of an instance that was named may stand under it; one that was drawn is known here alone.
		if drawn && (ctx.Err() != nil || errors.Is(err, ErrIndeterminate)) {
			go giveBack(s, held, options.Wait == 0)
		}
		return nil, err
	}
	lease := newLease(s, held, grant.Token)
	if lease.begin(ctx, grant) {
		return &Lock{lease}, nil
	}
	// What nobody knows of here must not stay held there.
	lost := lease.lostBecause()
	go func() { _ = lease.release(context.Background(), releasePatience) }()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, lost
}

// releasePatience: nothing hangs on a cluster that is away. The lease lapses by its ttl then.
const releasePatience = 5 * time.Second

// answerMost is how long an acquire that does not wait in line may go on after whoever asked has gone. A node may be at work on a call whose
// connection is closed, and grant the role after abandon has looked who holds it.
const answerMost = 500 * time.Millisecond

// abandon releases what an acquire may have been granted whose answer nobody has heard. What it cannot release lapses.
func abandon(ctx context.Context, s store, h held) error {
	end := s.time().now() + releasePatience
	holder, token, err := s.holder(ctx, h.role, releasePatience)
	if err != nil || holder != h.instanceID {
		return err
	}
	return s.release(ctx, h.role, h.instanceID, token, end-s.time().now())
}

// giveBack abandons, and looks again later where a node may still be at work on the call. Who waits in line is taken out of it when the
// connection closes.
func giveBack(s store, h held, again bool) {
	_ = abandon(context.Background(), s, h)
	if again {
		s.time().rest(context.Background(), answerMost, nil)
		_ = abandon(context.Background(), s, h)
	}
}

// heldOf fills in what was not told.
func heldOf(role, instanceID string, ttl, renewEvery time.Duration) (held, error) {
	h := held{role: role, instanceID: instanceID, ttl: orElse(ttl, ttlUnlessTold)}
	if h.instanceID == "" {
		h.instanceID = randomID()
	}
	h.renewEvery = orElse(renewEvery, shorter(renewUnlessTold, h.ttl/3))
	if h.renewEvery >= h.ttl {
		return h, errors.New("eldest: a lease is renewed more often than once in its ttl")
	}
	return h, nil
}

// Role is the name of the lock.
func (l *Lock) Role() string { return l.lease.role }

// InstanceID is as what it is held.
func (l *Lock) InstanceID() string { return l.lease.instanceID }

// Token rises with every grant: give it to whatever the lock protects, so that a late writer is told apart.
func (l *Lock) Token() uint64 { return l.lease.token }

// Held is read off a clock at every call that goes on while the machine sleeps: false before another can have it.
func (l *Lock) Held() bool { return l.lease.isHeld() }

// Lost is closed when the lock is over; Err says why.
func (l *Lock) Lost() <-chan struct{} { return l.lease.ctx.Done() }

// Err is why the lock is over: ErrStopped after Release. It is nil while it is not over.
func (l *Lock) Err() error { return l.lease.lostBecause() }

// Context is one that ends when the lock is over: pass it on to what must not outlive it.
func (l *Lock) Context(parent context.Context) (context.Context, context.CancelFunc) {
	return untilOver(parent, l.lease)
}

// Release gives the lock to the next at once. One that was lost meanwhile is no error. What cannot be released, because ctx is over or the
// cluster is away, is free a second after its connection has closed, or lapses.
func (l *Lock) Release(ctx context.Context) error { return l.lease.release(ctx, 0) }

// untilOver ends with either.
func untilOver(parent context.Context, l *lease) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	if !l.isHeld() {
		cancel()
		return ctx, cancel
	}
	go func() {
		select {
		case <-l.ctx.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
