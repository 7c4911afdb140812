package eldest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

var believed = believable(testTTL, testTTL)

func away(int, renewal) (proof, error) { return proof{}, errAway }

func lostTo(int, renewal) (proof, error) {
	return proof{}, &Problem{Status: 410, Code: "lease_lost", Detail: "b has it"}
}

func TestWhatIsBelievedIsTheShorterSpanLessAHundredthAnd10Ms(t *testing.T) {
	equal(t, believable(30*time.Second, 30*time.Second), 29_690*time.Millisecond)
	equal(t, believable(30*time.Second, 20*time.Second), 19_790*time.Millisecond)
	equal(t, believable(time.Second, 30*time.Second), 980*time.Millisecond)
}

func TestBeliefCountsFromTheSendingOfTheRequest(t *testing.T) {
	s := newFakeStore()
	s.setAnswer(away)
	sent := s.proof(testTTL)
	s.clock.skip(4 * time.Second)
	l, ok := leased(t, s, LeaseAlone, func(_ *held, g *Grant) { g.proof = sent })
	equal(t, ok, true)
	s.clock.skip(believed - 4*time.Second - 1)
	equal(t, l.isHeld(), true)
	s.clock.skip(1)
	equal(t, l.isHeld(), false)
}

func TestAProcessThatWasHeldUpDoesNotBelieveAlthoughNoTimerHasFired(t *testing.T) {
	s := newFakeStore()
	l, _ := leased(t, s, LeaseAlone, nil)
	s.clock.awaits(t, testEvery)
	s.clock.skip(testTTL)
	equal(t, l.isHeld(), false)
	must(t, l.ctx.Err())
	s.clock.advance(0)
	received(t, l.ctx.Done())
	equal(t, l.lostBecause(), errLate)
}

func TestAShorterExpiryThanTheTTLIsWhatIsBelieved(t *testing.T) {
	s := newFakeStore()
	s.setAnswer(away)
	l, _ := leased(t, s, LeaseAlone, func(_ *held, g *Grant) { g.expiresIn = 6 * time.Second })
	s.clock.skip(believable(testTTL, 6*time.Second))
	equal(t, l.isHeld(), false)
}

func TestAGrantThatWasWaitedForIsRenewedBeforeItIsBelieved(t *testing.T) {
	s := newFakeStore()
	_, ok := leased(t, s, LeaseAlone, func(_ *held, g *Grant) { g.waited = true })
	equal(t, ok, true)
	equal(t, s.made(), 1)
}

func TestAGrantThatWasWaitedForAndIsAnothersByNowIsNeverBelieved(t *testing.T) {
	s := newFakeStore()
	s.setAnswer(lostTo)
	l, ok := leased(t, s, LeaseAlone, func(_ *held, g *Grant) { g.waited = true })
	equal(t, ok, false)
	equal(t, l.isHeld(), false)
	equal(t, errors.Is(l.lostBecause(), ErrLeaseLost), true)
}

func TestAGrantThatIsOldOnArrivalIsRenewedFirst(t *testing.T) {
	s := newFakeStore()
	sent := s.proof(testTTL)
	s.clock.skip(testTTL - 500*time.Millisecond)
	l, ok := leased(t, s, LeaseAlone, func(_ *held, g *Grant) { g.proof = sent })
	equal(t, ok, true)
	equal(t, s.made(), 1)
	s.clock.skip(believed - 1)
	equal(t, l.isHeld(), true)
}

func TestRenewalsKeepItForAsLongAsTheyComeThrough(t *testing.T) {
	s := newFakeStore()
	l, _ := leased(t, s, LeaseAlone, nil)
	for n := 0; n < 20; n++ {
		s.clock.awaits(t, testEvery)
		s.clock.advance(testEvery)
		until(t, "a renewal", func() bool { return s.made() == n+1 })
	}
	equal(t, l.isHeld(), true)
}

func TestARenewalThatFailsIsTriedAgainUntilBeliefEndsAndNotBeyond(t *testing.T) {
	s := newFakeStore()
	s.setAnswer(away)
	var failures atomic.Int32
	l, _ := leased(t, s, LeaseAlone, func(h *held, _ *Grant) { h.failed = func(error) { failures.Add(1) } })
	began := s.clock.now()
	for pause := testEvery; l.left() > 0; pause = longer(retryLeast, l.left()/retryPart) {
		pause = shorter(pause, l.left())
		s.clock.awaits(t, pause)
		made := s.made()
		s.clock.advance(pause)
		until(t, "a renewal, or the end", func() bool { return s.made() > made || !l.isHeld() })
	}
	received(t, l.ctx.Done())
	l.work.Wait()
	equal(t, s.clock.now()-began, believed)
	equal(t, l.isHeld(), false)
	if failures.Load() < 4 {
		t.Fatalf("%d failures were told", failures.Load())
	}
}

func TestOneRenewalThatComesThroughAfterFailuresIsEnough(t *testing.T) {
	s := newFakeStore()
	s.setAnswer(func(n int, asked renewal) (proof, error) {
		if n%3 == 0 {
			return s.proof(testTTL), nil
		}
		return away(n, asked)
	})
	l, _ := leased(t, s, LeaseAlone, nil)
	for s.made() < 30 {
		made := s.made()
		s.clock.next(t, testEvery)
		until(t, "a renewal", func() bool { return s.made() > made })
		equal(t, l.isHeld(), true)
	}
}

func TestLeaseLostEndsItAtOnce(t *testing.T) {
	s := newFakeStore()
	s.setAnswer(lostTo)
	l, _ := leased(t, s, LeaseAlone, nil)
	s.clock.awaits(t, testEvery)
	s.clock.advance(testEvery)
	received(t, l.ctx.Done())
	equal(t, l.isHeld(), false)
	equal(t, errors.Is(l.lostBecause(), ErrLeaseLost), true)
}

func TestARenewalHasTheTimeThatIsLeftAndLeavesSomeForASecondNode(t *testing.T) {
	s := newFakeStore()
	ttl := 1500 * time.Millisecond
	_, ok := leased(t, s, LeaseAlone, func(h *held, g *Grant) {
		h.ttl, h.renewEvery, g.expiresIn = ttl, 500*time.Millisecond, ttl
	})
	equal(t, ok, true)
	s.clock.awaits(t, 500*time.Millisecond)
	s.clock.advance(500 * time.Millisecond)
	until(t, "a renewal", func() bool { return s.made() == 1 })
	asked := s.renewals[0]
	equal(t, asked.patience, believable(ttl, ttl)-500*time.Millisecond)
	equal(t, asked.attempt*2 < asked.patience, true)
}

func TestNobodyBelievesAnyMoreWhenTheReleaseIsSent(t *testing.T) {
	s := newFakeStore()
	l, _ := leased(t, s, LeaseAlone, nil)
	s.onGone = func() { equal(t, l.isHeld(), false) }
	must(t, l.release(context.Background(), 0))
	equal(t, len(s.released), 1)
	equal(t, l.lostBecause(), ErrStopped)
}
