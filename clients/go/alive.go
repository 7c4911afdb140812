package eldest

import (
	"context"
	"net/http"
	"time"
)

// If a node owes an answer for this long, it is asked whether it is alive. If it does not say so within the same time
// again, the attempt ends.
const signOfLife = 500 * time.Millisecond

// watch gives an attempt up when the node does not even say that it is alive: a machine that stands still accepts calls
// and answers none, while the cluster has long had another leader.
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
	// This client has no limit of connections, so a crowd of calls cannot take the place of the question.
	response, err := t.lines.Do(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return true
}
