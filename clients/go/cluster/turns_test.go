//go:build cluster

package cluster

import (
	"fmt"
	"testing"

	"eldest.dev/eldest"
)

// In each turn the holder changes and the leading node is killed: the holder goes on under its token, the feed misses
// nothing and repeats nothing, and at no time do two processes believe that they hold the role.
func TestTurnsWhileTheLeadingNodeIsKilled(t *testing.T) {
	role := unique("turns")
	feed := feedOf(t, client(t, 2), role+"/")
	var all []*eldest.Election
	for at := 0; at < 3; at++ {
		all = append(all, election(t, at, role, eldest.ElectionOptions{}))
		must(t, all[at].Start(ctx))
	}
	left := all
	for turn := 0; turn < 3; turn++ {
		at := leading(t, left)
		holder := left[at]
		left = append(append([]*eldest.Election(nil), left[:at]...), left[at+1:]...)
		token := leads(t, holder)
		onlyOne(t, all)
		killed := killLeader(t)
		_, err := client(t, turn).Docs.Put(ctx, fmt.Sprint(role, "/", turn), token)
		must(t, err)
		valid, err := client(t, turn).Roles.Check(ctx, role, token)
		must(t, err)
		equal(t, valid, true)
		still, believes := holder.Token()
		equal(t, believes && still == token, true)
		equal(t, string(next(t, feed).Value), fmt.Sprint(token))
		typed(t, "start %d", killed)
		ready(t, killed)
		waiting(t, role, 2-turn)
		must(t, holder.Stop(ctx))
		onlyOne(t, all)
	}
}

func onlyOne(t *testing.T, all []*eldest.Election) {
	t.Helper()
	believing := 0
	for _, one := range all {
		if one.IsLeader() {
			believing++
		}
	}
	if believing > 1 {
		t.Fatalf("%d believe that they lead", believing)
	}
}

// killLeader waits until another node leads.
func killLeader(t *testing.T) uint64 {
	t.Helper()
	before, err := client(t, 0).Status(ctx)
	must(t, err)
	killed := before.Leader.ID
	typed(t, "kill %d", killed)
	asking := client(t, int(killed))
	until(t, "another leader", func() bool {
		now, err := asking.Status(ctx)
		return err == nil && now.Leader != nil && now.Leader.ID != killed
	})
	return killed
}

func ready(t *testing.T, id uint64) {
	t.Helper()
	asking := clientOf(t, []string{nodes[id-1]})
	until(t, "the node that was killed", func() bool {
		_, _, err := asking.Docs.List(ctx, eldest.Page{Limit: 1})
		return err == nil
	})
}
