package eldest

import (
	"encoding/json"
	"errors"
	"fmt"
)

// The errors that programs decide upon: compare with errors.Is. The node's answer is in the *Problem, by errors.As.
var (
	// ErrUnavailable: surely not applied. No node accepted the call in time.
	ErrUnavailable = errors.New("no node took the call")
	// ErrIndeterminate: perhaps applied. An attempt was lost, and no answer came after it; see *Indeterminate.
	ErrIndeterminate = errors.New("it may or may not have happened")
	// ErrBadAnswer: no node answers like this. Another program listens there.
	ErrBadAnswer = errors.New("not an answer of a node")

	ErrNotFound = errors.New("not found")
	// ErrConflict: the document does not have the revision that the write depends on.
	ErrConflict = errors.New("the document was changed by another")
	// ErrRoleNotHeld: the write was in the name of a role, and its token is not, or no longer, the role's. Nothing was
	// written, and nothing will be.
	ErrRoleNotHeld = errors.New("the role is not held under that token")
	// ErrHeld: another instance holds the role.
	ErrHeld = errors.New("the role is held by another")
	// ErrLeaseLost: this token is no longer the holder's.
	ErrLeaseLost = errors.New("the lease is lost")
	// ErrCompacted: the missed part of the feed is no longer kept.
	ErrCompacted = errors.New("the feed does not go back so far")
	// ErrForbidden: the secret, or a grant of the token, is missing.
	ErrForbidden = errors.New("forbidden")
	// ErrUnauthorized: the token is missing, wrong or expired.
	ErrUnauthorized = errors.New("unauthorized")

	// ErrStopped: this side has ended the lease.
	ErrStopped = errors.New("stopped")
	// ErrClosed: the feed was closed.
	ErrClosed = errors.New("closed")
)

var byCode = map[string]error{
	"not_found":           ErrNotFound,
	"precondition_failed": ErrConflict,
	"role_not_held":       ErrRoleNotHeld,
	"role_held":           ErrHeld,
	"lease_lost":          ErrLeaseLost,
	"feed_compacted":      ErrCompacted,
	"forbidden":           ErrForbidden,
	"unauthorized":        ErrUnauthorized,
}

// Node is a node, as another node names it.
type Node struct {
	ID  uint64 `json:"id"`
	URL string `json:"url"`
}

// Instance is the holder of a role.
type Instance struct {
	ID       string          `json:"instance_id"`
	Address  string          `json:"address"`
	Metadata json.RawMessage `json:"metadata"`
}

// Problem is a node's refusal of a call. The meaning of a Code never changes.
type Problem struct {
	Status    int
	Code      string
	Detail    string
	Retryable bool
	// LeaderNode is nil if the node knew of no leader.
	LeaderNode *Node
	RequestID  string
	// Fields are all members of the document, including those of this code.
	Fields map[string]json.RawMessage
}

func (p *Problem) Error() string {
	if p.Detail == "" {
		return p.Code
	}
	return p.Code + ": " + p.Detail
}

// Is reports whether target is the value that stands for this code.
func (p *Problem) Is(target error) bool {
	known := byCode[p.Code]
	return known != nil && known == target
}

// Field reads one member into a value; false if it is missing, null, or of another shape.
func (p *Problem) Field(name string, into any) bool {
	raw, found := p.Fields[name]
	return found && string(raw) != "null" && json.Unmarshal(raw, into) == nil
}

// CurrentRev is, for an ErrConflict, the document's revision; empty if the document does not exist.
func (p *Problem) CurrentRev() (rev string) {
	p.Field("current_rev", &rev)
	return rev
}

// Oldest is, for an ErrCompacted, the oldest id that the node can go on from.
func (p *Problem) Oldest() (id string) {
	p.Field("oldest", &id)
	return id
}

// Holder is, for an ErrHeld or an ErrLeaseLost, the holder of the role now and its token; nil if there is none.
func (p *Problem) Holder() (*Instance, uint64) {
	var holder Instance
	if !p.Field("leader", &holder) {
		return nil, 0
	}
	var token uint64
	p.Field("token", &token)
	return &holder, token
}

func problemOf(status int, body []byte) *Problem {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return nil
	}
	problem := &Problem{Status: status, Fields: fields}
	if !problem.Field("code", &problem.Code) || problem.Code == "" {
		return nil
	}
	problem.Field("detail", &problem.Detail)
	problem.Field("retryable", &problem.Retryable)
	problem.Field("request_id", &problem.RequestID)
	var leader Node
	if problem.Field("leader_node", &leader) {
		problem.LeaderNode = &leader
	}
	return problem
}

// isFinal: the same call will meet the same error again, until something is changed.
func isFinal(err error) bool {
	var problem *Problem
	return errors.As(err, &problem) && !problem.Retryable && problem.Status < 500
}

// Unavailable: surely not applied. It is ErrUnavailable, and the last error met.
type Unavailable struct {
	Call  string
	Cause error
}

func (e *Unavailable) Error() string        { return fmt.Sprintf("%s did not happen: %v", e.Call, e.Cause) }
func (e *Unavailable) Is(target error) bool { return target == ErrUnavailable }
func (e *Unavailable) Unwrap() error        { return e.Cause }

// Indeterminate: perhaps applied. It is ErrIndeterminate, and the last error met.
type Indeterminate struct {
	Call  string
	Cause error
	// IdempotencyKey: make the same call with this key to learn its outcome. Empty for a call without a key.
	IdempotencyKey string
}

func (e *Indeterminate) Error() string {
	return fmt.Sprintf("%s may or may not have happened: %v", e.Call, e.Cause)
}
func (e *Indeterminate) Is(target error) bool { return target == ErrIndeterminate }
func (e *Indeterminate) Unwrap() error        { return e.Cause }

func badAnswer(format string, values ...any) error {
	return fmt.Errorf("%w: %s", ErrBadAnswer, fmt.Sprintf(format, values...))
}
