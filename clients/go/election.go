package eldest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ElectionOptions: the zero value asks for a role that is held by a lease of 30 s and a connection.
type ElectionOptions struct {
	// TTL is how long the role stays with a holder that is not heard from: 1 s to 1 h, 30 s by default.
	TTL time.Duration
	// RenewEvery is 10 s, or a third of a shorter TTL.
	RenewEvery time.Duration
	// CheckEvery is how long a follower's call waits for the role before it is repeated: 5 s by default, 30 s at most.
	// The follower is granted the role the moment it is free.
	CheckEvery time.Duration
	HeldBy     HeldBy
	// Priority: the waiter with the highest one is next.
	Priority int
	// InstanceID is one life of one process; random by default.
	InstanceID string
	// Address and Metadata are shown to others with the leader.
	Address  string
	Metadata any
	// NoFeed: do not read the feed. The election then learns later who leads and that a role was lost, and saves one
	// connection.
	NoFeed bool
}

const (
	checkUnlessTold = 5 * time.Second
	// Too many gateways cut off a call that waits longer than this.
	waitMost = 30 * time.Second
	// The time in which a call that waits and was granted the role may say so, before it is repeated.
	answerTime = 250 * time.Millisecond
)

type electionState int

const (
	stopped electionState = iota
	starting
	started
	stopping
)

func (s electionState) String() string {
	return [...]string{"stopped", "starting", "started", "stopping"}[s]
}

// Election is one process's part in the election of a role: it waits for the role, keeps it, reports on it and gives it
// up. Many goroutines may use it at once, and it can be started again after Stop.
type Election struct {
	store   store
	clock   clock
	held    held
	options ElectionOptions
	heard   listeners
	// reign runs while a lease is held; when it returns, the next lease may be asked for.
	reign func(*lease)

	mu       sync.Mutex
	state    electionState
	lease    *lease
	leader   string
	electing bool
	// An acquire was abandoned while it waited, or its outcome never came: the role may have been granted.
	perhapsHeld bool
	lastErr     error
	ctx         context.Context
	stop        context.CancelFunc
	round       context.CancelFunc
	ended       chan struct{}
	tasks       sync.WaitGroup
}

// Election makes one process's part in the election of a role. It does nothing before Start.
func (c *Client) Election(role string, options ElectionOptions) (*Election, error) {
	return electionOf(c.store, role, options)
}

func electionOf(s store, role string, options ElectionOptions) (*Election, error) {
	if _, err := segment(role, "role"); err != nil {
		return nil, err
	}
	held, err := heldOf(role, options.InstanceID, options.TTL, options.RenewEvery)
	if err != nil {
		return nil, err
	}
	e := &Election{store: s, clock: s.time(), held: held, options: options}
	e.held.by = options.HeldBy
	e.held.failed = func(err error) { e.tell(ElectionEvent{Kind: HeartbeatFailed, Err: err}) }
	e.reign = func(l *lease) { <-l.ctx.Done() }
	return e, nil
}

// Role is the role of the election.
func (e *Election) Role() string { return e.held.role }

// InstanceID is the id of this instance.
func (e *Election) InstanceID() string { return e.held.instanceID }

// IsLeader reads, at every call, a clock that goes on while the machine sleeps: it is false before the lease can have
// ended anywhere.
func (e *Election) IsLeader() bool {
	lease := e.current()
	return lease != nil && lease.isHeld()
}

// Token is the fencing token of this process's grant; false while it does not lead. It rises with every grant of the role.
func (e *Election) Token() (uint64, bool) {
	lease := e.current()
	if lease == nil || !lease.isHeld() {
		return 0, false
	}
	return lease.token, true
}

// Context returns a context that ends when this leadership does; false while this process does not lead.
func (e *Election) Context(parent context.Context) (context.Context, context.CancelFunc, bool) {
	lease := e.current()
	if lease == nil || !lease.isHeld() {
		return nil, nil, false
	}
	ctx, cancel := untilOver(parent, lease)
	return ctx, cancel, true
}

// Leader is the instance that leads, as far as this one has heard; empty if none does.
func (e *Election) Leader() string {
	if e.IsLeader() {
		return e.held.instanceID
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.leader
}

// LastError is the error of the last Failed.
func (e *Election) LastError() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lastErr
}

