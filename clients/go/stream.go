package eldest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// The time for the head of a stream: a node that is behind answers once it has caught up, or with 503 after 10 s.
const streamHead = 12 * time.Second

// stream is an answer that goes on. It ends with the context that it was opened with, or with close.
type stream struct {
	*frames
	sentAt time.Duration
	close  func()
}

// neverOpen is an error that says that nothing was opened at all.
type neverOpen struct{ error }

func (e neverOpen) Unwrap() error { return e.error }

// stream makes one attempt at a stream, at the node that is tried first.
func (t *transport) stream(ctx context.Context, s spec) (*stream, error) {
	return t.open(ctx, t.waits, t.bases[t.first()], s, streamHead+s.wait)
}

// line makes one attempt at a stream that has to outlive the node that answers calls, so it goes to another node. Its
// connection serves nothing else.
func (t *transport) line(ctx context.Context, s spec) (*stream, error) {
	return t.open(ctx, t.lines, t.besides(), s, t.attempt)
}

func (t *transport) open(outer context.Context, client *http.Client, base string, s spec, head time.Duration) (*stream, error) {
	p, err := t.prepare(s)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(outer)
	stop := t.clock.after(head, end)
	sentAt := t.clock.now()
	response, sent, err := send(ctx, client, base, p)
	if err == nil && response.StatusCode != http.StatusOK {
		// A refusal has to arrive whole within the same time.
		defer end()
		defer stop()
		return nil, refusedStream(response, p)
	}
	stop()
	if err == nil && ctx.Err() != nil {
		response.Body.Close()
		err = fmt.Errorf("%s: no answer in %v", base, head)
	}
	if err != nil {
		end()
		if !sent {
			err = neverOpen{err}
		}
		return nil, err
	}
	body := response.Body
	frames := newFrames(ctx, body, t.clock)
	return &stream{frames: frames, sentAt: sentAt, close: func() { end(); body.Close() }}, nil
}

// refusedStream: a refusal that no node made may come from a gateway, and be gone a moment later.
func refusedStream(response *http.Response, p *prepared) error {
	got, err := read(response, p)
	if err == nil {
		err = got.err
	}
	var problem *Problem
	if errors.As(err, &problem) {
		return neverOpen{problem}
	}
	return fmt.Errorf("status %d: %v", response.StatusCode, err)
}

// passes reports whether another attempt at a stream may not meet this error.
func passes(err error) bool {
	if errors.Is(err, ErrBadAnswer) {
		return false
	}
	var problem *Problem
	if !errors.As(err, &problem) {
		return true
	}
	return problem.Status >= 500 || problem.Status == http.StatusMisdirectedRequest || problem.Status == http.StatusTooManyRequests
}
