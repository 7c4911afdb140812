package eldest

import (
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"
)

func TestDocumentsCompareAndSwap(t *testing.T) {
	_, client := fakeOf(t, 2)
	written, err := client.Docs.Put(ctx, "a/b", map[string]int{"n": 1}, IfAbsent())
	must(t, err)
	found, err := client.Docs.Get(ctx, "a/b", "")
	must(t, err)
	equal(t, found, Document{Key: "a/b", Value: json.RawMessage(`{"n":1}`), Rev: written.Rev})
	next, err := client.Docs.Put(ctx, "a/b", nil, IfRev(written.Rev))
	must(t, err)
	_, err = client.Docs.Put(ctx, "a/b", 3, IfRev(written.Rev))
	var problem *Problem
	equal(t, errors.Is(err, ErrConflict) && errors.As(err, &problem), true)
	equal(t, problem.CurrentRev(), next.Rev)
	equal(t, errors.Is(client.Docs.Delete(ctx, "a/b", IfRev(written.Rev)), ErrConflict), true)
	must(t, client.Docs.Delete(ctx, "a/b", IfRev(next.Rev)))
	_, err = client.Docs.Get(ctx, "a/b", "")
	equal(t, errors.Is(err, ErrNotFound), true)
}

func TestNumbersKeepTheirDigits(t *testing.T) {
	_, client := fakeOf(t, 1)
	digits := `{"id":12345678901234567890,"share":0.10}`
	_, err := client.Docs.Put(ctx, "n", json.RawMessage(digits))
	must(t, err)
	found, err := client.Docs.Get(ctx, "n", "")
	must(t, err)
	equal(t, string(found.Value), digits)
	state := DocOf(client, "n", map[string]json.Number{})
	value, err := state.Update(ctx, func(now map[string]json.Number) (map[string]json.Number, error) {
		now["n"] = "1"
		return now, nil
	})
	must(t, err)
	equal(t, value, map[string]json.Number{"id": "12345678901234567890", "share": "0.10", "n": "1"})
}

func TestWhatADocumentEndsWithIsAskedFor(t *testing.T) {
	cluster, client := fakeOf(t, 1)
	_, err := client.Docs.Put(ctx, "a", 1, EndsAfter(time.Minute), EndsWithRole("r/1", 7))
	must(t, err)
	_, err = client.Docs.Put(ctx, "b", "<&>", EndsWithProcess("p"))
	must(t, err)
	calls := cluster.asked("")
	equal(t, calls[0].query.Encode(), "token=7&ttl_ms=60000&with=role%2Fr%2F1")
	equal(t, calls[1].query.Encode(), "with=process%2Fp")
	equal(t, string(calls[1].body), `"<&>"`)
	cluster.faults(fault{status: http.StatusOK, body: `{"key":"a","expires_in_ms":60000}`})
	left, err := client.Docs.Renew(ctx, "a")
	must(t, err)
	equal(t, left, time.Minute)
}

func TestWhoWasReplacedWritesNothing(t *testing.T) {
	cluster, client := fakeOf(t, 2)
	role := "jobs/é; 1"
	lock, err := client.Lock(ctx, role, LockOptions{HeldBy: LeaseAlone})
	must(t, err)
	inItsName := IfRole(role, lock.Token())
	state := DocOf(client, "state", []int{})
	add := func(n int) func([]int) ([]int, error) {
		return func(all []int) ([]int, error) { return append(all, n), nil }
	}
	_, err = state.Update(ctx, add(1), inItsName)
	must(t, err)
	equal(t, cluster.asked("/state")[1].header.Get("If-Role"), "jobs%2F%C3%A9%3B%201; token=1")
	_, rev, err := state.Get(ctx)
	must(t, err)
	latter, err := client.Roles.Elect(ctx, role, Asked{InstanceID: "b"})
	must(t, err)
	equal(t, lock.Held(), true)
	asked := len(cluster.asked("/state"))
	_, err = state.Put(ctx, []int{2}, rev, inItsName)
	var problem *Problem
	equal(t, errors.Is(err, ErrRoleNotHeld) && errors.As(err, &problem) && !problem.Retryable, true)
	equal(t, errors.Is(state.Delete(ctx, rev, inItsName), ErrRoleNotHeld), true)
	_, err = state.Update(ctx, add(3), inItsName)
	equal(t, errors.Is(err, ErrRoleNotHeld), true)
	// Each of the writes was sent once, and the update has read before.
	equal(t, len(cluster.asked("/state"))-asked, 4)
	all, err := state.Update(ctx, add(4), IfRole(role, latter.Token))
	must(t, err)
	equal(t, all, []int{1, 4})
	// No write is sent without a holder's name, and no renewal is sent with one.
	asked = len(cluster.asked("/state"))
	equal(t, errors.Is(client.Docs.Delete(ctx, "state", IfRole(role, 0)), ErrRoleNotHeld), true)
	equal(t, client.Docs.Delete(ctx, "state", IfRole("", 1)) != nil, true)
	_, err = client.Docs.Renew(ctx, "state", inItsName)
	equal(t, err != nil, true)
	equal(t, len(cluster.asked("/state")), asked)
	must(t, client.Docs.Delete(ctx, "state", IfRole(role, latter.Token)))
}