// Events returns a channel of all events from now on, and a function that closes it. If 255 events wait for a listener,
// it misses the next ones.
func (e *Election) Events() (<-chan ElectionEvent, func()) { return e.heard.add() }

func (e *Election) tell(event ElectionEvent) { e.heard.tell(event) }

func (e *Election) current() *lease {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lease
}

// Start stands for the role until Stop. It returns when the first attempt is over, won or not; if the cluster is away,
// it goes on trying in the background. It fails if trying again would not help, such as with a name that is too long,
// or if ctx ends before.
func (e *Election) Start(ctx context.Context) error {
	if err := e.begin(ctx, 0, !e.options.NoFeed); err != nil {
		return err
	}
	e.inBackground(e.stand)
	return nil
}

// TryOnce asks once, waits for at most wait, and returns whether this process leads. A winner keeps the role until
// Stop. Otherwise, or if the cluster cannot be reached (LastError says why then), it does not stand for the role any
// longer.
func (e *Election) TryOnce(ctx context.Context, wait time.Duration) (bool, error) {
	if err := e.begin(ctx, wait, false); err != nil {
		return false, err
	}
	e.inBackground(func() {
		if e.current() != nil {
			e.keep()
		}
	})
	return e.IsLeader(), nil
}

func (e *Election) inBackground(task func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state != started {
		return
	}
	e.tasks.Add(1)
	go func() {
		defer e.tasks.Done()
		task()
	}()
}

func (e *Election) begin(outer context.Context, wait time.Duration, watch bool) error {
	e.mu.Lock()
	if e.state != stopped {
		defer e.mu.Unlock()
		return fmt.Errorf("eldest: the election is %v", e.state)
	}
	e.state = starting
	e.ctx, e.stop = context.WithCancel(context.Background())
	// Stop waits for the work that begins here.
	e.tasks.Add(1)
	e.mu.Unlock()
	err := e.beginning(outer, wait, watch)
	e.tasks.Done()
	if err != nil {
		_ = e.Stop(context.Background())
	}
	return err
}

func (e *Election) beginning(outer context.Context, wait time.Duration, watch bool) error {
	if watch {
		e.tasks.Add(1)
		go func() {
			defer e.tasks.Done()
			e.watch()
		}()
	}
	e.electionStarted()
	first, cancel := context.WithCancel(e.ctx)
	defer cancel()
	gone := make(chan struct{})
	defer close(gone)
	go func() {
		select {
		case <-outer.Done():
			cancel()
		case <-gone:
		}
	}()
	err := e.campaign(first, wait)
	if err != nil {
		e.failedBy(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state == starting && !isFinal(err) && outer.Err() == nil {
		e.state = started
		return nil
	}
	if outer.Err() != nil {
		return outer.Err()
	}
	if isFinal(err) {
		return err
	}
	return ErrStopped
}

// Stop first stops believing, then gives the role up, so that the next one leads at once: stop your work before you
// call it. An error says that the role could not be released and will lapse. If the cluster is away, Stop takes 6 s at
// most.
func (e *Election) Stop(ctx context.Context) error {
	e.mu.Lock()
	if e.state == stopped || e.state == stopping {
		ended := e.ended
		e.mu.Unlock()
		if ended != nil {
			<-ended
		}
		return nil
	}
	e.state = stopping
	e.ended = make(chan struct{})
	lease := e.lease
	e.mu.Unlock()
	err := e.giveUp(ctx, lease)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.perhapsHeld, e.electing, e.leader = false, false, ""
	e.state = stopped
	close(e.ended)
	return err
}

// giveUp ends the belief first. Only then do listeners hear of it, and only then may another process be granted the
// role.
func (e *Election) giveUp(ctx context.Context, lease *lease) error {
	if lease != nil {
		lease.end(ErrStopped)
	}
	e.stop()
	e.lost(lease)
	e.tasks.Wait()
	e.mu.Lock()
	perhaps := e.perhapsHeld
	e.mu.Unlock()
	var err error
	if lease != nil {
		err = lease.release(ctx, releasePatience)
	} else if perhaps {
		err = abandon(ctx, e.store, e.held)
	}
	if err != nil {
		e.failedBy(err)
	}
	return err
}

func (e *Election) failedBy(err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	e.mu.Lock()
	e.lastErr = err
	e.mu.Unlock()
	e.tell(ElectionEvent{Kind: Failed, Err: err})
}
