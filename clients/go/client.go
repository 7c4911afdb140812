package eldest

import (
	"context"
	"encoding/json"
)

// Client is everything that a cluster is asked for, at whichever of its nodes. It may be used by many goroutines at once.
type Client struct {
	transport *transport
	store     store

	Roles     *Roles
	Processes *Processes
	Docs      *Docs
	Channels  *Channels
}

// New makes a client of the cluster whose nodes these are: name all of them, as http://host:9000. Of none, those that ELDEST_URL names, or
// ELDEST_NODES, with commas between them. Nothing is called yet.
func New(nodes []string, options ...Option) (*Client, error) {
	t, err := newTransport(nodes, options)
	if err != nil {
		return nil, err
	}
	c := &Client{transport: t, Roles: &Roles{t}, Processes: &Processes{t}, Docs: &Docs{t}, Channels: &Channels{t}}
	c.store = clusterStore{c.Roles, c.Feed}
	return c, nil
}

// Nodes are the URLs of all nodes.
func (c *Client) Nodes() []string { return append([]string(nil), c.transport.bases...) }

// Node is the one that the next call tries first: the one that answered last.
func (c *Client) Node() string { return c.transport.bases[c.transport.first()] }

// Close lets go of connections that nothing uses. What is held is given back by whoever holds it: Election.Stop, Lock.Release.
func (c *Client) Close() { c.transport.close() }

// Status is what a node says about itself and the cluster: the one that answered last.
type Status struct {
	Cluster string `json:"cluster"`
	Mode    string `json:"mode"`
	Role    string `json:"role"`
	Leader  *Node  `json:"leader"`
	Epoch   string `json:"epoch"`
	// Raw has all of it.
	Raw json.RawMessage `json:"-"`
}

// Status is one node's own view.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var status Status
	got, err := c.transport.do(ctx, spec{path: "/v1/status"})
	if err != nil {
		return status, err
	}
	status.Raw = got.body
	err = object(got, "status", &status)
	return status, err
}
