package eldest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ElectionOptions: the zero value stands for a role by a lease of 30 s and a connection.
type ElectionOptions struct {
	// TTL is how long the role stays with a holder that is not heard of: 1 s to 1 h, 30 s unless told.
	TTL time.Duration
	// RenewEvery is 10 s, or a third of a shorter TTL.
	RenewEvery time.Duration
	// CheckEvery is how long a follower's call waits for the role before it is made again: 5 s unless told, 30 s at most. It is granted the
	// role the moment it is free.
	CheckEvery time.Duration
	HeldBy     HeldBy
	// Priority: of those that wait, the highest is next.
	Priority int
	// InstanceID is one life of one process; drawn by lot unless told.
	InstanceID string
	// Address and Metadata are what others see with the leader.
	Address  string
	Metadata any
	// NoFeed: the feed is not listened to. Who leads, and that a role was lost, is heard later then; it saves one connection.
	NoFeed bool
}

const (
	checkUnlessTold = 5 * time.Second
	// A call that waits longer than this is cut off by more gateways than it is worth.
	waitMost = 30 * time.Second
	// How long a wait that was granted may take to say so, before it is asked again.
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

// Election is one process's part in the election of a role: it waits for it, keeps it, tells of it, gives it up. It may be used by many
// goroutines at once, and started again after Stop.
type Election struct {
	store   store
	clock   clock
	held    held
	options ElectionOptions
	heard   listeners
	// reign is what is done while a lease is held; it returns when the next one may be asked for.
	reign func(*lease)

	mu       sync.Mutex
	state    electionState
	lease    *lease
	leader   string
	electing bool
	// An acquire was given up while it waited, or its outcome never came: it may have been granted.
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

// Role is what it stands for.
func (e *Election) Role() string { return e.held.role }

// InstanceID is who it is.
func (e *Election) InstanceID() string { return e.held.instanceID }

// IsLeader is read, at every call, off a clock that goes on while the machine sleeps: false before the lease can have ended anywhere.
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

// Context is one that ends when this leadership does; false while this process does not lead.
func (e *Election) Context(parent context.Context) (context.Context, context.CancelFunc, bool) {
	lease := e.current()
	if lease == nil || !lease.isHeld() {
		return nil, nil, false
	}
	ctx, cancel := untilOver(parent, lease)
	return ctx, cancel, true
}

// Leader is the instance that leads, as far as this one has heard; empty where none does.
func (e *Election) Leader() string {
	if e.IsLeader() {
		return e.held.instanceID
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.leader
}

// LastError is what the last Failed told of.
func (e *Election) LastError() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lastErr
}

// Events are what happens from now on; the function ends them. A listener that 255 events wait for misses the next ones.
func (e *Election) Events() (<-chan ElectionEvent, func()) { return e.heard.add() }

func (e *Election) tell(event ElectionEvent) { e.heard.tell(event) }

func (e *Election) current() *lease {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lease
}

// Start stands for the role until Stop. It returns when the first attempt is over, won or not; while the cluster is away, it goes on trying
// in the background. It fails with what trying again would not help, such as a name that is too long, or when ctx ends before.
func (e *Election) Start(ctx context.Context) error {
	if err := e.begin(ctx, 0, !e.options.NoFeed); err != nil {
		return err
	}
	e.inBackground(e.stand)
	return nil
}

// TryOnce asks once, and waits for at most wait. Who wins keeps the role until Stop; who does not, or cannot reach the cluster (LastError
// says why then), does not stand for it any longer. It tells whether this process leads.
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
	// Stop waits for what is begun here.
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

// Stop believes no more, then gives the role up, so that the next one leads at once: stop your work before you call it. An error says that
// the role could not be released; it lapses then. It takes 6 s at most where the cluster is away.
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

// giveUp: from here on nobody believes. Only then does anybody hear of it, and only then may another process be granted the role.
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
