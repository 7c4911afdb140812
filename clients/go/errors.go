package eldest

import (
	"encoding/json"
	"errors"
	"fmt"
)

// What programs decide upon: compare with errors.Is. What a node said with it is in the *Problem, by errors.As.
var (
	// ErrUnavailable: surely not applied. No node took the call before its end.
	ErrUnavailable = errors.New("no node took the call")
	// ErrIndeterminate: perhaps applied. An attempt was lost on its way, and nothing more was heard; see *Indeterminate.
	ErrIndeterminate = errors.New("it may or may not have happened")
	// ErrBadAnswer: no node answers like that. Something else listens there.
	ErrBadAnswer = errors.New("not an answer of a node")

	ErrNotFound = errors.New("not found")
	// ErrConflict: the document has another revision than the one that the write depends on.
	ErrConflict = errors.New("the document was changed by another")
	// ErrRoleNotHeld: the write was to be made in the name of a role, whose token this is not, or no longer. Nothing was written, and nothing
	// will be.
	ErrRoleNotHeld = errors.New("the role is not held under that token")
	// ErrHeld: another instance holds the role.
	ErrHeld = errors.New("the role is held by another")
	// ErrLeaseLost: this token is not the holder's any more.
	ErrLeaseLost = errors.New("the lease is lost")
	// ErrCompacted: what was missed of the feed is not kept any more.
	ErrCompacted = errors.New("the feed does not go back so far")
	// ErrForbidden: the secret, or a grant of the token, is missing.
	ErrForbidden = errors.New("forbidden")
	// ErrUnauthorized: the token is missing, wrong or over.
	ErrUnauthorized = errors.New("unauthorized")

	// ErrStopped: this side has ended it.
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

// Node is a node as another one names it.
type Node struct {
	ID  uint64 `json:"id"`
	URL string `json:"url"`
}

// Instance is who holds a role.
type Instance struct {
	ID       string          `json:"instance_id"`
	Address  string          `json:"address"`
	Metadata json.RawMessage `json:"metadata"`
}

// Problem is what a node refused a call with. Its Code never changes its meaning.
type Problem struct {
	Status    int
	Code      string
	Detail    string
	Retryable bool
	// LeaderNode is nil where the node knew of no leader.
	LeaderNode *Node
	RequestID  string
	// Fields are all members of the document, those of the case included.
	Fields map[string]json.RawMessage
}

func (p *Problem) Error() string {
	if p.Detail == "" {
		return p.Code
	}
	return p.Code + ": " + p.Detail
}

// Is tells whether target is the value that stands for this code.
func (p *Problem) Is(target error) bool {
	known := byCode[p.Code]
	return known != nil && known == target
}

// Field reads one member into a value; false where there is none, where it is null, or of another shape.
func (p *Problem) Field(name string, into any) bool {
	raw, found := p.Fields[name]
	return found && string(raw) != "null" && json.Unmarshal(raw, into) == nil
}

// CurrentRev is the revision that is there, of an ErrConflict; empty where there is no document.
func (p *Problem) CurrentRev() (rev string) {
	p.Field("current_rev", &rev)
	return rev
}

// Oldest is the oldest id that the node can go on from, of an ErrCompacted.
func (p *Problem) Oldest() (id string) {
	p.Field("oldest", &id)
	return id
}

// Holder is who holds the role now, and under which token, of an ErrHeld or an ErrLeaseLost; nil where nobody does.
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

// isFinal: the same call will meet it again, until somebody changes something.
func isFinal(err error) bool {
	var problem *Problem
	return errors.As(err, &problem) && !problem.Retryable && problem.Status < 500
}

// Unavailable: surely not applied. Is ErrUnavailable, and what was met last.
type Unavailable struct {
	Call  string
	Cause error
}

func (e *Unavailable) Error() string        { return fmt.Sprintf("%s did not happen: %v", e.Call, e.Cause) }
func (e *Unavailable) Is(target error) bool { return target == ErrUnavailable }
func (e *Unavailable) Unwrap() error        { return e.Cause }

// Indeterminate: perhaps applied. Is ErrIndeterminate, and what was met last.
type Indeterminate struct {
	Call  string
	Cause error
	// IdempotencyKey: make the same call with this key to learn what became of it. Empty where a call has none.
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
