package eldest

import (
	"context"
	"reflect"
	"sort"
	"sync"
	"testing"
	"time"
)

// patience is how long a test waits for what must come; it measures nothing.
const patience = 60 * time.Second

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// received is the next value of a channel, or its end. It does not end the test's goroutine, so that others may wait
// too.
func received[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(patience):
		t.Error("waited in vain for a channel")
		var none T
		return none
	}
}

// equal compares any two values of one type.
func equal[T any](t *testing.T, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// manualClock goes on when a test says so.
type manualClock struct {
	mu     sync.Mutex
	at     time.Duration
	alarms map[*manualAlarm]bool
}

type manualAlarm struct {
	at time.Duration
	fn func()
}

func newManualClock() *manualClock {
	return &manualClock{at: time.Hour, alarms: map[*manualAlarm]bool{}}
}

func (c *manualClock) now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *manualClock) after(d time.Duration, fn func()) func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	alarm := &manualAlarm{at: c.at + longer(d, 0), fn: fn}
	c.alarms[alarm] = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.alarms, alarm)
	}
}

func (c *manualClock) rest(ctx context.Context, d time.Duration, early <-chan struct{}) {
	restBy(ctx, c, d, early)
}

// skip acts like a process that was held up: time has gone on, and no timer has fired.
func (c *manualClock) skip(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at += d
}

// advance lets time pass, and fires due alarms in order.
func (c *manualClock) advance(d time.Duration) {
	c.mu.Lock()
	end := c.at + d
	for {
		alarm := c.due(end)
		if alarm == nil {
			break
		}
		delete(c.alarms, alarm)
		c.at = longer(c.at, alarm.at)
		c.mu.Unlock()
		alarm.fn()
		c.mu.Lock()
	}
	c.at = end
	c.mu.Unlock()
}

// The caller of due holds the lock.
func (c *manualClock) due(end time.Duration) *manualAlarm {
	var due []*manualAlarm
	for alarm := range c.alarms {
		if alarm.at <= end {
			due = append(due, alarm)
		}
	}
	if len(due) == 0 {
		return nil
	}
	sort.Slice(due, func(i, j int) bool { return due[i].at < due[j].at })
	return due[0]
}

// awaits waits until an alarm is set for that moment from now.
func (c *manualClock) awaits(t *testing.T, d time.Duration) {
	t.Helper()
	until(t, "somebody who waits for "+d.String(), func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		for alarm := range c.alarms {
			if alarm.at == c.at+d {
				return true
			}
		}
		return false
	})
}

// next waits for an alarm that is at most this far from now, lets time pass up to it, and returns how long that took.
func (c *manualClock) next(t *testing.T, most time.Duration) time.Duration {
	t.Helper()
	var left time.Duration
	until(t, "an alarm", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		alarm := c.due(c.at + most)
		if alarm != nil {
			left = longer(alarm.at-c.at, 0)
		}
		return alarm != nil
	})
	c.advance(left)
	return left
}

// hastyClock moves only by its pauses, which take no time: a call ends after its attempts, however slow this machine
// is.
type hastyClock struct {
	mu sync.Mutex
	at time.Duration
}

func (c *hastyClock) now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *hastyClock) after(time.Duration, func()) func() { return func() {} }

func (c *hastyClock) rest(ctx context.Context, d time.Duration, _ <-chan struct{}) {
	if ctx.Err() != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at += d
}

// quick makes a call that can only fail do so at once.
func quick(s *settings) error {
	s.clock = &hastyClock{at: time.Hour}
	return nil
}
