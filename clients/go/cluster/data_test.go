//go:build cluster

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"eldest.dev/eldest"
)

func TestDocumentsCompareAndSwapAtAnyNode(t *testing.T) {
	key := unique("doc") + "/ü b%"
	first, err := client(t, 0).Docs.Put(ctx, key, json.RawMessage(`{"n":12345678901234567890}`), eldest.IfAbsent())
	must(t, err)
	equal(t, first.Created, true)
	found, err := client(t, 1).Docs.Get(ctx, key, "")
	must(t, err)
	equal(t, found, eldest.Document{Key: key, Value: json.RawMessage(`{"n":12345678901234567890}`), Rev: first.Rev})
	next, err := client(t, 2).Docs.Put(ctx, key, 2, eldest.IfRev(first.Rev))
	must(t, err)
	_, err = client(t, 0).Docs.Put(ctx, key, 3, eldest.IfRev(first.Rev))
	var problem *eldest.Problem
	equal(t, errors.Is(err, eldest.ErrConflict) && errors.As(err, &problem), true)
	equal(t, problem.CurrentRev(), next.Rev)
	must(t, client(t, 1).Docs.Delete(ctx, key, eldest.IfRev(next.Rev)))
	_, err = client(t, 2).Docs.Get(ctx, key, eldest.Linear)
	equal(t, errors.Is(err, eldest.ErrNotFound), true)
}

func TestSomeDocumentsEndByThemselves(t *testing.T) {
	prefix := unique("ends")
	feed := feedOf(t, client(t, 1), prefix)
	docs := client(t, 0).Docs
	_, err := docs.Put(ctx, prefix+"/ttl", 1, eldest.EndsAfter(5*time.Second))
	must(t, err)
	left, err := client(t, 2).Docs.Renew(ctx, prefix+"/ttl")
	must(t, err)
	equal(t, left > 0, true)
	holder := client(t, 0)
	held := lock(t, holder, prefix+"/role", eldest.LockOptions{})
	_, err = docs.Put(ctx, prefix+"/held", 2, eldest.EndsWithRole(prefix+"/role", held.Token()))
	equal(t, errors.Is(err, eldest.ErrForbidden), true)
	other := client(t, 1, eldest.WithSecret("other"))
	_, err = other.Processes.Put(ctx, prefix+"/p", eldest.Entry{})
	must(t, err)
	_, err = docs.Put(ctx, unique("guarded"), 2, eldest.EndsWithProcess(prefix+"/p"), eldest.LeaseSecret("other"))
	must(t, err)
	must(t, other.Processes.Delete(ctx, prefix+"/p"))
	_, err = holder.Docs.Put(ctx, prefix+"/held", 2, eldest.EndsWithRole(prefix+"/role", held.Token()))
	must(t, err)
	must(t, held.Release(ctx))
	told := map[string]string{}
	for len(told) < 2 {
		if event := next(t, feed); event.Op == "delete" {
			told[event.Key] = event.Reason
		}
	}
	equal(t, told, map[string]string{prefix + "/ttl": "expired", prefix + "/held": "lease_ended"})
	_, err = docs.Renew(ctx, prefix+"/ttl")
	equal(t, errors.Is(err, eldest.ErrNotFound), true)
}

// feedOf opens a feed of changes, and returns once its first bookmark has come.
func feedOf(t *testing.T, c *eldest.Client, prefix string) *eldest.Feed {
	t.Helper()
	feed := c.Feed(ctx, eldest.FeedOptions{Kinds: []string{"change"}, Prefix: prefix, Bookmarks: true})
	t.Cleanup(feed.Close)
	event, err := feed.Next(ctx)
	must(t, err)
	equal(t, event.Kind, "bookmark")
	return feed
}

func next(t *testing.T, feed *eldest.Feed) eldest.Event {
	t.Helper()
	for {
		event, err := feed.Next(ctx)
		must(t, err)
		if event.Kind != "bookmark" {
			return event
		}
	}
}

func TestAllOfAPrefix(t *testing.T) {
	prefix := unique("many") + "/"
	var commands []eldest.Command
	for n := 0; n < 150; n++ {
		commands = append(commands, eldest.Command{Name: "PutDoc", Payload: map[string]any{"key": fmt.Sprint(prefix, n), "value": n}})
	}
	_, err := client(t, 0).Batch(ctx, commands)
	must(t, err)
	count := 0
	must(t, client(t, 1).Docs.All(ctx, prefix, func(eldest.Document) error {
		count++
		return nil
	}))
	equal(t, count, 150)
}

