package eldest

import (
	"context"
	"encoding/json"
	"net/http"
)

// Channels carry messages to those who listen now, at most once.
type Channels struct{ transport *transport }

// Publish returns the number of listeners that got the message. It is never retried after an unknown outcome:
// ErrIndeterminate is returned at once.
func (c *Channels) Publish(ctx context.Context, name string, message any) (int, error) {
	channel, err := segment(name, "channel")
	if err != nil {
		return 0, err
	}
	if message == nil {
		message = json.RawMessage("null")
	}
	got, err := c.transport.do(ctx, spec{method: http.MethodPost, path: "/v1/channels/" + channel, body: message, once: true})
	if err != nil {
		return 0, err
	}
	var said struct {
		Delivered int `json:"delivered"`
	}
	err = object(got, "channel", &said)
	return said.Delivered, err
}

// Listener yields the messages of a channel, except those that are sent while it is reopened at another node.
type Listener struct{ told *reopened }

// ListenOptions: each member may be nil.
type ListenOptions struct {
	OnOpen  func()
	OnError func(error)
}

// Listen opens a channel, until ctx ends or Close is called.
func (c *Channels) Listen(ctx context.Context, name string, options ListenOptions) (*Listener, error) {
	channel, err := segment(name, "channel")
	if err != nil {
		return nil, err
	}
	how := reopening{
		request: func() spec { return spec{path: "/v1/channels/" + channel} },
		taken:   func(f frame) (item, bool, error) { return item{data: f.data}, f.event == "message", nil },
		opened:  options.OnOpen,
		broke:   options.OnError,
	}
	return &Listener{newReopened(ctx, c.transport, how)}, nil
}

// Next waits for the next message; its errors are those of Feed.Next.
func (l *Listener) Next(ctx context.Context) (json.RawMessage, error) {
	got, err := l.told.next(ctx)
	return got.data, err
}

// Close ends the listener, and a Next that waits.
func (l *Listener) Close() { l.told.close() }
