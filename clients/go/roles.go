package eldest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Roles are leases with fencing tokens. These are the bare calls; Election and Lock are made of them.
type Roles struct{ transport *transport }

// Asked is what an acquire asks for.
type Asked struct {
	InstanceID string
	// TTL is 30 s by default: 1 s to 1 h.
	TTL      time.Duration
	Address  string
	Metadata any
	Priority int
	// Wait is how long to wait in the queue for a role that is held, 60 s at most.
	Wait time.Duration

	patience, attempt time.Duration
}

// Grant is the result of an acquire.
type Grant struct {
	Role  string
	Token uint64
	// Already: this instance had the role before, under the same token.
	Already bool

	proof
	// A grant that was waited for may be as old as the wait.
	waited bool
}

// proof of a lease: when the answered request was sent, and the time that was promised from then on.
type proof struct {
	sentAt    time.Duration
	expiresIn time.Duration
}

// RoleInfo is the holder of a role; Leader is nil if there is none.
type RoleInfo struct {
	Role        string      `json:"role"`
	Leader      *Instance   `json:"leader"`
	Token       uint64      `json:"token"`
	TTLMs       int64       `json:"ttl_ms"`
	AcquiredAt  string      `json:"acquired_at"`
	ExpiresInMs json.Number `json:"expires_in_ms"`
	Waiting     int         `json:"waiting"`
}

func rolePath(role, verb string) (string, error) {
	name, err := segment(role, "role")
	if verb != "" {
		name += "/" + verb
	}
	return "/v1/roles/" + name, err
}

type wanted struct {
	InstanceID string `json:"instance_id"`
	TTLMs      int64  `json:"ttl_ms,omitempty"`
	Address    string `json:"address,omitempty"`
	Metadata   any    `json:"metadata,omitempty"`
	Priority   int    `json:"priority,omitempty"`
	WaitMs     int64  `json:"wait_ms,omitempty"`
}

// Acquire asks for a role; ErrHeld if another has it, after Wait if one is set.
func (r *Roles) Acquire(ctx context.Context, role string, asked Asked) (Grant, error) {
	path, err := rolePath(role, "acquire")
	if err != nil {
		return Grant{}, err
	}
	body := wanted{asked.InstanceID, millis(asked.TTL), asked.Address, asked.Metadata, asked.Priority, millis(asked.Wait)}
	s := spec{method: http.MethodPost, path: path, body: body, keyed: true, shown: true, wait: asked.Wait}
	s.patience, s.attempt = asked.patience, asked.attempt
	got, err := r.transport.do(ctx, s)
	if err != nil {
		return Grant{}, err
	}
	return grantOf(got, role, asked.Wait > 0)
}

// Elect names the holder; it needs the admin token, or a grant to give orders. The previous holder has lost the role.
func (r *Roles) Elect(ctx context.Context, role string, asked Asked) (Grant, error) {
	path, err := rolePath(role, "elect")
	if err != nil {
		return Grant{}, err
	}
	body := wanted{InstanceID: asked.InstanceID, TTLMs: millis(asked.TTL), Address: asked.Address, Metadata: asked.Metadata}
	got, err := r.transport.do(ctx, spec{method: http.MethodPost, path: path, body: body, keyed: true})
	if err != nil {
		return Grant{}, err
	}
	return grantOf(got, role, false)
}

func grantOf(got answer, role string, waited bool) (Grant, error) {
	var body struct {
		Outcome   string          `json:"outcome"`
		Token     json.RawMessage `json:"token"`
		ExpiresIn json.RawMessage `json:"expires_in_ms"`
	}
	if err := object(got, "acquire", &body); err != nil {
		return Grant{}, err
	}
	token, err := tokenOf(body.Token, "acquire")
	if err != nil {
		return Grant{}, err
	}
	expiresIn, err := spanOf(body.ExpiresIn, "acquire")
	// The answer to a call that waited, or that was sent twice, may report an older grant.
	proof := proof{sentAt: got.firstSentAt, expiresIn: expiresIn}
	return Grant{Role: role, Token: token, Already: body.Outcome == "already_leader", proof: proof, waited: waited}, err
}

