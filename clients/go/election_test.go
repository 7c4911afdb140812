package eldest

import (
	"context"
	"errors"
	"testing"
	"time"
)

// telling is an election and the events it has reported; it ends with the test.
type telling struct {
	*Election
	told <-chan ElectionEvent
	all  []ElectionKind
}

func standing(t *testing.T, client *Client, role string, options ElectionOptions) *telling {
	t.Helper()
	election, err := client.Election(role, options)
	must(t, err)
	told, end := election.Events()
	t.Cleanup(func() {
		_ = election.Stop(ctx)
		end()
	})
	return &telling{Election: election, told: told}
}

// await reads events up to the next one of this kind.
func (e *telling) await(t *testing.T, kind ElectionKind) ElectionEvent {
	t.Helper()
	for late := time.After(patience); ; {
		select {
		case event := <-e.told:
			e.all = append(e.all, event.Kind)
			if event.Kind == kind {
				return event
			}
		case <-late:
			t.Fatalf("%s was not told, but %v", kind, e.all)
		}
	}
}

func another(t *testing.T, cluster *fakeCluster) *Client {
	t.Helper()
	client, err := New(cluster.urls())
	must(t, err)
	t.Cleanup(client.Close)
	return client
}

func (c *fakeCluster) role(name string) fakeRole {
	c.state.mu.Lock()
	defer c.state.mu.Unlock()
	if role := c.state.roles[name]; role != nil {
		return *role
	}
	return fakeRole{}
}

func waitingFor(t *testing.T, cluster *fakeCluster, role string, count int) {
	t.Helper()
	until(t, "somebody in line", func() bool { return len(cluster.role(role).line) == count })
}

func TestUncontestedTheRoleATokenTheEvents(t *testing.T) {
	cluster, client := fakeOf(t, 2)
	election := standing(t, client, "job", ElectionOptions{NoFeed: true})
	must(t, election.Start(ctx))
	token, leads := election.Token()
	equal(t, leads && election.IsLeader(), true)
	equal(t, token, uint64(1))
	equal(t, election.Leader(), election.InstanceID())
	equal(t, election.await(t, ElectionCompleted).Won, true)
	equal(t, election.all, []ElectionKind{ElectionStarted, LeaderAcquired, NewLeader, ElectionCompleted})
	ending, cancel, _ := election.Context(ctx)
	defer cancel()
	must(t, election.Stop(ctx))
	received(t, ending.Done())
	election.await(t, LeaderLost)
	equal(t, election.IsLeader(), false)
	equal(t, cluster.role("job").holder, "")
	must(t, election.Start(ctx))
	equal(t, election.IsLeader(), true)
}

func TestAFollowerIsNextTheMomentThatTheRoleIsFree(t *testing.T) {
	cluster, client := fakeOf(t, 1)
	first := standing(t, client, "job", ElectionOptions{})
	second := standing(t, another(t, cluster), "job", ElectionOptions{})
	must(t, first.Start(ctx))
	must(t, second.Start(ctx))
	equal(t, second.IsLeader(), false)
	equal(t, second.Leader(), first.InstanceID())
	waitingFor(t, cluster, "job", 1)
	before, _ := first.Token()
	must(t, first.Stop(ctx))
	equal(t, second.await(t, LeaderAcquired).Token > before, true)
	equal(t, second.IsLeader(), true)
}

func TestAGrantThatWasWaitedForIsProvedByARenewal(t *testing.T) {
	cluster, client := fakeOf(t, 1)
	lock, err := another(t, cluster).Lock(ctx, "job", LockOptions{})
	must(t, err)
	election := standing(t, client, "job", ElectionOptions{NoFeed: true, HeldBy: LeaseAlone})
	must(t, election.Start(ctx))
	waitingFor(t, cluster, "job", 1)
	must(t, lock.Release(ctx))
	election.await(t, LeaderAcquired)
	equal(t, len(cluster.asked("/renew")), 1)
}

func TestWhoIsReplacedHearsOfItByTheFeed(t *testing.T) {
	cluster, client := fakeOf(t, 1)
	// No renewal is due within this test.
	election := standing(t, client, "job", ElectionOptions{TTL: time.Hour, RenewEvery: 20 * time.Minute, HeldBy: LeaseAlone})
	must(t, election.Start(ctx))
	election.await(t, SubscribeStarted)
	_, err := client.Roles.Elect(ctx, "job", Asked{InstanceID: "somebody"})
	must(t, err)
	election.await(t, LeaderLost)
	equal(t, election.IsLeader(), false)
	until(t, "the other one", func() bool { return election.Leader() == "somebody" })
	equal(t, cluster.role("job").holder, "somebody")
}

func TestWhoIsNamedByAnOperatorWhileItWaitsLeads(t *testing.T) {
	cluster, client := fakeOf(t, 1)
	lock, err := another(t, cluster).Lock(ctx, "job", LockOptions{HeldBy: LeaseAlone})
	must(t, err)
	election := standing(t, client, "job", ElectionOptions{})
	must(t, election.Start(ctx))
	waitingFor(t, cluster, "job", 1)
	_, err = client.Roles.Elect(ctx, "job", Asked{InstanceID: election.InstanceID()})
	must(t, err)
	election.await(t, LeaderAcquired)
	must(t, lock.Release(ctx))
}

func TestStopWhileAnAcquireWaitsLeavesNothingHeld(t *testing.T) {
	cluster, client := fakeOf(t, 1)
	lock, err := another(t, cluster).Lock(ctx, "job", LockOptions{})
	must(t, err)
	election := standing(t, client, "job", ElectionOptions{NoFeed: true})
	must(t, election.Start(ctx))
	waitingFor(t, cluster, "job", 1)
	must(t, election.Stop(ctx))
	waitingFor(t, cluster, "job", 0)
	must(t, lock.Release(ctx))
	equal(t, cluster.role("job").holder, "")
}

