package eldest

import (
	"context"
	"errors"
	"time"
)

// LockOptions: the zero value is a lease of 30 s that does not wait for the lock.
type LockOptions struct {
	// Wait is how long to wait for a lock that another holds.
	Wait time.Duration
	// TTL is how long the lock stays with a holder that is not heard from: 1 s to 1 h, 30 s by default.
	TTL time.Duration
	// RenewEvery is 10 s, or a third of a shorter TTL.
	RenewEvery time.Duration
	HeldBy     HeldBy
	// Priority: the waiter with the highest one is next.
	Priority int
	// InstanceID is one life of one process; random by default.
	InstanceID string
	Address    string
	Metadata   any
	// Failed is called with each error of a renewal; the next one follows while there is time. Do not release the lock
	// in it.
	Failed func(error)
}

// Lock is a role that is held during a piece of work. It is renewed in the background until Release.
type Lock struct{ lease *lease }

// Lock waits for at most Wait, then returns ErrHeld.
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
		// A random instance is known only here; an instance that was named may hold another lock.
		if drawn && (ctx.Err() != nil || errors.Is(err, ErrIndeterminate)) {
			go giveBack(s, held, options.Wait == 0)
		}
		return nil, err
	}
	lease := newLease(s, held, grant.Token)
	if lease.begin(ctx, grant) {
		return &Lock{lease}, nil
	}
	// The caller never learns of this lease, so it must not stay held.
	lost := lease.lostBecause()
	go func() { _ = lease.release(context.Background(), releasePatience) }()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, lost
}

// releasePatience bounds a release while the cluster is away. The lease lapses by its ttl then.
const releasePatience = 5 * time.Second

// answerMost is how long an acquire that does not wait in the queue may go on after its caller has gone. A node may
// still work on a call whose connection is closed, and grant the role after abandon has looked who holds it.
const answerMost = 500 * time.Millisecond

// abandon releases the role if an acquire whose answer never came was granted it. If it cannot be released, it lapses.
func abandon(ctx context.Context, s store, h held) error {
	end := s.time().now() + releasePatience
	holder, token, err := s.holder(ctx, h.role, releasePatience)
	if err != nil || holder != h.instanceID {
		return err
	}
	return s.release(ctx, h.role, h.instanceID, token, end-s.time().now())
}

// giveBack abandons, and looks again later if a node may still work on the call. A call that waits leaves the queue
// when its connection closes.
func giveBack(s store, h held, again bool) {
	_ = abandon(context.Background(), s, h)
	if again {
		s.time().rest(context.Background(), answerMost, nil)
		_ = abandon(context.Background(), s, h)
	}
}

// heldOf fills in the defaults.
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

// InstanceID is the instance that holds the lock.
func (l *Lock) InstanceID() string { return l.lease.instanceID }

// Token rises with every grant: pass it to the resource that the lock protects, so that it can refuse a late writer.
func (l *Lock) Token() uint64 { return l.lease.token }

// Held reads, at every call, a clock that goes on while the machine sleeps: it is false before another can have the
// lock.
func (l *Lock) Held() bool { return l.lease.isHeld() }

// Lost is closed when the lock is over; Err says why.
func (l *Lock) Lost() <-chan struct{} { return l.lease.ctx.Done() }

// Err is the reason of the end: ErrStopped after Release. It is nil while the lock lasts.
func (l *Lock) Err() error { return l.lease.lostBecause() }

// Context returns a context that ends when the lock is over: pass it to work that must not outlive the lock.
func (l *Lock) Context(parent context.Context) (context.Context, context.CancelFunc) {
	return untilOver(parent, l.lease)
}

// Release gives the lock to the next at once. A lock that was lost meanwhile is no error. If it cannot be released,
// because ctx is over or the cluster is away, it is free a second after its connection has closed, or lapses.
func (l *Lock) Release(ctx context.Context) error { return l.lease.release(ctx, 0) }

// untilOver returns a context that ends with its parent or with the lease.
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
