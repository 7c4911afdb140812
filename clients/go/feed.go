package eldest

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"sync"
)

// FeedOptions say which events are delivered.
type FeedOptions struct {
	// Kinds: only these; all of them by default.
	Kinds []string
	// Prefix: only events whose key or name begins with it.
	Prefix string
	// Since: begin after the event with this id; from now on by default.
	Since string
	// Bookmarks are delivered too: events that say only that everything up to their id has been delivered.
	Bookmarks bool
	// OnOpen is called when a stream has begun, OnError when one broke and is reopened elsewhere.
	OnOpen  func()
	OnError func(error)
}

// Event is one event of the feed. Members that its kind does not have are empty; Raw has all of them.
type Event struct {
	ID         string          `json:"id"`
	Kind       string          `json:"kind"`
	Table      string          `json:"table"`
	Key        string          `json:"key"`
	Rev        string          `json:"rev"`
	Op         string          `json:"op"`
	Value      json.RawMessage `json:"value"`
	Role       string          `json:"role"`
	InstanceID string          `json:"instance_id"`
	Token      uint64          `json:"token"`
	Process    string          `json:"process"`
	Identifier string          `json:"identifier"`
	Reason     string          `json:"reason"`
	Raw        json.RawMessage `json:"-"`
}

// Feed delivers every change, in order, from any node. If the stream ends, it goes on at another node after the last
// event. There is no queue: a slow reader holds the connection back. It ends with its context, or with Close.
type Feed struct {
	told *reopened
	// Bookmarks that the caller did not ask for are hidden; their ids still count for going on.
	bookmarks bool

	mu     sync.Mutex
	lastID string
}

// Feed opens the feed.
func (c *Client) Feed(ctx context.Context, options FeedOptions) *Feed {
	feed := &Feed{bookmarks: options.Bookmarks, lastID: options.Since}
	since := options.Since
	feed.told = newReopened(ctx, c.transport, reopening{
		request: func() spec { return options.request(since) },
		taken: func(f frame) (item, bool, error) {
			event := Event{Raw: f.data}
			if err := f.object(&event); err != nil {
				return item{}, false, err
			}
			if f.id != "" {
				since = f.id
			}
			return item{event: event, id: f.id}, true, nil
		},
		opened: options.OnOpen,
		broke:  options.OnError,
	})
	return feed
}

func (o FeedOptions) request(since string) spec {
	query := url.Values{}
	set(query, "kinds", strings.Join(o.Kinds, ","))
	set(query, "prefix", o.Prefix)
	set(query, "since", since)
	return spec{path: "/v1/feed", query: query}
}

// Next waits for the next event. An error means that ctx ended, and Next may be called again; or that the feed ended:
// ErrCompacted, another problem that reopening it would meet, or ErrClosed.
func (f *Feed) Next(ctx context.Context) (Event, error) {
	for {
		got, err := f.told.next(ctx)
		if err != nil {
			return Event{}, err
		}
		if got.id != "" {
			f.mu.Lock()
			f.lastID = got.id
			f.mu.Unlock()
		}
		if got.event.Kind != "bookmark" || f.bookmarks {
			return got.event, nil
		}
	}
}

// LastID is where to go on after the last event that Next has returned: FeedOptions{Since: feed.LastID()}.
func (f *Feed) LastID() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lastID
}

// Close ends the feed, and a Next that waits.
func (f *Feed) Close() { f.told.close() }
