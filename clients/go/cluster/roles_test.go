//go:build cluster

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"eldest.dev/eldest"
)

func election(t *testing.T, at int, role string, options eldest.ElectionOptions) *eldest.Election {
	t.Helper()
	made, err := client(t, at).Election(role, options)
	must(t, err)
	t.Cleanup(func() { _ = made.Stop(ctx) })
	return made
}

func lock(t *testing.T, c *eldest.Client, role string, options eldest.LockOptions) *eldest.Lock {
	t.Helper()
	made, err := c.Lock(ctx, role, options)
	must(t, err)
	t.Cleanup(func() { _ = made.Release(ctx) })
	return made
}

func waiting(t *testing.T, role string, count int) {
	t.Helper()
	asking := client(t, 0)
	until(t, "somebody in line", func() bool {
		info, err := asking.Roles.Get(ctx, role, "")
		must(t, err)
		return info.Waiting == count
	})
}

func leads(t *testing.T, e *eldest.Election) uint64 {
	t.Helper()
	var token uint64
	until(t, "the leadership", func() bool {
		var leading bool
		token, leading = e.Token()
		return leading
	})
	return token
}

// leading waits until any of them leads: one that asks again stands behind those who waited.
func leading(t *testing.T, all []*eldest.Election) int {
	t.Helper()
	found := -1
	until(t, "a leader", func() bool {
		for at, one := range all {
			if one.IsLeader() {
				found = at
			}
		}
		return found >= 0
	})
	return found
}

func TestUncontested(t *testing.T) {
	role := unique("uncontested")
	first := election(t, 0, role, eldest.ElectionOptions{Address: "10.0.0.1:80", Metadata: map[string]int{"zone": 1}})
	must(t, first.Start(ctx))
	token := leads(t, first)
	held, err := client(t, 1).Roles.Get(ctx, role, "")
	must(t, err)
	equal(t, *held.Leader, eldest.Instance{ID: first.InstanceID(), Address: "10.0.0.1:80", Metadata: json.RawMessage(`{"zone":1}`)})
	equal(t, held.Token, token)
	valid, err := client(t, 2).Roles.Check(ctx, role, token)
	must(t, err)
	equal(t, valid, true)
	must(t, first.Stop(ctx))
	valid, err = client(t, 2).Roles.Check(ctx, role, token)
	must(t, err)
	equal(t, valid, false)
}

func TestContentionOneLeadsAtATimeAndStopHandsOver(t *testing.T) {
	role := unique("contention")
	all := []*eldest.Election{}
	for at := 0; at < 3; at++ {
		// Within this test no lease and no connection ends by itself: only the release hands over.
		all = append(all, election(t, at, role, eldest.ElectionOptions{TTL: time.Hour, HeldBy: eldest.LeaseAlone}))
		must(t, all[at].Start(ctx))
	}
	last := uint64(0)
	for left := all; len(left) > 0; {
		at := leading(t, left)
		holder := left[at]
		token := leads(t, holder)
		equal(t, token > last, true)
		last = token
		for _, other := range all {
			equal(t, other.IsLeader(), other == holder)
		}
		left = append(append([]*eldest.Election(nil), left[:at]...), left[at+1:]...)
		waiting(t, role, len(left))
		must(t, holder.Stop(ctx))
	}
}

func TestPriorityDecidesWhoIsNext(t *testing.T) {
	role := unique("priority")
	first := lock(t, client(t, 0), role, eldest.LockOptions{})
	// Neither leaves the waiter queue to ask again within this test.
	low := election(t, 1, role, eldest.ElectionOptions{CheckEvery: 30 * time.Second})
	high := election(t, 2, role, eldest.ElectionOptions{CheckEvery: 30 * time.Second, Priority: 7})
	must(t, low.Start(ctx))
	waiting(t, role, 1)
	must(t, high.Start(ctx))
	waiting(t, role, 2)
	must(t, first.Release(ctx))
	leads(t, high)
	equal(t, low.IsLeader(), false)
}

func TestWhoIsReplacedLearnsByItsRenewal(t *testing.T) {
	role := unique("replaced")
	options := eldest.ElectionOptions{TTL: time.Hour, RenewEvery: 100 * time.Millisecond, NoFeed: true, HeldBy: eldest.LeaseAlone}
	replaced := election(t, 0, role, options)
	must(t, replaced.Start(ctx))
	leads(t, replaced)
	_, err := client(t, 1).Roles.Elect(ctx, role, eldest.Asked{InstanceID: "somebody", TTL: time.Minute})
	must(t, err)
	until(t, "the other one", func() bool { return !replaced.IsLeader() && replaced.Leader() == "somebody" })
}

func TestWhoIsNamedByAnOperatorLeads(t *testing.T) {
	role := unique("elect")
	first, second := election(t, 0, role, eldest.ElectionOptions{}), election(t, 1, role, eldest.ElectionOptions{})
	must(t, first.Start(ctx))
	must(t, second.Start(ctx))
	waiting(t, role, 1)
	_, err := client(t, 2).Roles.Elect(ctx, role, eldest.Asked{InstanceID: second.InstanceID()})
	must(t, err)
	leads(t, second)
	equal(t, first.IsLeader(), false)
}

