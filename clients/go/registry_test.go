package eldest

import (
	"io"
	"net/http"
	"testing"
	"time"
)

func newPipe(t *testing.T) (io.Reader, io.WriteCloser) {
	reader, writer := io.Pipe()
	t.Cleanup(func() { writer.Close() })
	return reader, writer
}

func TestAProcessIsRegisteredKeptAndGone(t *testing.T) {
	cluster, client := fakeOf(t, 1)
	registry, err := client.Registry(RegistryOptions{
		Entry:          Entry{Identifier: "encoder", Capabilities: []string{"gpu"}, TTL: time.Minute},
		HeartbeatEvery: time.Millisecond,
	})
	must(t, err)
	process, err := registry.Register(ctx)
	must(t, err)
	equal(t, []string{process.ID, process.Identifier, process.Role}, []string{registry.ID(), "encoder", "slave"})
	equal(t, string(process.Capabilities), `["gpu"]`)
	equal(t, registry.Channel(), "worker:slave:"+registry.ID())
	until(t, "a heartbeat", func() bool { return len(cluster.asked("/heartbeat")) > 0 })
	changed, err := registry.Change(ctx, func(e *Entry) { e.Role = "master" })
	must(t, err)
	equal(t, changed.Role, "master")
	all, err := client.Processes.All(ctx, Filter{Role: "master"})
	must(t, err)
	equal(t, len(all), 1)
	must(t, registry.Stop(ctx))
	must(t, registry.Stop(ctx))
	all, err = client.Processes.All(ctx, Filter{})
	must(t, err)
	equal(t, len(all), 0)
}

func TestAProcessThatWasForgottenIsRegisteredAnew(t *testing.T) {
	cluster, client := fakeOf(t, 1)
	registry, err := client.Registry(RegistryOptions{ID: "w1", HeartbeatEvery: time.Millisecond})
	must(t, err)
	_, err = registry.Register(ctx)
	must(t, err)
	must(t, client.Processes.Delete(ctx, "w1"))
	until(t, "another registration", func() bool {
		_, err := client.Processes.Get(ctx, "w1", Local)
		return err == nil
	})
	must(t, registry.Stop(ctx))
	equal(t, len(cluster.asked("/w1")) > 2, true)
}

func TestHeartbeatsThatFailAreTold(t *testing.T) {
	cluster, client := fakeOf(t, 1, quick)
	told := make(chan error, 64)
	registry, err := client.Registry(RegistryOptions{HeartbeatEvery: time.Millisecond, Entry: Entry{TTL: time.Second}, Failed: func(err error) {
		select {
		case told <- err:
		default:
		}
	}})
	must(t, err)
	_, err = registry.Register(ctx)
	must(t, err)
	cluster.setFault(func(c call) fault {
		if c.verb == "heartbeat" {
			return refusedBy(403, "forbidden")
		}
		return fault{}
	})
	received(t, told)
	must(t, registry.Stop(ctx))
}

func TestASecretIsShownWhereTheIDWasDrawnOrTheSecretNamed(t *testing.T) {
	cluster, client := fakeOf(t, 1)
	named, err := New(cluster.urls(), WithSecret("s"))
	must(t, err)
	drawn, err := client.Registry(RegistryOptions{})
	must(t, err)
	back, err := client.Registry(RegistryOptions{ID: "w1"})
	must(t, err)
	told, err := named.Registry(RegistryOptions{ID: "w2"})
	must(t, err)
	for _, registry := range []*Registry{drawn, back, told} {
		_, err := registry.Register(ctx)
		must(t, err)
		must(t, registry.Stop(ctx))
	}
	var shown []bool
	for _, call := range cluster.asked("") {
		if call.method == http.MethodPut {
			shown = append(shown, call.header.Get("Eldest-Secret") != "")
		}
	}
	equal(t, shown, []bool{true, false, true})
}

func TestADeleteThatIsRepeatedAfterAnUnknownOutcomeHasHappened(t *testing.T) {
	cluster, client := fakeOf(t, 1)
	_, err := client.Processes.Put(ctx, "w1", Entry{})
	must(t, err)
	cluster.faults(fault{cutAfter: true}, refusedBy(404, "not_found"))
	cluster.state.mu.Lock()
	cluster.state.remembered = map[string]reply{}
	cluster.state.mu.Unlock()
	must(t, client.Processes.Delete(ctx, "w1"))
}