type speaking struct {
	InstanceID string `json:"instance_id"`
	Token      uint64 `json:"token"`
	TTLMs      int64  `json:"ttl_ms,omitempty"`
	Tie        uint64 `json:"tie,omitempty"`
}

// Renew renews, or returns ErrLeaseLost. It returns how long the lease lasts, from when the call was made.
func (r *Roles) Renew(ctx context.Context, role, instanceID string, token uint64, ttl time.Duration) (time.Duration, error) {
	got, err := r.renew(ctx, role, renewal{instanceID: instanceID, token: token, ttl: ttl})
	return got.expiresIn, err
}

type renewal struct {
	instanceID        string
	token, tie        uint64
	ttl               time.Duration
	patience, attempt time.Duration
}

// renew has no idempotency key: an earlier renewal's answer would be of no use.
func (r *Roles) renew(ctx context.Context, role string, asked renewal) (proof, error) {
	path, err := rolePath(role, "renew")
	if err != nil {
		return proof{}, err
	}
	body := speaking{asked.instanceID, asked.token, millis(asked.ttl), asked.tie}
	s := spec{method: http.MethodPost, path: path, body: body, shown: true, ofLease: true, patience: asked.patience, attempt: asked.attempt}
	got, err := r.transport.do(ctx, s)
	if err != nil {
		return proof{}, err
	}
	var said struct {
		ExpiresIn json.RawMessage `json:"expires_in_ms"`
	}
	if err := object(got, "renew", &said); err != nil {
		return proof{}, err
	}
	expiresIn, err := spanOf(said.ExpiresIn, "renew")
	return proof{sentAt: got.sentAt, expiresIn: expiresIn}, err
}

// Release gives the role up, or returns ErrLeaseLost.
func (r *Roles) Release(ctx context.Context, role, instanceID string, token uint64) error {
	return r.release(ctx, role, instanceID, token, 0)
}

// release: if an attempt had an unknown outcome and the lease is lost after it, that attempt has released it.
func (r *Roles) release(ctx context.Context, role, instanceID string, token uint64, patience time.Duration) error {
	path, err := rolePath(role, "release")
	if err != nil {
		return err
	}
	body := speaking{InstanceID: instanceID, Token: token}
	got, err := r.transport.do(ctx, spec{method: http.MethodPost, path: path, body: body, shown: true, ofLease: true, patience: patience})
	if got.lost && errors.Is(err, ErrLeaseLost) {
		return nil
	}
	return err
}

// Get returns the holder of a role. Every role can be read, also one that never had a holder.
func (r *Roles) Get(ctx context.Context, role string, level Level) (RoleInfo, error) {
	return r.get(ctx, role, level, 0)
}

func (r *Roles) get(ctx context.Context, role string, level Level, patience time.Duration) (RoleInfo, error) {
	var info RoleInfo
	path, err := rolePath(role, "")
	if err != nil {
		return info, err
	}
	got, err := r.transport.do(ctx, spec{path: path, query: Page{Level: level}.query(), patience: patience})
	if err != nil {
		return info, err
	}
	err = object(got, "role", &info)
	return info, err
}

// List returns a page of the roles that are held, and where the next page begins: empty after the last.
func (r *Roles) List(ctx context.Context, wanted Page) ([]RoleInfo, string, error) {
	got, err := r.transport.do(ctx, spec{path: "/v1/roles", query: wanted.query()})
	if err != nil {
		return nil, "", err
	}
	return page[RoleInfo](got, "roles")
}

// Check reports whether a token is the present holder's. A resource that the holder writes to can turn away former
// holders with it.
func (r *Roles) Check(ctx context.Context, role string, token uint64) (bool, error) {
	path, err := rolePath(role, "check")
	if err != nil {
		return false, err
	}
	query := url.Values{"token": {strconv.FormatUint(token, 10)}}
	got, err := r.transport.do(ctx, spec{path: path, query: query})
	if err != nil {
		return false, err
	}
	var said struct {
		Valid bool `json:"valid"`
	}
	err = object(got, "check", &said)
	return said.Valid, err
}
