package eldest

import (
	"context"
	"encoding/json"
)

// Client makes all calls to a cluster, at any of its nodes. Many goroutines may use it at once.
type Client struct {
	transport *transport
	store     store

	Roles     *Roles
	Processes *Processes
	Docs      *Docs
	Channels  *Channels
}

// New makes a client of the cluster with these nodes: name all of them, as http://host:9000. Without any, it takes the
// nodes that ELDEST_URL or ELDEST_NODES names, with commas between them. It makes no call.
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

// Node is the node that the next call tries first: the one that answered last.
func (c *Client) Node() string { return c.transport.bases[c.transport.first()] }

// Close closes idle connections. It does not give up what is held: that is done by Election.Stop and Lock.Release.
func (c *Client) Close() { c.transport.close() }

// Status is what the node that answered last says about itself and the cluster.
type Status struct {
	Cluster string `json:"cluster"`
	Mode    string `json:"mode"`
	Role    string `json:"role"`
	Leader  *Node  `json:"leader"`
	Epoch   string `json:"epoch"`
	// Raw is the whole answer.
	Raw json.RawMessage `json:"-"`
}

// Status returns one node's own view.
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
