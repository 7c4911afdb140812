package eldest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

func TestLeadCallsTheWorkAndGivesTheRoleUpWhenItReturns(t *testing.T) {
	cluster, client := fakeOf(t, 1)
	failure := errors.New("no paper")
	err := client.Lead(ctx, "job", ElectionOptions{}, func(_ context.Context, token uint64) error {
		equal(t, token, uint64(1))
		equal(t, cluster.role("job").token, 1)
		return failure
	})
	equal(t, err, failure)
	equal(t, cluster.role("job").holder, "")
}

func TestLeadEndsTheWorkWithTheLeadershipAndStandsAgain(t *testing.T) {
	_, client := fakeOf(t, 1)
	runs := 0
	err := client.Lead(ctx, "job", ElectionOptions{}, func(working context.Context, token uint64) error {
		runs++
		if runs == 2 {
			return nil
		}
		operator, err := client.Roles.Elect(ctx, "job", Asked{InstanceID: "somebody"})
		must(t, err)
		received(t, working.Done())
		must(t, client.Roles.Release(ctx, "job", "somebody", operator.Token))
		return working.Err()
	})
	must(t, err)
	equal(t, runs, 2)
}

func TestLeadKeepsTheRoleUntilTheWorkHasReturned(t *testing.T) {
	cluster, client := fakeOf(t, 1)
	other := another(t, cluster)
	ending, end := context.WithCancel(ctx)
	var returned atomic.Bool
	err := client.Lead(ending, "job", ElectionOptions{}, func(working context.Context, _ uint64) error {
		end()
		received(t, working.Done())
		// This is enough time to see a role that was given back too soon.
		for until := time.Now().Add(300 * time.Millisecond); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
			if _, err := other.Lock(ctx, "job", LockOptions{}); !errors.Is(err, ErrHeld) {
				t.Errorf("another one was told %v", err)
				break
			}
		}
		returned.Store(true)
		return working.Err()
	})
	equal(t, returned.Load(), true)
	equal(t, errors.Is(err, context.Canceled), true)
	equal(t, cluster.role("job").holder, "")
}

func TestLeadOfAFollowerEndsWithItsContext(t *testing.T) {
	cluster, client := fakeOf(t, 1)
	lock, err := another(t, cluster).Lock(ctx, "job", LockOptions{})
	must(t, err)
	ending, end := context.WithCancel(ctx)
	over := make(chan error)
	go func() {
		over <- client.Lead(ending, "job", ElectionOptions{}, func(context.Context, uint64) error {
			t.Error("it ran")
			return nil
		})
	}()
	waitingFor(t, cluster, "job", 1)
	end()
	equal(t, errors.Is(received(t, over), context.Canceled), true)
	must(t, lock.Release(ctx))
}
