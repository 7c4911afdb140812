package eldest

import (
	"context"
	"testing"
	"time"
)

func TestTheSystemClockGoesOn(t *testing.T) {
	clock := newSystemClock()
	before := clock.now()
	clock.rest(context.Background(), time.Millisecond, nil)
	if after := clock.now(); after < before+time.Millisecond {
		t.Fatalf("%v is not after %v", after, before)
	}
}

func TestAnAlarmThatIsCancelledDoesNotRing(t *testing.T) {
	clock := newSystemClock()
	first, second := make(chan struct{}), make(chan struct{})
	clock.after(time.Millisecond, func() { close(first) })()
	clock.after(5*time.Millisecond, func() { close(second) })
	received(t, second)
	select {
	case <-first:
		t.Fatal("it rang")
	default:
	}
}

func TestALongAlarmRingsWhenTheClockSaysSo(t *testing.T) {
	at := time.Hour
	clock := systemClock{read: func() time.Duration { return at }}
	rang := make(chan struct{})
	alarm := &alarm{clock: clock, at: at + time.Minute, fn: func() { close(rang) }}
	alarm.set()
	defer alarm.cancel()
	// The runtime's timer fires at the end of a slice, whether the machine has slept or not.
	alarm.ring()
	select {
	case <-rang:
		t.Fatal("it rang before its time")
	default:
	}
	alarm.cancel()
	at += 2 * time.Minute
	alarm.over = false
	alarm.ring()
	received(t, rang)
}

func TestSleepIsCounted(t *testing.T) {
	var steady, wall time.Duration
	read := withSleep(func() time.Duration { return steady }, func() time.Duration { return wall })
	steady, wall = time.Second, time.Second
	equal(t, read(), time.Second)
	// The machine sleeps for an hour: only the wall clock goes on.
	steady, wall = 2*time.Second, time.Hour+2*time.Second
	equal(t, read(), time.Hour+2*time.Second)
	// The wall clock is set back: nothing changes.
	steady, wall = 3*time.Second, 0
	equal(t, read(), time.Hour+3*time.Second)
}

func TestPausesDoubleUpToTheMost(t *testing.T) {
	pauses := newBackoff()
	for most := 50 * time.Millisecond; most < 4*time.Second; most *= 2 {
		bound := shorter(most, time.Second)
		if pause := pauses.next(); pause < bound/2 || pause > bound {
			t.Fatalf("%v is not between %v and %v", pause, bound/2, bound)
		}
	}
	pauses.reset()
	if pause := pauses.next(); pause > 50*time.Millisecond {
		t.Fatalf("%v after a reset", pause)
	}
}
