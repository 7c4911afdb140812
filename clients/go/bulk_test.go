package eldest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func commandsOf(names ...string) (commands []Command) {
	for _, name := range names {
		commands = append(commands, Command{Name: name, Payload: map[string]any{}})
	}
	return commands
}

func TestEachCommandIsToldWhatBecameOfItInTheirOrder(t *testing.T) {
	cluster, client := fakeOf(t, 2)
	told, err := client.Bulk(ctx, commandsOf("PutDoc", "Fly", "Busy", "Lost", "PutDoc"))
	must(t, err)
	for place, said := range told {
		var problem *Problem
		if place == 1 {
			equal(t, errors.As(said.Err, &problem) && problem.Code == "unknown_command", true)
			continue
		}
		must(t, said.Err)
		equal(t, said.Index > 0, true)
	}
	equal(t, cluster.state.happened(), 4)
}

func TestAStreamThatIsLostIsSentAgainAndHappensOnce(t *testing.T) {
	cluster, client := fakeOf(t, 2)
	cluster.faults(fault{cutAfter: true})
	told, err := client.Bulk(ctx, commandsOf("PutDoc", "PutDoc"))
	must(t, err)
	must(t, told[0].Err)
	must(t, told[1].Err)
	equal(t, cluster.state.happened(), 2)
}

func TestThousandsTravelAThousandAtATime(t *testing.T) {
	cluster, client := fakeOf(t, 1)
	told, err := client.Bulk(ctx, commandsOf(strings.Split(strings.Repeat("PutDoc,", 2*linesMost), ",")...))
	must(t, err)
	equal(t, len(told), 2*linesMost+1)
	equal(t, len(cluster.asked("/commands")), 3)
	for place, said := range told {
		equal(t, fmt.Sprint(said.Index), fmt.Sprint(place+1))
	}
}

func TestWhatCouldNotBeSentIsToldSo(t *testing.T) {
	cluster, client := fakeOf(t, 1, quick)
	cluster.setFault(func(call) fault { return fault{cut: true} })
	told, err := client.Bulk(ctx, commandsOf(strings.Split(strings.Repeat("PutDoc,", linesMost), ",")...))
	must(t, err)
	equal(t, errors.Is(told[0].Err, ErrIndeterminate), true)
	equal(t, errors.Is(told[linesMost].Err, ErrUnavailable), true)
	ended, end := context.WithCancel(ctx)
	end()
	told, err = client.Bulk(ended, commandsOf("PutDoc"))
	equal(t, errors.Is(err, context.Canceled) && errors.Is(told[0].Err, ErrUnavailable), true)
}

func TestARefusalOfTheRequestRemovesNoDoubt(t *testing.T) {
	cluster, client := fakeOf(t, 1)
	cluster.faults(fault{}, refusedBy(401, "unauthorized"))
	told, err := client.Bulk(ctx, commandsOf("Lost", "Busy"))
	must(t, err)
	equal(t, errors.Is(told[0].Err, ErrIndeterminate), true)
	var problem *Problem
	equal(t, errors.As(told[1].Err, &problem) && problem.Code == "unauthorized", true)
}

func TestABatchIsOneCall(t *testing.T) {
	cluster, client := fakeOf(t, 1)
	done, err := client.Batch(ctx, commandsOf("PutDoc", "PutDoc"))
	must(t, err)
	equal(t, done.Epoch, "1.1")
	_, err = client.Command(ctx, commandsOf("PutDoc")[0])
	must(t, err)
	calls := cluster.asked("/commands")
	equal(t, string(calls[0].body), `[{"storage_cmd":"PutDoc","payload":{}},{"storage_cmd":"PutDoc","payload":{}}]`)
	equal(t, string(calls[1].body), `{"storage_cmd":"PutDoc","payload":{}}`)
	status, err := client.Status(ctx)
	must(t, err)
	equal(t, status.Cluster, "fake")
}
