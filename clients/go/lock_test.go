package eldest

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestALockIsHeldRefusedWaitedForReleased(t *testing.T) {
	cluster, client := fakeOf(t, 2)
	first, err := client.Lock(ctx, "job", LockOptions{})
	must(t, err)
	other := another(t, cluster)
	_, err = other.Lock(ctx, "job", LockOptions{})
	equal(t, errors.Is(err, ErrHeld), true)
	var problem *Problem
	equal(t, errors.As(err, &problem), true)
	holder, token := problem.Holder()
	equal(t, holder.ID, first.InstanceID())
	equal(t, token, first.Token())
	got := make(chan *Lock)
	go func() {
		second, err := other.Lock(ctx, "job", LockOptions{Wait: patience})
		if err != nil {
			t.Error(err)
		}
		got <- second
	}()
	waitingFor(t, cluster, "job", 1)
	must(t, first.Release(ctx))
	received(t, first.Lost())
	equal(t, first.Err(), ErrStopped)
	second := received(t, got)
	equal(t, second.Held() && second.Token() > first.Token(), true)
	must(t, second.Release(ctx))
	must(t, second.Release(ctx))
	equal(t, cluster.role("job").holder, "")
}

func TestALockThatIsTakenAwayIsLost(t *testing.T) {
	_, client := fakeOf(t, 1)
	lock, err := client.Lock(ctx, "job", LockOptions{RenewEvery: time.Millisecond})
	must(t, err)
	working, cancel := lock.Context(ctx)
	defer cancel()
	_, err = client.Roles.Elect(ctx, "job", Asked{InstanceID: "somebody"})
	must(t, err)
	received(t, working.Done())
	equal(t, errors.Is(lock.Err(), ErrLeaseLost), true)
	equal(t, lock.Held(), false)
	late, cancelLate := lock.Context(ctx)
	defer cancelLate()
	equal(t, late.Err() != nil, true)
	must(t, lock.Release(ctx))
}

func TestTheConnectionIsOpenedBesideTheNodeThatAnswers(t *testing.T) {
	cluster, client := fakeOf(t, 2)
	lock, err := client.Lock(ctx, "job", LockOptions{})
	must(t, err)
	until(t, "a tie", func() bool { return len(cluster.asked("/tie")) == 1 })
	asked := cluster.asked("/tie")[0]
	equal(t, cluster.urls()[asked.node] != client.Node(), true)
	equal(t, []string{asked.query.Get("token"), asked.query.Get("grace_ms")}, []string{"1", "1000"})
	equal(t, asked.header.Get("Eldest-Secret") != "", true)
	cluster.cut(asked.node)
	until(t, "the next tie", func() bool { return len(cluster.asked("/tie")) == 2 })
	equal(t, lock.Held(), true)
	must(t, lock.Release(ctx))
	equal(t, cluster.role("job").holder, "")
}

func TestALockWhoseContextEndsWhileItWaitsIsNotHeld(t *testing.T) {
	cluster, client := fakeOf(t, 1)
	first, err := another(t, cluster).Lock(ctx, "job", LockOptions{})
	must(t, err)
	ending, end := context.WithCancel(ctx)
	over := make(chan error)
	go func() {
		_, err := client.Lock(ending, "job", LockOptions{Wait: patience})
		over <- err
	}()
	waitingFor(t, cluster, "job", 1)
	end()
	equal(t, errors.Is(received(t, over), context.Canceled), true)
	waitingFor(t, cluster, "job", 0)
	must(t, first.Release(ctx))
	equal(t, cluster.role("job").holder, "")
}

func TestALockWhoseAnswerIsLostIsGivenUp(t *testing.T) {
	cluster, client := fakeOf(t, 1, quick)
	cluster.setFault(func(c call) fault { return fault{cutAfter: c.verb == "acquire"} })
	_, err := client.Lock(ctx, "job", LockOptions{})
	equal(t, errors.Is(err, ErrIndeterminate), true)
	until(t, "its release", func() bool { return cluster.role("job").holder == "" })
}
