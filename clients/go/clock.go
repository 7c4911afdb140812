package eldest

import (
	"context"
	"sync"
	"time"
)

// A clock starts at any moment, never goes back, and counts the machine's sleep too. Tests replace it.
type clock interface {
	now() time.Duration
	// after calls fn after d, in its own goroutine; the returned function cancels that.
	after(d time.Duration, fn func()) (cancel func())
	// rest waits until d is over, ctx ends or early is closed; a nil early never closes.
	rest(ctx context.Context, d time.Duration, early <-chan struct{})
}

// Timers of the runtime stand still while the machine sleeps. So a long timer is set in slices, and the clock is read
// after each of them.
const timerSliceMost = time.Second

type systemClock struct{ read func() time.Duration }

func newSystemClock() clock {
	return systemClock{read: steadyTime()}
}

func (c systemClock) now() time.Duration { return c.read() }

func (c systemClock) after(d time.Duration, fn func()) func() {
	alarm := &alarm{clock: c, at: c.now() + d, fn: fn}
	alarm.set()
	return alarm.cancel
}

type alarm struct {
	clock systemClock
	at    time.Duration
	fn    func()

	mu    sync.Mutex
	over  bool
	timer *time.Timer
}

func (a *alarm) set() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return
	}
	left := a.at - a.clock.now()
	if left > timerSliceMost {
		left = timerSliceMost
	}
	a.timer = time.AfterFunc(left, a.ring)
}

func (a *alarm) ring() {
	if a.clock.now() < a.at {
		a.set()
		return
	}
	a.mu.Lock()
	over := a.over
	a.over = true
	a.mu.Unlock()
	if !over {
		a.fn()
	}
}

func (a *alarm) cancel() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	if a.timer != nil {
		a.timer.Stop()
	}
}

// If the wall clock has run ahead of the monotonic clock by more than this, the machine has slept.
const sleptLeast = time.Second

// withSleep adds the machine's sleep, as far as the wall clock shows it, to a clock that stands still meanwhile. The
// wall clock can only make time pass faster here: if it is set forward, a holder stops believing early; if it is set
// back, nothing changes.
func withSleep(steady, wall func() time.Duration) func() time.Duration {
	var mu sync.Mutex
	var slept time.Duration
	lastSteady, lastWall := steady(), wall()
	return func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		nowSteady, nowWall := steady(), wall()
		if ahead := (nowWall - lastWall) - (nowSteady - lastSteady); ahead > sleptLeast {
			slept += ahead
		}
		lastSteady, lastWall = nowSteady, nowWall
		return nowSteady + slept
	}
}

// runtimeClock is the runtime's monotonic clock plus the machine's sleep.
func runtimeClock() func() time.Duration {
	began := time.Now()
	steady := func() time.Duration { return time.Since(began) }
	wall := func() time.Duration { return time.Duration(time.Now().UnixNano()) }
	return withSleep(steady, wall)
}

func (c systemClock) rest(ctx context.Context, d time.Duration, early <-chan struct{}) {
	restBy(ctx, c, d, early)
}

// restBy implements rest by means of the clock's after.
func restBy(ctx context.Context, c clock, d time.Duration, early <-chan struct{}) {
	if ctx.Err() != nil {
		return
	}
	over := make(chan struct{})
	cancel := c.after(d, func() { close(over) })
	defer cancel()
	select {
	case <-over:
	case <-ctx.Done():
	case <-early:
	}
}

// lingering returns a context that ends d after ctx does. If ctx has ended already, it ends at once, so that no call
// begins.
func lingering(ctx context.Context, c clock, d time.Duration) (context.Context, context.CancelFunc) {
	if ctx.Err() != nil {
		return context.WithCancel(ctx)
	}
	later, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		select {
		case <-ctx.Done():
			c.rest(later, d, nil)
		case <-later.Done():
		}
	}()
	return later, cancel
}

// backoff gives the pauses between attempts: doubling from the least to the most, half of each random.
type backoff struct{ least, most, pause time.Duration }

func newBackoff() *backoff {
	return &backoff{least: 50 * time.Millisecond, most: time.Second}
}

func (b *backoff) reset() { b.pause = 0 }

func (b *backoff) next() time.Duration {
	if b.pause < b.least {
		b.pause = b.least
	}
	pause := b.pause/2 + time.Duration(randomBelow(uint64(b.pause/2)+1))
	b.pause *= 2
	if b.pause > b.most {
		b.pause = b.most
	}
	return pause
}

func shorter(a, b time.Duration) time.Duration {
	if a < b {
		return a
	}
	return b
}

func longer(a, b time.Duration) time.Duration {
	if a > b {
		return a
	}
	return b
}
