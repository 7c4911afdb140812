package eldest

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// A lease that ends with a connection: in addition to the renewals, a stream to one node is kept open, and if this
// process dies, that node frees the role. While the process is alive, only renewals decide: one that names a greater
// number makes an older stream worth nothing.

const (
	// The node waits this long after the connection has closed. A holder that is alive and has lost the connection
	// believes for half of that.
	graceMost = time.Second
	gracePart = 2
)

func grace(ttl time.Duration) time.Duration {
	return shorter(graceMost, ttl/gracePart)
}

// risingNumber is above the numbers of earlier processes under the same name, provided that the wall clock goes
// forward; it stays below 2^53, with room to count.
func risingNumber() uint64 {
	return uint64(time.Now().UnixMilli())*1024 + randomBelow(1024)
}

// ties are the connections of one grant, one after the other, until its lease is over.
type ties struct {
	lease *lease
	// The newest number under which a renewal has succeeded.
	proved chan uint64
}

// hasProof: a renewal under this number has succeeded.
func (t *ties) hasProof(number uint64) {
	if t == nil {
		return
	}
	select {
	case <-t.proved:
	default:
	}
	t.proved <- number
}

func (t *ties) run() {
	pauses := newBackoff()
	ctx := t.lease.ctx
	for ctx.Err() == nil {
		err := t.once(ctx, pauses)
		if ctx.Err() != nil || endsTies(err) {
			return
		}
		if err != nil && !errors.As(err, &neverOpen{}) {
			t.goOn(ctx, true)
		}
		t.lease.clock.rest(ctx, pauses.next(), nil)
	}
}

// endsTies: another attempt would meet the same error. There is no such route, or the lease is not ours.
func endsTies(err error) bool {
	var problem *Problem
	return isFinal(err) && errors.As(err, &problem) && problem.Status != http.StatusMisdirectedRequest
}

// once is one stream, until it is over and the lease is proved to go on without it. Only then is it closed on this
// side.
func (t *ties) once(ctx context.Context, pauses *backoff) error {
	l := t.lease
	number := l.number()
	asked := tieing{instanceID: l.instanceID, token: l.token, number: number, ttl: l.ttl, grace: grace(l.ttl)}
	stream, err := l.store.tie(ctx, l.role, asked)
	if err != nil {
		return err
	}
	defer stream.end()
	broken := true
	for {
		event, err := stream.next(ctx)
		if err != nil {
			// In every case the node may take this process for dead.
			break
		}
		switch event.kind {
		case "tied":
			pauses.reset()
			l.believe(event.proof, number)
		case "renew":
			l.renewNow()
		case "stopping":
			// The node lets go: that frees nothing.
			broken = false
		}
	}
	if ctx.Err() == nil {
		t.goOn(ctx, broken)
	}
	return nil
}

// goOn takes the next number, and returns when a renewal has named it.
func (t *ties) goOn(ctx context.Context, broken bool) {
	number := t.lease.goOn(broken)
	for {
		select {
		case proved := <-t.proved:
			if proved >= number {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}
