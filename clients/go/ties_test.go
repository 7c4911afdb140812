package eldest

import (
	"errors"
	"testing"
	"time"
)

// tiedLease returns a lease whose first connection is open.
func tiedLease(t *testing.T) (*fakeStore, *lease, *fakeTie) {
	t.Helper()
	s := newFakeStore()
	l, ok := leased(t, s, Connection, nil)
	equal(t, ok, true)
	until(t, "a tie", func() bool { return len(s.tied()) == 1 })
	tie := s.tied()[0]
	until(t, "its first event to be taken", func() bool { return len(tie.events) == 0 })
	s.clock.awaits(t, testEvery)
	return s, l, tie
}

func TestRenewalsNameTheConnectionThatIsOpen(t *testing.T) {
	s, _, tie := tiedLease(t)
	equal(t, tie.asked.grace, time.Second)
	s.clock.advance(testEvery)
	until(t, "a renewal", func() bool { return s.made() == 1 })
	equal(t, s.numbers()[0], tie.asked.number)
}

func TestAConnectionThatBreaksTheNextNumberIsProvedAtOnceThenTheNextOpened(t *testing.T) {
	s, l, first := tiedLease(t)
	close(first.events)
	until(t, "a renewal", func() bool { return s.made() == 1 })
	equal(t, s.numbers()[0], first.asked.number+1)
	received(t, first.ended)
	equal(t, l.isHeld(), true)
	equal(t, l.left() > believed-100*time.Millisecond, true)
	for len(s.tied()) < 2 {
		s.clock.next(t, 200*time.Millisecond)
		until(t, "the next tie", func() bool { return len(s.tied()) == 2 })
	}
	equal(t, s.tied()[1].asked.number, first.asked.number+1)
}

func TestWithoutAProofAfterABreakHalfOfTheGraceIsBelieved(t *testing.T) {
	s, l, tie := tiedLease(t)
	s.setAnswer(away)
	close(tie.events)
	until(t, "a renewal", func() bool { return s.made() > 0 })
	equal(t, l.left(), grace(testTTL)/2)
	equal(t, tie.isOpen(), true)
	s.clock.skip(grace(testTTL)/2 - 1)
	equal(t, l.isHeld(), true)
	s.clock.skip(1)
	equal(t, l.isHeld(), false)
	s.clock.advance(0)
	received(t, l.ctx.Done())
	l.work.Wait()
	equal(t, len(s.tied()), 1)
}

func TestANodeThatIsAboutToEndLetsGo(t *testing.T) {
	s, l, tie := tiedLease(t)
	s.setAnswer(away)
	tie.events <- tieEvent{kind: "stopping"}
	close(tie.events)
	until(t, "a renewal", func() bool { return s.made() > 0 })
	equal(t, l.left(), believed)
	s.clock.skip(grace(testTTL) * 2)
	equal(t, l.isHeld(), true)
}

func TestANewLeaderIsToldAtOnce(t *testing.T) {
	s, _, tie := tiedLease(t)
	tie.events <- tieEvent{kind: "renew"}
	until(t, "a renewal", func() bool { return s.made() == 1 })
	equal(t, s.numbers()[0], tie.asked.number)
}

func TestAProofOfAnOlderNumberProvesNothing(t *testing.T) {
	s := newFakeStore()
	l, _ := leased(t, s, LeaseAlone, nil)
	old := l.number()
	l.goOn(true)
	left := l.left()
	l.believe(s.proof(testTTL), old)
	equal(t, l.left(), left)
	l.believe(proof{sentAt: s.clock.now() - 1, expiresIn: testTTL}, old+1)
	equal(t, l.left(), left)
	l.believe(s.proof(testTTL), old+1)
	equal(t, l.left(), believed)
}

func TestWithoutSuchARouteOrOfALeaseThatIsLostTheLeaseAloneCounts(t *testing.T) {
	for _, code := range []string{"not_found", "lease_lost"} {
		s := newFakeStore()
		s.open = func() error { return neverOpen{&Problem{Status: 404, Code: code}} }
		l, _ := leased(t, s, Connection, nil)
		s.clock.awaits(t, testEvery)
		until(t, "a try", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.opened == 1
		})
		s.clock.advance(testEvery)
		until(t, "a renewal", func() bool { return s.made() == 1 })
		equal(t, l.isHeld(), true)
		equal(t, s.opened, 1)
	}
}

func TestAConnectionThatWasSurelyNotMadeLeavesNoDoubt(t *testing.T) {
	s := newFakeStore()
	s.open = func() error { return neverOpen{errors.New("refused")} }
	l, _ := leased(t, s, Connection, nil)
	for tries := 2; tries < 5; tries++ {
		// Pauses of ties are shorter than a renewal's: this test does not wait for a renewal.
		s.clock.next(t, time.Second)
		until(t, "a try", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.opened == tries
		})
	}
	equal(t, s.made(), 0)
	equal(t, l.left() > believed-testEvery, true)
}
