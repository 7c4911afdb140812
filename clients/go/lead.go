package eldest

import (
	"context"
	"sync"
)

// Lead stands for the role until ctx ends. Each time this process leads, it calls work with the fencing token and with
// a context that ends when the leadership does. If work returns while this process leads, Lead gives the role up and
// returns what work returned. If the leadership was lost first, it stands again, but not before work has returned: work
// must end when its context does.
func (c *Client) Lead(ctx context.Context, role string, options ElectionOptions, work func(ctx context.Context, token uint64) error) error {
	election, err := c.Election(role, options)
	if err != nil {
		return err
	}
	return election.lead(ctx, work)
}

func (e *Election) lead(ctx context.Context, work func(context.Context, uint64) error) error {
	works := &works{work: work, done: make(chan error, 1)}
	e.reign = func(l *lease) { works.once(ctx, l) }
	if err := e.Start(ctx); err != nil {
		return err
	}
	var err error
	select {
	case err = <-works.done:
	case <-ctx.Done():
		err = works.leaveOff(ctx)
	}
	// A role that could not be released lapses; that says nothing about the work.
	_ = e.Stop(context.Background())
	return err
}

// works calls the work for Lead: never twice at once, and never after its context is over.
type works struct {
	work func(context.Context, uint64) error
	// done carries the result of the work.
	done chan error
	busy sync.Mutex
}

// once calls the work. If the lease outlasts it, the lease is kept until Stop, and no other lease is asked for
// meanwhile.
func (w *works) once(outer context.Context, l *lease) {
	w.busy.Lock()
	defer w.busy.Unlock()
	if outer.Err() != nil || !l.isHeld() {
		return
	}
	ctx, cancel := untilOver(outer, l)
	defer cancel()
	err := w.work(ctx, l.token)
	if l.isHeld() {
		w.done <- err
	}
}

// leaveOff waits for work that is running: only then may another process get the role.
func (w *works) leaveOff(ctx context.Context) error {
	w.busy.Lock()
	defer w.busy.Unlock()
	select {
	case err := <-w.done:
		return err
	default:
		return ctx.Err()
	}
}
