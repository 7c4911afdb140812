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

// Processes are those that are there, as long as they say so. These are the bare calls; Registry is made of them.
type Processes struct{ transport *transport }

// Process is an entry. Capabilities and Metadata are JSON as it is stored.
type Process struct {
	ID           string          `json:"id"`
	Identifier   string          `json:"identifier"`
	Role         string          `json:"role"`
	Capabilities json.RawMessage `json:"capabilities"`
	Metadata     json.RawMessage `json:"metadata"`
	// Channel is where messages reach the process, if it listens there.
	Channel      string      `json:"channel"`
	TTLMs        int64       `json:"ttl_ms"`
	RegisteredAt string      `json:"registered_at"`
	LastSeen     string      `json:"last_seen"`
	ExpiresInMs  json.Number `json:"expires_in_ms"`
}

// Entry is what a process says about itself.
type Entry struct {
	// Identifier is the id by default.
	Identifier   string
	Role         string
	Capabilities any
	Metadata     any
	// TTL is 45 s by default: 1 s to 1 h.
	TTL time.Duration
}

// Filter says which processes are listed.
type Filter struct {
	Role, Capability, Identifier string
	Page
}

func processPath(id, verb string) (string, error) {
	name, err := segment(id, "process")
	if verb != "" {
		name += "/" + verb
	}
	return "/v1/processes/" + name, err
}

type entryBody struct {
	Identifier   string `json:"identifier"`
	Role         string `json:"role,omitempty"`
	Capabilities any    `json:"capabilities,omitempty"`
	Metadata     any    `json:"metadata,omitempty"`
	TTLMs        int64  `json:"ttl_ms,omitempty"`
}

// Put registers a process, or replaces its entry.
func (p *Processes) Put(ctx context.Context, id string, entry Entry) (Process, error) {
	return p.put(ctx, id, entry, p.transport.secretIsNamed)
}

// put: if guarded, only a client that shows this client's secret may speak for the process from now on.
func (p *Processes) put(ctx context.Context, id string, entry Entry, guarded bool) (Process, error) {
	var process Process
	path, err := processPath(id, "")
	if err != nil {
		return process, err
	}
	body := entryBody{entry.Identifier, entry.Role, entry.Capabilities, entry.Metadata, millis(entry.TTL)}
	if body.Identifier == "" {
		body.Identifier = id
	}
	got, err := p.transport.do(ctx, spec{method: http.MethodPut, path: path, body: body, keyed: true, shown: guarded})
	if err == nil {
		err = object(got, "process", &process)
	}
	return process, err
}

// Heartbeat keeps a process; ErrNotFound if it is not registered, or no longer.
func (p *Processes) Heartbeat(ctx context.Context, id string) error {
	return p.heartbeat(ctx, id, p.transport.secretIsNamed, 0)
}

func (p *Processes) heartbeat(ctx context.Context, id string, guarded bool, patience time.Duration) error {
	path, err := processPath(id, "heartbeat")
	if err != nil {
		return err
	}
	s := spec{method: http.MethodPost, path: path, body: struct{}{}, shown: guarded, ofLease: true, patience: patience}
	_, err = p.transport.do(ctx, s)
	return err
}

// Get returns one process, or ErrNotFound.
func (p *Processes) Get(ctx context.Context, id string, level Level) (Process, error) {
	var process Process
	path, err := processPath(id, "")
	if err != nil {
		return process, err
	}
	got, err := p.transport.do(ctx, spec{path: path, query: Page{Level: level}.query()})
	if err == nil {
		err = object(got, "process", &process)
	}
	return process, err
}

// List returns a page of processes, by id, and where the next page begins: empty after the last. With a filter, a page
// before the last may be empty.
func (p *Processes) List(ctx context.Context, wanted Filter) ([]Process, string, error) {
	got, err := p.transport.do(ctx, spec{path: "/v1/processes", query: wanted.query()})
	if err != nil {
		return nil, "", err
	}
	return page[Process](got, "processes")
}

func (f Filter) query() url.Values {
	query := url.Values{}
	set(query, "role", f.Role)
	set(query, "capability", f.Capability)
	set(query, "identifier", f.Identifier)
	set(query, "after", f.After)
	set(query, "level", string(f.Level))
	if f.Limit > 0 {
		query.Set("limit", strconv.Itoa(f.Limit))
	}
	return query
}

// All returns every process that fits, page by page.
func (p *Processes) All(ctx context.Context, wanted Filter) ([]Process, error) {
	var all []Process
	err := every(func(after string) ([]Process, string, error) {
		wanted.After = after
		return p.List(ctx, wanted)
	}, func(one Process) error {
		all = append(all, one)
		return nil
	})
	return all, err
}

// Delete removes a process, or returns ErrNotFound.
func (p *Processes) Delete(ctx context.Context, id string) error {
	return p.delete(ctx, id, p.transport.secretIsNamed, 0)
}

// delete: if an attempt was lost and the process is no longer there, that attempt has deleted it.
func (p *Processes) delete(ctx context.Context, id string, guarded bool, patience time.Duration) error {
	path, err := processPath(id, "")
	if err != nil {
		return err
	}
	s := spec{method: http.MethodDelete, path: path, keyed: true, shown: guarded, ofLease: true, patience: patience}
	got, err := p.transport.do(ctx, s)
	if got.lost && errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
