package eldest

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// fakeCluster is a cluster in this process: several HTTP servers over one state, and faults on demand.
type fakeCluster struct {
	t       *testing.T
	servers []*httptest.Server

	mu    sync.Mutex
	calls []call
	fault func(call) fault
	state *fakeState
}

// call is one request.
type call struct {
	node         int
	method, path string
	name, verb   string
	query        url.Values
	header       http.Header
	body         []byte
}

func (c call) key() string { return c.header.Get("Idempotency-Key") }

func (c call) field(name string) string {
	var body map[string]any
	_ = json.Unmarshal(c.body, &body)
	if value, found := body[name]; found {
		return fmt.Sprint(value)
	}
	return ""
}

// fault is what happens to a call: nothing, or one of these.
type fault struct {
	// cut: the connection is closed before anything is done; cutAfter: after it.
	cut, cutAfter bool
	// silent: the node never answers.
	silent bool
	status int
	body   string
}

func refusedBy(status int, code string) fault {
	return fault{status: status, body: fmt.Sprintf(`{"code":%q,"detail":"no","retryable":%v}`, code, status >= 500 || status == 429)}
}

func fakeOf(t *testing.T, nodes int, options ...Option) (*fakeCluster, *Client) {
	t.Helper()
	c := &fakeCluster{t: t, state: newFakeState(), fault: func(call) fault { return fault{} }}
	for node := 0; node < nodes; node++ {
		node := node
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { c.serve(node, w, r) }))
		c.servers = append(c.servers, server)
	}
	client, err := New(c.urls(), options...)
	must(t, err)
	t.Cleanup(func() {
		client.Close()
		for node := range c.servers {
			c.kill(node)
		}
	})
	return c, client
}

func (c *fakeCluster) urls() (urls []string) {
	for _, server := range c.servers {
		urls = append(urls, server.URL)
	}
	return urls
}

// kill: from now on the node refuses connections, and its open ones are closed.
func (c *fakeCluster) kill(node int) {
	server := c.servers[node]
	server.Listener.Close()
	c.cut(node)
}

// cut closes the connections of a node.
func (c *fakeCluster) cut(node int) { c.servers[node].CloseClientConnections() }

func (c *fakeCluster) setFault(fault func(call) fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = fault
}

// faults sets faults by the number of the call.
func (c *fakeCluster) faults(list ...fault) {
	n := 0
	c.setFault(func(call) fault {
		n++
		if n <= len(list) {
			return list[n-1]
		}
		return fault{}
	})
}

// asked returns the calls whose path ends with suffix.
func (c *fakeCluster) asked(suffix string) (asked []call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.calls {
		if strings.HasSuffix(one.path, suffix) {
			asked = append(asked, one)
		}
	}
	return asked
}

func (c *fakeCluster) nodesAsked() (nodes []int) {
	for _, one := range c.asked("") {
		nodes = append(nodes, one.node)
	}
	return nodes
}

func (c *fakeCluster) serve(node int, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	one := call{node: node, method: r.Method, path: r.URL.Path, query: r.URL.Query(), header: r.Header, body: body}
	parts := strings.Split(r.URL.EscapedPath(), "/")
	if len(parts) > 3 {
		one.name, _ = url.PathUnescape(parts[3])
	}
	if len(parts) > 4 {
		one.verb = parts[4]
	}
	c.mu.Lock()
	c.calls = append(c.calls, one)
	met := c.fault(one)
	c.mu.Unlock()
	switch {
	case met.cut:
		hangUp(w)
	case met.silent:
		<-r.Context().Done()
	case met.status != 0:
		reply{met.status, met.body, nil}.send(w)
	default:
		c.answer(one, met, w, r)
	}
}

func (c *fakeCluster) answer(one call, met fault, w http.ResponseWriter, r *http.Request) {
	said, streamed := c.state.reply(one, w, r)
	if streamed {
		return
	}
	if met.cutAfter {
		hangUp(w)
		return
	}
	said.send(w)
}

func hangUp(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	// The client sees a reset, not an end.
	_ = conn.(*net.TCPConn).SetLinger(0)
	conn.Close()
}

type reply struct {
	status int
	body   string
	header map[string]string
}

func (r reply) send(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	for name, value := range r.header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(r.status)
	_, _ = io.WriteString(w, r.body)
}

func ok(value any) reply {
	text, err := encode(value)
	if err != nil {
		panic(err)
	}
	return reply{200, string(text), nil}
}

func problemReply(status int, code string, members map[string]any) reply {
	said := map[string]any{"code": code, "detail": code, "retryable": status >= 500}
	for name, value := range members {
		said[name] = value
	}
	answer := ok(said)
	answer.status = status
	return answer
}
