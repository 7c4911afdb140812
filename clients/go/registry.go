package eldest

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	processTTL     = 45 * time.Second
	heartbeatEvery = 10 * time.Second
	// A heartbeat that takes longer makes room for the next one.
	heartbeatMost = 10 * time.Second
)

// RegistryOptions: the zero value is a process with a random id.
type RegistryOptions struct {
	// ID: if a process has to come back under its id, use the same WithSecret each time, or none. No process comes back
	// under a random id, so the client's secret guards it.
	ID string
	// Entry is what the process says about itself; its role is slave by default, and its TTL 45 s.
	Entry Entry
	// HeartbeatEvery is 10 s, or a third of a shorter TTL.
	HeartbeatEvery time.Duration
	// Failed is called with each error of a heartbeat; the next one follows.
	Failed func(error)
}

// Registry keeps one process registered.
type Registry struct {
	processes *Processes
	clock     clock
	id        string
	guarded   bool
	every     time.Duration
	failed    func(error)

	mu    sync.Mutex
	entry Entry
	end   context.CancelFunc
	heart chan struct{}
}

// Registry makes a registry; it registers nothing before Register.
func (c *Client) Registry(options RegistryOptions) (*Registry, error) {
	r := &Registry{processes: c.Processes, clock: c.transport.clock, id: options.ID, entry: options.Entry, failed: options.Failed}
	r.guarded = c.transport.secretIsNamed
	if r.id == "" {
		r.id = randomID()
		r.guarded = true
	}
	if r.entry.Role == "" {
		r.entry.Role = "slave"
	}
	r.entry.TTL = orElse(r.entry.TTL, processTTL)
	r.every = orElse(options.HeartbeatEvery, shorter(heartbeatEvery, r.entry.TTL/3))
	if r.every >= r.entry.TTL {
		return nil, errors.New("eldest: a process is heard of more often than once in its ttl")
	}
	_, err := segment(r.id, "process")
	return r, err
}

// ID is the id of this process.
func (r *Registry) ID() string { return r.id }

// Channel is where messages for this process are sent, if it listens there.
func (r *Registry) Channel() string { return "worker:slave:" + r.id }

// Register registers this process, and sends heartbeats in the background until Stop. If the cluster has forgotten the
// process, it is registered again.
func (r *Registry) Register(ctx context.Context) (Process, error) {
	r.mu.Lock()
	entry := r.entry
	r.mu.Unlock()
	return r.say(ctx, entry)
}

// Change alters the entry of this process.
func (r *Registry) Change(ctx context.Context, change func(*Entry)) (Process, error) {
	r.mu.Lock()
	change(&r.entry)
	entry := r.entry
	r.mu.Unlock()
	return r.say(ctx, entry)
}

func (r *Registry) say(ctx context.Context, entry Entry) (Process, error) {
	process, err := r.processes.put(ctx, r.id, entry, r.guarded)
	if err != nil {
		return process, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.heart == nil {
		beating, end := context.WithCancel(context.Background())
		r.end, r.heart = end, make(chan struct{})
		go r.beat(beating, r.heart)
	}
	return process, nil
}

func (r *Registry) beat(ctx context.Context, over chan struct{}) {
	defer close(over)
	for {
		r.clock.rest(ctx, r.every, nil)
		if ctx.Err() != nil {
			return
		}
		if err := r.beatOnce(ctx); err != nil && ctx.Err() == nil && r.failed != nil {
			r.failed(err)
		}
	}
}

func (r *Registry) beatOnce(ctx context.Context) error {
	r.mu.Lock()
	entry := r.entry
	r.mu.Unlock()
	err := r.processes.heartbeat(ctx, r.id, r.guarded, shorter(heartbeatMost, entry.TTL/2))
	if errors.Is(err, ErrNotFound) {
		_, err = r.processes.put(ctx, r.id, entry, r.guarded)
	}
	return err
}

// Stop ends the heartbeats, and unregisters this process. If that fails, the entry lapses.
func (r *Registry) Stop(ctx context.Context) error {
	r.mu.Lock()
	end, heart := r.end, r.heart
	r.end, r.heart = nil, nil
	r.mu.Unlock()
	if heart == nil {
		return nil
	}
	end()
	<-heart
	err := r.processes.delete(ctx, r.id, r.guarded, releasePatience)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