func TestALeaseThatIsNotRenewedLapses(t *testing.T) {
	role := unique("lapse")
	gone := client(t, 0)
	grant, err := gone.Roles.Acquire(ctx, role, eldest.Asked{InstanceID: "gone", TTL: 5 * time.Second})
	must(t, err)
	next := election(t, 1, role, eldest.ElectionOptions{})
	must(t, next.Start(ctx))
	equal(t, leads(t, next) > grant.Token, true)
	_, err = gone.Roles.Renew(ctx, role, "gone", grant.Token, 0)
	equal(t, errors.Is(err, eldest.ErrLeaseLost), true)
}

func TestALockHeldWaitedForReleased(t *testing.T) {
	role := unique("lock")
	first := lock(t, client(t, 0), role, eldest.LockOptions{})
	_, err := client(t, 1).Lock(ctx, role, eldest.LockOptions{})
	var problem *eldest.Problem
	equal(t, errors.Is(err, eldest.ErrHeld) && errors.As(err, &problem), true)
	_, token := problem.Holder()
	equal(t, token, first.Token())
	got := make(chan *eldest.Lock, 1)
	other := client(t, 2)
	go func() {
		second, err := other.Lock(ctx, role, eldest.LockOptions{Wait: 30 * time.Second})
		if err != nil {
			t.Error(err)
		}
		got <- second
	}()
	waiting(t, role, 1)
	must(t, first.Release(ctx))
	second := <-got
	equal(t, second.Held() && second.Token() > first.Token(), true)
	must(t, second.Release(ctx))
}

func TestNobodyElseSpeaksForAHolder(t *testing.T) {
	role := unique("secret")
	held := lock(t, client(t, 0), role, eldest.LockOptions{})
	err := client(t, 0).Roles.Release(ctx, role, held.InstanceID(), held.Token())
	equal(t, errors.Is(err, eldest.ErrForbidden), true)
}

func TestTheWayToANodeIsCutAndTheLeaderLeadsByAnotherOne(t *testing.T) {
	role := unique("cut")
	way := wayTo(t, nodes[0])
	cut := clientOf(t, []string{way.url, nodes[1], nodes[2]})
	held := lock(t, cut, role, eldest.LockOptions{TTL: time.Minute, RenewEvery: 100 * time.Millisecond})
	way.cut()
	asking, last := client(t, 1), 0.0
	until(t, "a renewal", func() bool {
		info, err := asking.Roles.Get(ctx, role, "")
		must(t, err)
		left, _ := info.ExpiresInMs.Float64()
		before := last
		last = left
		return before > 0 && left > before
	})
	equal(t, held.Held(), true)
}

func TestAnAcquireWhoseAnswerIsLostIsMadeOnce(t *testing.T) {
	role := unique("lost")
	way := wayTo(t, nodes[0])
	way.swallow = true
	through := clientOf(t, []string{way.url, nodes[1], nodes[2]})
	grant, err := through.Roles.Acquire(ctx, role, eldest.Asked{InstanceID: "a"})
	must(t, err)
	info, err := client(t, 1).Roles.Get(ctx, role, "")
	must(t, err)
	equal(t, info.Token, grant.Token)
	must(t, through.Roles.Release(ctx, role, "a", grant.Token))
}

func TestALockWhoseContextEndsWhileItWaitsIsNobodys(t *testing.T) {
	role := unique("given-up")
	first := lock(t, client(t, 0), role, eldest.LockOptions{})
	ending, end := context.WithCancel(ctx)
	over := make(chan error, 1)
	other := client(t, 1)
	go func() {
		_, err := other.Lock(ending, role, eldest.LockOptions{Wait: 30 * time.Second})
		over <- err
	}()
	waiting(t, role, 1)
	end()
	equal(t, errors.Is(<-over, context.Canceled), true)
	must(t, first.Release(ctx))
	last := lock(t, client(t, 2), role, eldest.LockOptions{Wait: 30 * time.Second})
	equal(t, last.Held(), true)
}

func TestWhoWasReplacedAndBelievesThatItLeadsChangesNoState(t *testing.T) {
	role := unique("replaced")
	// It renews once in half an hour, like a process that stands still.
	still := eldest.LockOptions{TTL: time.Hour, RenewEvery: 30 * time.Minute, HeldBy: eldest.LeaseAlone}
	first := lock(t, client(t, 0), role, still)
	state := eldest.DocOf(client(t, 0), unique("state"), []int{})
	add := func(n int) func([]int) ([]int, error) {
		return func(all []int) ([]int, error) { return append(all, n), nil }
	}
	_, err := state.Update(ctx, add(1), eldest.IfRole(role, first.Token()))
	must(t, err)
	_, rev, err := state.Get(ctx)
	must(t, err)
	second, err := client(t, 1).Roles.Elect(ctx, role, eldest.Asked{InstanceID: "b", TTL: time.Hour})
	must(t, err)
	equal(t, first.Held(), true)
	_, err = state.Put(ctx, []int{2}, rev, eldest.IfRole(role, first.Token()))
	equal(t, errors.Is(err, eldest.ErrRoleNotHeld), true)
	all, err := state.Update(ctx, add(3), eldest.IfRole(role, second.Token))
	must(t, err)
	equal(t, all, []int{1, 3})
}
