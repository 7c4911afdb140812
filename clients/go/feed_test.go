package eldest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
)

// feedOf opens a feed and waits for its first stream.
func feedOf(t *testing.T, client *Client, options FeedOptions) (*Feed, *atomic.Int32) {
	t.Helper()
	var opened atomic.Int32
	options.OnOpen = func() { opened.Add(1) }
	feed := client.Feed(ctx, options)
	t.Cleanup(feed.Close)
	until(t, "the feed to open", func() bool { return opened.Load() == 1 })
	return feed, &opened
}

func next(t *testing.T, feed *Feed) Event {
	t.Helper()
	waiting, end := context.WithTimeout(ctx, patience)
	defer end()
	event, err := feed.Next(waiting)
	must(t, err)
	return event
}

func TestTheFeedGoesOnAtAnotherNodeNothingMissedNothingTwice(t *testing.T) {
	cluster, client := fakeOf(t, 2)
	feed, opened := feedOf(t, client, FeedOptions{Kinds: []string{"change"}})
	other := another(t, cluster)
	for n := 0; n < 20; n++ {
		if n == 10 {
			cluster.cut(0)
		}
		_, err := other.Docs.Put(ctx, "k", n)
		must(t, err)
	}
	for n := 0; n < 20; n++ {
		var value int
		must(t, json.Unmarshal(next(t, feed).Value, &value))
		equal(t, value, n)
	}
	equal(t, opened.Load() >= 2, true)
	equal(t, feed.LastID(), "20")
}

func TestTheFeedBeginsBehindAnID(t *testing.T) {
	_, client := fakeOf(t, 1)
	for n := 0; n < 3; n++ {
		_, err := client.Docs.Put(ctx, "k", n)
		must(t, err)
	}
	feed, _ := feedOf(t, client, FeedOptions{Since: "2"})
	event := next(t, feed)
	equal(t, []string{event.ID, event.Kind, event.Key, string(event.Value)}, []string{"3", "change", "k", "2"})
}

func TestBookmarksAreToldIfAskedForAndCountForGoingOn(t *testing.T) {
	_, client := fakeOf(t, 1)
	_, err := client.Docs.Put(ctx, "k", 1)
	must(t, err)
	feed, _ := feedOf(t, client, FeedOptions{Bookmarks: true})
	equal(t, next(t, feed).Kind, "bookmark")
	equal(t, feed.LastID(), "1")
}

func TestAnErrorEventEndsTheStreamAndItIsOpenedAgain(t *testing.T) {
	cluster, client := fakeOf(t, 2)
	feed, opened := feedOf(t, client, FeedOptions{})
	ended := make(chan error)
	go func() {
		_, err := feed.Next(ctx)
		ended <- err
	}()
	cluster.state.mu.Lock()
	cluster.state.tell(map[string]any{"kind": "error", "code": "stopping"})
	cluster.state.mu.Unlock()
	until(t, "another stream", func() bool { return opened.Load() >= 2 })
	feed.Close()
	equal(t, errors.Is(received(t, ended), ErrClosed), true)
}

func TestWhatIsNotKeptAnyMoreEndsTheFeed(t *testing.T) {
	cluster, client := fakeOf(t, 1)
	cluster.state.compacted = 7
	feed := client.Feed(ctx, FeedOptions{Since: "3"})
	defer feed.Close()
	for n := 0; n < 2; n++ {
		_, err := feed.Next(ctx)
		var problem *Problem
		equal(t, errors.Is(err, ErrCompacted) && errors.As(err, &problem), true)
		equal(t, problem.Oldest(), "7")
	}
}

func TestANextThatIsGivenUpLosesNothing(t *testing.T) {
	_, client := fakeOf(t, 1)
	feed, _ := feedOf(t, client, FeedOptions{})
	gone, end := context.WithCancel(ctx)
	end()
	for n := 0; n < 5; n++ {
		_, err := feed.Next(gone)
		equal(t, errors.Is(err, context.Canceled), true)
	}
	_, err := client.Docs.Put(ctx, "k", 1)
	must(t, err)
	equal(t, next(t, feed).Key, "k")
}

func TestAMessageReachesAListener(t *testing.T) {
	cluster, client := fakeOf(t, 2)
	opened := make(chan struct{}, 8)
	listener, err := client.Channels.Listen(ctx, "c", ListenOptions{OnOpen: func() { opened <- struct{}{} }})
	must(t, err)
	defer listener.Close()
	received(t, opened)
	count, err := another(t, cluster).Channels.Publish(ctx, "c", map[string]int{"job": 1})
	must(t, err)
	equal(t, count, 1)
	message, err := listener.Next(ctx)
	must(t, err)
	equal(t, string(message), `{"job":1}`)
}

func TestAMessageIsNeverSentTwice(t *testing.T) {
	cluster, client := fakeOf(t, 2)
	cluster.faults(fault{cut: true})
	_, err := client.Channels.Publish(ctx, "c", 1)
	equal(t, errors.Is(err, ErrIndeterminate), true)
	equal(t, len(cluster.asked("")), 1)
}

func framesOf(text string) *frames {
	return newFrames(ctx, strings.NewReader(text), newManualClock())
}

func TestFramesAreReadAsTheyAreWritten(t *testing.T) {
	f := framesOf(":\r\n\nid: 1\nevent: change\ndata: a\ndata: b\n\nid: 2\n\ndata:\n\nevent: late\ndata: cut off")
	got, err := f.next(ctx)
	must(t, err)
	equal(t, got, frame{event: "change", id: "1", data: []byte("a\nb")})
	got, err = f.next(ctx)
	must(t, err)
	equal(t, got, frame{data: []byte{}})
	_, err = f.next(ctx)
	equal(t, errors.Is(err, errBroken), true)
}

func TestAnEventWithoutAnEndIsNone(t *testing.T) {
	_, err := framesOf("data: " + strings.Repeat("x", frameBytesMost+1<<20)).next(ctx)
	equal(t, errors.Is(err, ErrBadAnswer), true)
	_, err = framesOf(strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 9)).next(ctx)
	equal(t, errors.Is(err, ErrBadAnswer), true)
	_, err = lineOf(bufio.NewReader(strings.NewReader("no end")))
	equal(t, err != nil, true)
}

func TestSilenceBreaksAStreamAndSignsOfLifeDoNot(t *testing.T) {
	clock := newManualClock()
	reader, writer := newPipe(t)
	f := newFrames(ctx, reader, clock)
	broke := make(chan error)
	go func() {
		_, err := f.next(ctx)
		broke <- err
	}()
	clock.awaits(t, silence)
	clock.advance(silence - 1)
	_, err := writer.Write([]byte(":\n"))
	must(t, err)
	clock.awaits(t, silence)
	clock.advance(silence)
	equal(t, errors.Is(received(t, broke), errBroken), true)
}
