//go:build tls

package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"eldest.dev/eldest"
)

// pids are the processes of the nodes, by their ids: ELDEST_PIDS names them, as ID=PID.
func pids(t *testing.T) map[string]int {
	t.Helper()
	found := map[string]int{}
	for _, pair := range strings.Split(os.Getenv("ELDEST_PIDS"), ",") {
		id, pid, _ := strings.Cut(pair, "=")
		number, err := strconv.Atoi(pid)
		must(t, err)
		found[id] = number
	}
	return found
}

func TestARoleAndTheFeedSurviveTheLeader(t *testing.T) {
	authority, err := os.ReadFile(os.Getenv("ELDEST_CA"))
	must(t, err)
	trusted := x509.NewCertPool()
	equal(t, trusted.AppendCertsFromPEM(authority), true)
	name := unique("tls")
	made := client(t, 0, eldest.WithTLS(&tls.Config{RootCAs: trusted}))
	held, err := made.Lock(ctx, name, eldest.LockOptions{TTL: time.Minute})
	must(t, err)
	feed := made.Feed(ctx, eldest.FeedOptions{Kinds: []string{"change"}, Prefix: name, Bookmarks: true})
	t.Cleanup(feed.Close)
	first, err := feed.Next(ctx)
	must(t, err)
	equal(t, first.Kind, "bookmark")
	status, err := made.Status(ctx)
	must(t, err)
	must(t, syscall.Kill(pids(t)[strconv.FormatUint(status.Leader.ID, 10)], syscall.SIGKILL))
	_, err = made.Docs.Put(ctx, name, 2)
	must(t, err)
	for {
		event, err := feed.Next(ctx)
		must(t, err)
		if event.Kind == "change" {
			equal(t, string(event.Value), "2")
			break
		}
	}
	valid, err := made.Roles.Check(ctx, name, held.Token())
	must(t, err)
	equal(t, valid && held.Held(), true)
	must(t, held.Release(ctx))
}

func TestNobodyIsBelievedWithoutTheCA(t *testing.T) {
	made := client(t, 0, eldest.WithTimeouts(time.Second, time.Second))
	_, err := made.Docs.Put(ctx, "k", 1)
	// Before the handshake is over, no part of a call has left.
	equal(t, errors.Is(err, eldest.ErrUnavailable), true)
}
