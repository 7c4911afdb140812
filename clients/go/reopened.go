package eldest

import (
	"context"
	"fmt"
)

// item is what a stream delivers: an event of the feed with its id, or a message.
type item struct {
	event Event
	id    string
	data  []byte
}

// reopening says which stream is read, and how.
type reopening struct {
	request func() spec
	// taken makes an item of a frame; false if the frame has none.
	taken func(frame) (item, bool, error)
	// Both may be nil.
	opened func()
	broke  func(error)
}

// reopened is a stream that is reopened whenever it ends.
type reopened struct {
	reopening
	transport *transport
	end       context.CancelFunc
	told      chan item
	// err is set before over is closed.
	over chan struct{}
	err  error
}

func newReopened(outer context.Context, t *transport, how reopening) *reopened {
	ctx, end := context.WithCancel(outer)
	r := &reopened{reopening: how, transport: t, end: end, told: make(chan item), over: make(chan struct{})}
	go func() {
		defer end()
		r.err = r.run(ctx)
		if outer.Err() != nil {
			r.err = outer.Err()
		}
		close(r.over)
	}()
	return r
}

func (r *reopened) next(ctx context.Context) (item, error) {
	select {
	case got := <-r.told:
		return got, nil
	case <-r.over:
		return item{}, r.err
	case <-ctx.Done():
		return item{}, ctx.Err()
	}
}

func (r *reopened) close() {
	r.end()
	<-r.over
}

func (r *reopened) run(ctx context.Context) error {
	pauses := newBackoff()
	for {
		err := r.once(ctx, pauses)
		if ctx.Err() != nil {
			return ErrClosed
		}
		if !passes(err) {
			return err
		}
		r.transport.leave(err)
		if r.broke != nil {
			r.broke(err)
		}
		r.transport.clock.rest(ctx, pauses.next(), nil)
	}
}

// once reads one stream to its end, which is always an error.
func (r *reopened) once(ctx context.Context, pauses *backoff) error {
	stream, err := r.transport.stream(ctx, r.request())
	if err != nil {
		return err
	}
	defer stream.close()
	if r.opened != nil {
		r.opened()
	}
	for {
		got, err := stream.next(ctx)
		if err != nil {
			return err
		}
		if got.event == "error" {
			return fmt.Errorf("%w: %s", errBroken, got.data)
		}
		pauses.reset()
		item, isOne, err := r.taken(got)
		if err != nil {
			return err
		}
		if !isOne {
			continue
		}
		select {
		case r.told <- item:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
