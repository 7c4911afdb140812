//go:build cluster || tls

// Package cluster tests the client against real nodes. ELDEST_NODES names them; if ELDEST_TYPED is set, lines written
// to it go to the `eldest dev` that runs them.
package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"eldest.dev/eldest"
)

// patience is how long a test waits for what must come.
const patience = 60 * time.Second

var (
	ctx   = context.Background()
	nodes = strings.Split(os.Getenv("ELDEST_NODES"), ",")
)

// client returns a client whose list of nodes begins with the one of this number.
func client(t *testing.T, first int, options ...eldest.Option) *eldest.Client {
	t.Helper()
	at := first % len(nodes)
	return clientOf(t, append(append([]string(nil), nodes[at:]...), nodes[:at]...), options...)
}

func clientOf(t *testing.T, nodes []string, options ...eldest.Option) *eldest.Client {
	t.Helper()
	made, err := eldest.New(nodes, options...)
	must(t, err)
	t.Cleanup(made.Close)
	return made
}

// unique returns a name that no other test and no other run has.
func unique(name string) string {
	drawn := make([]byte, 8)
	_, _ = rand.Read(drawn)
	return "go/" + name + "/" + hex.EncodeToString(drawn)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T any](t *testing.T, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// typed sends a line to the program that runs the nodes.
func typed(t *testing.T, format string, values ...any) {
	t.Helper()
	name := os.Getenv("ELDEST_TYPED")
	if name == "" {
		t.Skip("ELDEST_TYPED names nothing to type into")
	}
	file, err := os.OpenFile(name, os.O_WRONLY, 0)
	must(t, err)
	_, err = fmt.Fprintf(file, format+"\n", values...)
	must(t, err)
	must(t, file.Close())
}

// way leads to a node, and can be cut: at once, or when the next answer has begun, which then never arrives.
type way struct {
	url      string
	listener net.Listener
	far      string

	mu       sync.Mutex
	conns    map[net.Conn]bool
	answered int
	swallow  bool
}

func wayTo(t *testing.T, node string) *way {
	t.Helper()
	at, err := url.Parse(node)
	must(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	w := &way{url: "http://" + listener.Addr().String(), listener: listener, far: at.Host, conns: map[net.Conn]bool{}}
	t.Cleanup(w.cut)
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			go w.join(near)
		}
	}()
	return w
}

func (w *way) join(near net.Conn) {
	far, err := net.Dial("tcp", w.far)
	if err != nil {
		near.Close()
		return
	}
	w.mu.Lock()
	w.conns[near], w.conns[far] = true, true
	w.mu.Unlock()
	over := func() {
		near.Close()
		far.Close()
		w.mu.Lock()
		delete(w.conns, near)
		delete(w.conns, far)
		w.mu.Unlock()
	}
	go func() {
		defer over()
		_, _ = io.Copy(far, near)
	}()
	defer over()
	_, _ = io.Copy(teller{w, near}, far)
}

// teller passes answers on, unless they have to be swallowed.
type teller struct {
	way  *way
	near net.Conn
}

func (t teller) Write(piece []byte) (int, error) {
	t.way.mu.Lock()
	swallow := t.way.swallow
	t.way.mu.Unlock()
	if swallow {
		return 0, io.ErrClosedPipe
	}
	n, err := t.near.Write(piece)
	t.way.mu.Lock()
	t.way.answered += n
	t.way.mu.Unlock()
	return n, err
}

// serves waits until the node at the other end has answered. If calls go to another node, this is the connection that
// the lease ends with.
func (w *way) serves(t *testing.T) {
	t.Helper()
	until(t, "an answer", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.answered > 0
	})
}

// cut ends the way for good.
func (w *way) cut() {
	w.listener.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	for conn := range w.conns {
		conn.Close()
	}
}
