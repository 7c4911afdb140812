package eldest

import (
	"context"
	"errors"
	"time"
)

// stand is the loop of a candidate until it is stopped.
func (e *Election) stand() {
	pauses := &backoff{least: 100 * time.Millisecond, most: longer(e.checkEvery(), 100*time.Millisecond)}
	wait := e.checkEvery()
	for e.ctx.Err() == nil {
		if e.current() != nil {
			e.keep()
			if e.ctx.Err() != nil {
				return
			}
			e.electionStarted()
			// The first call asks at once who leads now; only later ones wait.
			wait = 0
		}
		if err := e.campaign(e.ctx, wait); err != nil {
			if e.ctx.Err() != nil {
				return
			}
			e.failedBy(err)
			e.clock.rest(e.ctx, pauses.next(), nil)
			continue
		}
		wait = e.checkEvery()
		pauses.reset()
	}
}

func (e *Election) checkEvery() time.Duration {
	return shorter(orElse(e.options.CheckEvery, checkUnlessTold), waitMost)
}

// keep lasts until the lease is over.
func (e *Election) keep() {
	lease := e.current()
	e.reign(lease)
	<-lease.ctx.Done()
	if e.ctx.Err() == nil {
		e.lost(lease)
	}
}

// campaign is one acquire, and its result.
func (e *Election) campaign(outer context.Context, wait time.Duration) error {
	ctx, cancel := context.WithCancel(outer)
	defer cancel()
	e.setRound(cancel)
	defer e.setRound(nil)
	asked := Asked{InstanceID: e.held.instanceID, TTL: e.held.ttl, Address: e.options.Address, Metadata: e.options.Metadata}
	asked.Priority, asked.Wait = e.options.Priority, wait
	call := ctx
	if wait == 0 {
		// A call that waits leaves the waiter queue when its connection closes; any other may still be granted the
		// role, so its answer is awaited.
		var over context.CancelFunc
		call, over = lingering(ctx, e.clock, answerMost)
		defer over()
	}
	grant, err := e.store.acquire(call, e.held.role, asked)
	if err == nil {
		e.perhaps(false)
		return e.take(outer, grant)
	}
	if errors.Is(err, ErrHeld) {
		e.perhaps(false)
		if outer.Err() == nil {
			e.follow(err)
		}
		return nil
	}
	if ctx.Err() != nil || errors.Is(err, ErrIndeterminate) {
		e.perhaps(true)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (e *Election) setRound(cancel context.CancelFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.round = cancel
}

func (e *Election) perhaps(held bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.perhapsHeld = held
}

func (e *Election) take(ctx context.Context, grant Grant) error {
	lease := newLease(e.store, e.held, grant.Token)
	held := lease.begin(ctx, grant)
	if !e.install(lease, held) {
		// Stopped meanwhile, or over already: no listener has heard of this lease, and none may.
		lease.end(ErrStopped)
		lease.work.Wait()
		e.perhaps(true)
		return nil
	}
	e.tell(ElectionEvent{Kind: LeaderAcquired, Token: lease.token})
	e.see(e.held.instanceID)
	e.electionCompleted()
	return nil
}

// install makes it the current lease, unless Stop has looked for a lease to end before.
func (e *Election) install(lease *lease, held bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !held || e.ctx.Err() != nil || (e.state != starting && e.state != started) {
		return false
	}
	e.lease = lease
	return true
}

func (e *Election) follow(err error) {
	var problem *Problem
	if errors.As(err, &problem) {
		holder, _ := problem.Holder()
		if holder != nil {
			e.see(holder.ID)
		} else {
			e.see("")
		}
	}
	e.electionCompleted()
}

// lost reports, once, that this lease has ended.
func (e *Election) lost(lease *lease) {
	e.mu.Lock()
	was := lease != nil && e.lease == lease
	if was {
		e.lease = nil
	}
	e.mu.Unlock()
	if was {
		e.tell(ElectionEvent{Kind: LeaderLost})
	}
}

func (e *Election) electionStarted() {
	e.mu.Lock()
	was := e.electing
	e.electing = true
	e.mu.Unlock()
	if !was {
		e.tell(ElectionEvent{Kind: ElectionStarted})
	}
}

func (e *Election) electionCompleted() {
	e.mu.Lock()
	was := e.electing
	e.electing = false
	e.mu.Unlock()
	if was {
		e.tell(ElectionEvent{Kind: ElectionCompleted, Won: e.IsLeader()})
	}
}

func (e *Election) see(leader string) {
	e.mu.Lock()
	was := e.leader
	e.leader = leader
	e.mu.Unlock()
	if leader != "" && leader != was {
		e.tell(ElectionEvent{Kind: NewLeader, Leader: leader})
	}
}

// watch learns from the feed who leads, and that the role was lost. Without the feed the election goes on, only less
// promptly.
func (e *Election) watch() {
	pauses := newBackoff()
	opened := func() { e.tell(ElectionEvent{Kind: SubscribeStarted}) }
	broke := func(err error) { e.tell(ElectionEvent{Kind: SubscribeError, Err: err}) }
	for e.ctx.Err() == nil {
		feed := e.store.watch(e.ctx, e.held.role, opened, broke)
		err := e.listen(feed)
		feed.Close()
		if e.ctx.Err() != nil {
			return
		}
		broke(err)
		if isFinal(err) && !errors.Is(err, ErrCompacted) {
			return
		}
		e.clock.rest(e.ctx, pauses.next(), nil)
	}
}

func (e *Election) listen(feed watching) error {
	for {
		event, err := feed.Next(e.ctx)
		if err != nil {
			return err
		}
		if event.Role == e.held.role {
			e.hear(event)
		}
	}
}

func (e *Election) hear(event Event) {
	lease := e.current()
	switch event.Kind {
	case "role_lost":
		if lease != nil && event.Token == lease.token {
			lease.end(errors.New("the role was lost: " + event.Reason))
		}
		if lease == nil {
			e.electionStarted()
		}
	case "role_acquired":
		if lease != nil && event.Token > lease.token {
			lease.end(errors.New(event.InstanceID + " has the role"))
		}
		if event.InstanceID == e.held.instanceID {
			e.ask()
		} else if !e.IsLeader() {
			e.see(event.InstanceID)
		}
	}
}

// ask: this instance was granted the role. If the call that waits does not say so, the grant was for another call, and
// this one asks again.
func (e *Election) ask() {
	e.mu.Lock()
	round := e.round
	e.mu.Unlock()
	if round != nil {
		// Ending a round that is over by then does no harm.
		e.clock.after(answerTime, round)
	}
}