func TestAnAcquireWhoseAnswerIsLostIsReleasedAtTheEnd(t *testing.T) {
	cluster, client := fakeOf(t, 1, quick)
	cluster.setFault(func(c call) fault { return fault{cutAfter: c.verb == "acquire"} })
	election := standing(t, client, "job", ElectionOptions{NoFeed: true})
	won, err := election.TryOnce(ctx, 0)
	must(t, err)
	equal(t, won, false)
	equal(t, errors.Is(election.LastError(), ErrIndeterminate), true)
	equal(t, cluster.role("job").holder, election.InstanceID())
	must(t, election.Stop(ctx))
	equal(t, cluster.role("job").holder, "")
}

// distantStore goes on with a call whose caller has gone.
type distantStore struct {
	*fakeStore
	asked, arrives chan struct{}
	granted        chan string
}

func newDistantStore() *distantStore {
	return &distantStore{newFakeStore(), make(chan struct{}), make(chan struct{}), make(chan string, 1)}
}

func (s *distantStore) acquire(ctx context.Context, role string, asked Asked) (Grant, error) {
	answered := make(chan struct{})
	go func() {
		<-s.arrives
		s.granted <- asked.InstanceID
		close(answered)
	}()
	close(s.asked)
	select {
	case <-answered:
		return s.fakeStore.acquire(ctx, role, asked)
	case <-ctx.Done():
		return Grant{}, ctx.Err()
	}
}

func (s *distantStore) holder(context.Context, string, time.Duration) (string, uint64, error) {
	select {
	case id := <-s.granted:
		return id, 7, nil
	default:
		return "", 0, nil
	}
}

func (s *distantStore) starting(t *testing.T) *Election {
	t.Helper()
	election, err := electionOf(s, "job", ElectionOptions{NoFeed: true, HeldBy: LeaseAlone})
	must(t, err)
	go func() { _ = election.Start(ctx) }()
	received(t, s.asked)
	return election
}

func stoppingOf(t *testing.T, election *Election) <-chan error {
	t.Helper()
	over := make(chan error, 1)
	go func() { over <- election.Stop(ctx) }()
	until(t, "the stop", func() bool { return election.ctx.Err() != nil })
	return over
}

func TestAGrantThatComesAfterItsCallerHasGoneIsGivenBack(t *testing.T) {
	store := newDistantStore()
	over := stoppingOf(t, store.starting(t))
	close(store.arrives)
	must(t, received(t, over))
	equal(t, store.released, []uint64{7})
}

func TestAStopDoesNotWaitForAnAnswerThatNeverComes(t *testing.T) {
	store := newDistantStore()
	over := stoppingOf(t, store.starting(t))
	store.clock.awaits(t, answerMost)
	store.clock.advance(answerMost)
	must(t, received(t, over))
	equal(t, len(store.released), 0)
	close(store.arrives)
}

func TestWhileTheClusterIsAwayItGoesOnTrying(t *testing.T) {
	cluster, client := fakeOf(t, 1, quick)
	cluster.setFault(func(call) fault { return refusedBy(503, "no_leader") })
	election := standing(t, client, "job", ElectionOptions{NoFeed: true})
	must(t, election.Start(ctx))
	equal(t, errors.Is(election.await(t, Failed).Err, ErrUnavailable), true)
	cluster.setFault(func(call) fault { return fault{} })
	election.await(t, LeaderAcquired)
}

func TestWhatTryingAgainWouldNotHelpIsToldByStart(t *testing.T) {
	cluster, client := fakeOf(t, 1)
	cluster.setFault(func(call) fault { return refusedBy(400, "bad_field") })
	election := standing(t, client, "job", ElectionOptions{})
	var problem *Problem
	equal(t, errors.As(election.Start(ctx), &problem), true)
	equal(t, problem.Code, "bad_field")
	_, err := client.Election("job", ElectionOptions{TTL: time.Second, RenewEvery: time.Second})
	equal(t, err != nil, true)
	_, err = client.Election("..", ElectionOptions{})
	equal(t, err != nil, true)
}

func TestAStartWhoseContextEndsIsOver(t *testing.T) {
	cluster, client := fakeOf(t, 1)
	ending, end := context.WithCancel(ctx)
	cluster.setFault(func(c call) fault {
		if c.verb == "acquire" {
			end()
		}
		return fault{silent: c.verb == "acquire"}
	})
	election := standing(t, client, "job", ElectionOptions{NoFeed: true})
	equal(t, errors.Is(election.Start(ending), context.Canceled), true)
	equal(t, election.IsLeader(), false)
}

func TestAListenerThatIsTooSlowIsToldWhatItMissed(t *testing.T) {
	var heard listeners
	told, end := heard.add()
	for n := 0; n < eventsMost+10; n++ {
		heard.tell(ElectionEvent{Kind: NewLeader})
	}
	for n := 0; n < eventsMost-1; n++ {
		equal(t, received(t, told).Kind, NewLeader)
	}
	heard.tell(ElectionEvent{Kind: LeaderLost})
	equal(t, received(t, told), ElectionEvent{Kind: Missed, Number: 11})
	equal(t, received(t, told).Kind, LeaderLost)
	end()
	end()
	select {
	case event, open := <-told:
		equal(t, open, false)
		equal(t, event, ElectionEvent{})
	case <-time.After(patience):
		t.Error("the channel of a listener that has left stays open")
	}
}
