package eldest

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// A store is what leases need of a cluster; tests replace it.
type store interface {
	acquire(ctx context.Context, role string, asked Asked) (Grant, error)
	renew(ctx context.Context, role string, asked renewal) (proof, error)
	tie(ctx context.Context, role string, asked tieing) (tied, error)
	release(ctx context.Context, role, instanceID string, token uint64, patience time.Duration) error
	// holder is the instance that holds a role, and its token; empty if there is none.
	holder(ctx context.Context, role string, patience time.Duration) (string, uint64, error)
	// watch reports grants and losses of the role, and that the state was replaced by another one.
	watch(ctx context.Context, role string, opened func(), broken func(error)) watching
	time() clock
}

// watching is a Feed.
type watching interface {
	Next(ctx context.Context) (Event, error)
	Close()
}

// tieing asks that a lease ends with a connection, under a number.
type tieing struct {
	instanceID    string
	token, number uint64
	ttl, grace    time.Duration
}

// tied is such a connection, while it lasts.
type tied interface {
	next(ctx context.Context) (tieEvent, error)
	end()
}

// A tieEvent of the kind "tied" proves the lease; "renew": renew at once for a new leader; "stopping": the node lets
// go.
type tieEvent struct {
	kind string
	proof
}

type clusterStore struct {
	roles *Roles
	feed  func(context.Context, FeedOptions) *Feed
}

func (s clusterStore) acquire(ctx context.Context, role string, asked Asked) (Grant, error) {
	return s.roles.Acquire(ctx, role, asked)
}

func (s clusterStore) renew(ctx context.Context, role string, asked renewal) (proof, error) {
	return s.roles.renew(ctx, role, asked)
}

func (s clusterStore) release(ctx context.Context, role, instanceID string, token uint64, patience time.Duration) error {
	return s.roles.release(ctx, role, instanceID, token, patience)
}

func (s clusterStore) holder(ctx context.Context, role string, patience time.Duration) (string, uint64, error) {
	info, err := s.roles.get(ctx, role, "", patience)
	if err != nil || info.Leader == nil {
		return "", 0, err
	}
	return info.Leader.ID, info.Token, nil
}

func (s clusterStore) watch(ctx context.Context, role string, opened func(), broken func(error)) watching {
	kinds := []string{"role_acquired", "role_lost"}
	return s.feed(ctx, FeedOptions{Kinds: kinds, Prefix: role, OnOpen: opened, OnError: broken})
}

func (s clusterStore) time() clock { return s.roles.transport.clock }

// tie opens a stream to one node. If the stream is closed and the grace is over, the node ends the lease, unless a
// renewal has named a greater number.
func (s clusterStore) tie(ctx context.Context, role string, asked tieing) (tied, error) {
	path, err := rolePath(role, "tie")
	if err != nil {
		return nil, err
	}
	query := url.Values{
		"instance_id": {asked.instanceID},
		"token":       {strconv.FormatUint(asked.token, 10)},
		"tie":         {strconv.FormatUint(asked.number, 10)},
		"ttl_ms":      {strconv.FormatInt(millis(asked.ttl), 10)},
		"grace_ms":    {strconv.FormatInt(millis(asked.grace), 10)},
	}
	opened, err := s.roles.transport.line(ctx, spec{method: http.MethodPost, path: path, query: query, shown: true})
	if err != nil {
		return nil, err
	}
	return tieStream{opened}, nil
}

type tieStream struct{ *stream }

func (s tieStream) end() { s.close() }

func (s tieStream) next(ctx context.Context) (tieEvent, error) {
	got, err := s.frames.next(ctx)
	if err != nil {
		return tieEvent{}, err
	}
	var said struct {
		Code      string          `json:"code"`
		ExpiresIn json.RawMessage `json:"expires_in_ms"`
	}
	if err := got.object(&said); err != nil {
		return tieEvent{}, err
	}
	switch got.event {
	case "tied":
		expiresIn, err := spanOf(said.ExpiresIn, "tie")
		return tieEvent{kind: "tied", proof: proof{sentAt: s.sentAt, expiresIn: expiresIn}}, err
	case "error":
		return tieEvent{kind: said.Code}, nil
	}
	return tieEvent{kind: got.event}, nil
}
