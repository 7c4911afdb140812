package eldest

import (
	"errors"
	"testing"
	"time"
)

func TestAGrantThatWasAskedForTwiceCountsFromTheFirstTime(t *testing.T) {
	cluster, client := fakeOf(t, 2, quick)
	began := client.transport.clock.now()
	cluster.faults(fault{cutAfter: true})
	grant, err := client.Roles.Acquire(ctx, "job", Asked{InstanceID: "a"})
	must(t, err)
	equal(t, grant.Already, true)
	equal(t, grant.sentAt, began)
	equal(t, client.transport.clock.now() > began, true)
}

func TestARenewalCountsFromTheAttemptThatWasAnswered(t *testing.T) {
	cluster, client := fakeOf(t, 2, quick)
	grant, err := client.Roles.Acquire(ctx, "job", Asked{InstanceID: "a"})
	must(t, err)
	began := client.transport.clock.now()
	cluster.faults(fault{cutAfter: true})
	proof, err := client.Roles.renew(ctx, "job", renewal{instanceID: "a", token: grant.Token, ttl: time.Minute})
	must(t, err)
	equal(t, proof.sentAt > began, true)
	equal(t, proof.sentAt, client.transport.clock.now())
}

func TestAReleaseThatIsRepeatedAfterAnUnknownOutcomeHasHappened(t *testing.T) {
	cluster, client := fakeOf(t, 2)
	grant, err := client.Roles.Acquire(ctx, "job", Asked{InstanceID: "a"})
	must(t, err)
	cluster.faults(fault{cutAfter: true})
	must(t, client.Roles.Release(ctx, "job", "a", grant.Token))
	equal(t, len(cluster.asked("/release")), 2)
	equal(t, errors.Is(client.Roles.Release(ctx, "job", "a", grant.Token), ErrLeaseLost), true)
}

func TestRolesAreReadAndChecked(t *testing.T) {
	_, client := fakeOf(t, 1)
	info, err := client.Roles.Get(ctx, "job", "")
	must(t, err)
	equal(t, info.Leader == nil && info.Token == 0, true)
	grant, err := client.Roles.Acquire(ctx, "job", Asked{InstanceID: "a"})
	must(t, err)
	info, err = client.Roles.Get(ctx, "job", Linear)
	must(t, err)
	equal(t, info.Leader.ID, "a")
	for token, valid := range map[uint64]bool{grant.Token: true, grant.Token + 1: false} {
		said, err := client.Roles.Check(ctx, "job", token)
		must(t, err)
		equal(t, said, valid)
	}
}
