package eldest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

const (
	testTTL   = 10 * time.Second
	testEvery = 3 * time.Second
)

var errAway = &Unavailable{Call: "POST", Cause: errors.New("away")}

// fakeStore is a store of one lease; a test decides how each renewal and each tie ends.
type fakeStore struct {
	clock *manualClock

	mu       sync.Mutex
	renewals []renewal
	ties     []*fakeTie
	opened   int
	released []uint64
	answer   func(n int, asked renewal) (proof, error)
	open     func() error
	onGone   func()
}

func newFakeStore() *fakeStore {
	s := &fakeStore{clock: newManualClock()}
	s.answer = func(int, renewal) (proof, error) { return s.proof(testTTL), nil }
	return s
}

func (s *fakeStore) proof(expiresIn time.Duration) proof {
	return proof{sentAt: s.clock.now(), expiresIn: expiresIn}
}

func (s *fakeStore) time() clock { return s.clock }

func (s *fakeStore) acquire(context.Context, string, Asked) (Grant, error) {
	return Grant{Token: 7, proof: s.proof(testTTL)}, nil
}

func (s *fakeStore) holder(context.Context, string, time.Duration) (string, uint64, error) {
	return "", 0, nil
}

func (s *fakeStore) watch(context.Context, string, func(), func(error)) watching { return nil }

func (s *fakeStore) renew(_ context.Context, _ string, asked renewal) (proof, error) {
	s.mu.Lock()
	s.renewals = append(s.renewals, asked)
	n, answer := len(s.renewals), s.answer
	s.mu.Unlock()
	return answer(n, asked)
}

func (s *fakeStore) release(_ context.Context, _, _ string, token uint64, _ time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.released = append(s.released, token)
	if s.onGone != nil {
		s.onGone()
	}
	return nil
}

func (s *fakeStore) setAnswer(answer func(int, renewal) (proof, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// numbers returns the ties that renewals have named.
func (s *fakeStore) numbers() (named []uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, asked := range s.renewals {
		named = append(named, asked.tie)
	}
	return named
}

func (s *fakeStore) made() int { return len(s.numbers()) }

func (s *fakeStore) tied() []*fakeTie {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*fakeTie(nil), s.ties...)
}

func (s *fakeStore) tie(_ context.Context, _ string, asked tieing) (tied, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	if s.open != nil {
		if err := s.open(); err != nil {
			return nil, err
		}
	}
	tie := &fakeTie{asked: asked, events: make(chan tieEvent, 8), ended: make(chan struct{})}
	tie.events <- tieEvent{kind: "tied", proof: s.proof(testTTL)}
	s.ties = append(s.ties, tie)
	return tie, nil
}

// fakeTie breaks when its events are closed.
type fakeTie struct {
	asked  tieing
	events chan tieEvent
	ended  chan struct{}
}

func (f *fakeTie) next(ctx context.Context) (tieEvent, error) {
	select {
	case event, ok := <-f.events:
		if !ok {
			return event, errBroken
		}
		return event, nil
	case <-ctx.Done():
		return tieEvent{}, ctx.Err()
	}
}

func (f *fakeTie) end() { close(f.ended) }

func (f *fakeTie) isOpen() bool {
	select {
	case <-f.ended:
		return false
	default:
		return true
	}
}

// leased begins a lease on the store.
func leased(t *testing.T, s *fakeStore, by HeldBy, change func(*held, *Grant)) (*lease, bool) {
	t.Helper()
	h := held{role: "r", instanceID: "a", ttl: testTTL, renewEvery: testEvery, by: by}
	grant := Grant{Token: 7, proof: s.proof(testTTL)}
	if change != nil {
		change(&h, &grant)
	}
	l := newLease(s, h, grant.Token)
	t.Cleanup(func() {
		l.end(ErrStopped)
		l.work.Wait()
	})
	return l, l.begin(context.Background(), grant)
}
