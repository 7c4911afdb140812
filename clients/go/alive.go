package eldest

import (
	"context"
	"net/http"
	"time"
)

// A node that owes an answer for so long is asked whether it lives, and given up if it does not say so in the same time again.
const signOfLife = 500 * time.Millisecond

// watch gives an attempt up once the node does not even say that it lives: a machine that stands still takes calls and answers none, while
// the cluster has long had another leader.
func (t *transport) watch(ctx context.Context, at int, giveUp func()) {
	for {
		select {
		case <-time.After(signOfLife):
		case <-ctx.Done():
			return
		}
		if !t.lives(ctx, at) && ctx.Err() == nil {
			giveUp()
			return
		}
	}
}

func (t *transport) lives(ctx context.Context, at int) bool {
	ctx, cancel := context.WithTimeout(ctx, signOfLife)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.bases[at]+"/livez", nil)
	if err != nil {
		return false
	}
	// No crowd of calls takes its place.
	response, err := t.lines.Do(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return true
}