func TestWhoEndsADocumentWithALeaseShowsItsSecret(t *testing.T) {
	cluster, client := fakeOf(t, 1)
	grant, err := client.Roles.Acquire(ctx, "r", Asked{InstanceID: "a"})
	must(t, err)
	for _, options := range [][]WriteOption{
		{EndsWithRole("r", grant.Token)},
		{EndsWithProcess("p")},
		{LeaseSecret("its own"), EndsWithProcess("p")},
		{EndsAfter(time.Minute)},
	} {
		_, err = client.Docs.Put(ctx, "k", 1, options...)
		must(t, err)
	}
	var shown []string
	for _, call := range cluster.asked("") {
		shown = append(shown, call.header.Get("Eldest-Secret"))
	}
	own := shown[0]
	equal(t, own != "", true)
	equal(t, shown, []string{own, own, own, "its own", ""})
}

func TestAllOfAPrefixPageByPage(t *testing.T) {
	_, client := fakeOf(t, 1)
	for _, key := range []string{"p/1", "p/2", "p/3", "p/4", "p/5", "q"} {
		_, err := client.Docs.Put(ctx, key, key)
		must(t, err)
	}
	var keys []string
	must(t, client.Docs.All(ctx, "p/", func(d Document) error {
		var value string
		must(t, d.Decode(&value))
		keys = append(keys, value)
		return nil
	}))
	equal(t, keys, []string{"p/1", "p/2", "p/3", "p/4", "p/5"})
}

func TestChangesOfManyWritersAreAllThere(t *testing.T) {
	_, client := fakeOf(t, 2)
	state := DocOf(client, "state", []int{})
	var writers sync.WaitGroup
	for n := 0; n < 6; n++ {
		n := n
		writers.Add(1)
		go func() {
			defer writers.Done()
			if _, err := state.Update(ctx, func(all []int) ([]int, error) { return append(all, n), nil }); err != nil {
				t.Error(err)
			}
		}()
	}
	writers.Wait()
	all, rev, err := state.Get(ctx)
	must(t, err)
	equal(t, len(all), 6)
	kept, err := state.Update(ctx, func([]int) ([]int, error) { return nil, ErrKeep })
	must(t, err)
	equal(t, kept, all)
	must(t, state.Delete(ctx, rev))
	all, rev, err = state.Get(ctx)
	must(t, err)
	equal(t, len(all) == 0 && rev == "", true)
}

func TestACrowdIsAConflictAfter16Tries(t *testing.T) {
	cluster, client := fakeOf(t, 1)
	cluster.setFault(func(c call) fault {
		if c.method == http.MethodPut {
			return refusedBy(412, "precondition_failed")
		}
		return fault{}
	})
	tries := 0
	_, err := DocOf(client, "state", 0).Update(ctx, func(n int) (int, error) {
		tries++
		return n + 1, nil
	})
	equal(t, errors.Is(err, ErrConflict), true)
	equal(t, tries, triesMost)
}