func TestThousandsOfCommandsEachByItself(t *testing.T) {
	prefix := unique("bulk") + "/"
	var commands []eldest.Command
	for n := 0; n < 2500; n++ {
		commands = append(commands, eldest.Command{Name: "PutDoc", Payload: map[string]any{"key": fmt.Sprint(prefix, n), "value": n}})
	}
	commands = append(commands, eldest.Command{Name: "Fly", Payload: struct{}{}})
	told, err := client(t, 1).Bulk(ctx, commands)
	must(t, err)
	for _, said := range told[:2500] {
		must(t, said.Err)
	}
	var problem *eldest.Problem
	equal(t, errors.As(told[2500].Err, &problem) && problem.Code == "unknown_command", true)
}

func TestAWriteWhoseAnswerIsLostHappensOnce(t *testing.T) {
	way := wayTo(t, nodes[0])
	way.swallow = true
	through := clientOf(t, []string{way.url, nodes[1], nodes[2]})
	// The second attempt gets the first one's result; otherwise it would find the document there.
	written, err := through.Docs.Put(ctx, unique("once"), 1, eldest.IfAbsent())
	must(t, err)
	equal(t, written.Created, true)
}

func TestChangesOfManyWritersAreAllThere(t *testing.T) {
	key := unique("state")
	var writers sync.WaitGroup
	for n := 0; n < 4; n++ {
		n, state := n, eldest.DocOf(client(t, n), key, map[string]int{})
		writers.Add(1)
		go func() {
			defer writers.Done()
			_, err := state.Update(ctx, func(all map[string]int) (map[string]int, error) {
				all[fmt.Sprint(n)] = n
				return all, nil
			})
			if err != nil {
				t.Error(err)
			}
		}()
	}
	writers.Wait()
	all, _, err := eldest.DocOf(client(t, 0), key, map[string]int{}).Get(ctx)
	must(t, err)
	equal(t, all, map[string]int{"0": 0, "1": 1, "2": 2, "3": 3})
}

func TestTheFeedGoesOnAtAnotherNode(t *testing.T) {
	prefix := unique("feed") + "/"
	way := wayTo(t, nodes[0])
	feed := feedOf(t, clientOf(t, []string{way.url, nodes[1], nodes[2]}), prefix)
	for n := 0; n < 40; n++ {
		if n == 20 {
			way.cut()
		}
		_, err := client(t, n).Docs.Put(ctx, fmt.Sprint(prefix, n), n)
		must(t, err)
	}
	for n := 0; n < 40; n++ {
		equal(t, string(next(t, feed).Value), fmt.Sprint(n))
	}
	other := client(t, 1).Feed(ctx, eldest.FeedOptions{Kinds: []string{"change"}, Prefix: prefix, Since: feed.LastID()})
	t.Cleanup(other.Close)
	_, err := client(t, 2).Docs.Put(ctx, prefix+"last", "last")
	must(t, err)
	equal(t, string(next(t, other).Value), `"last"`)
}

func TestAMessageReachesAListenerAtAnotherNode(t *testing.T) {
	name := unique("channel")
	opened := make(chan struct{}, 8)
	listener, err := client(t, 0).Channels.Listen(ctx, name, eldest.ListenOptions{OnOpen: func() { opened <- struct{}{} }})
	must(t, err)
	t.Cleanup(listener.Close)
	<-opened
	delivered, err := client(t, 1).Channels.Publish(ctx, name, map[string]int{"job": 17})
	must(t, err)
	equal(t, delivered, 1)
	message, err := listener.Next(ctx)
	must(t, err)
	equal(t, string(message), `{"job":17}`)
}

func TestAProcessIsRegisteredFoundAndGone(t *testing.T) {
	identifier := unique("worker")
	registry, err := client(t, 0).Registry(eldest.RegistryOptions{
		Entry:          eldest.Entry{Identifier: identifier, Capabilities: []string{"gpu"}, Metadata: map[string]string{"zone": "a"}},
		HeartbeatEvery: 50 * time.Millisecond,
	})
	must(t, err)
	process, err := registry.Register(ctx)
	must(t, err)
	equal(t, process.Channel, registry.Channel())
	found, err := client(t, 1).Processes.All(ctx, eldest.Filter{Identifier: identifier, Capability: "gpu", Role: "slave"})
	must(t, err)
	equal(t, len(found) == 1 && found[0].ID == registry.ID(), true)
	err = client(t, 2).Processes.Delete(ctx, registry.ID())
	equal(t, errors.Is(err, eldest.ErrForbidden), true)
	until(t, "a heartbeat", func() bool {
		now, err := client(t, 2).Processes.Get(ctx, registry.ID(), "")
		must(t, err)
		return now.LastSeen > process.LastSeen
	})
	must(t, registry.Stop(ctx))
	_, err = client(t, 1).Processes.Get(ctx, registry.ID(), "")
	equal(t, errors.Is(err, eldest.ErrNotFound), true)
}
