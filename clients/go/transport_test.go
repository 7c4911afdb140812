package eldest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

var ctx = context.Background()

func TestANodeThatIsDownIsPassedOverAndTheOneThatAnsweredIsAskedFirst(t *testing.T) {
	cluster, client := fakeOf(t, 3)
	cluster.kill(0)
	written, err := client.Docs.Put(ctx, "a", 1)
	must(t, err)
	equal(t, written.Created, true)
	_, err = client.Docs.Get(ctx, "a", "")
	must(t, err)
	equal(t, cluster.nodesAsked(), []int{1, 1})
	equal(t, client.Node(), cluster.urls()[1])
}

func TestAWriteWhoseConnectionIsLostIsSentAgainWithTheSameKeyAndHappensOnce(t *testing.T) {
	cluster, client := fakeOf(t, 2)
	cluster.faults(fault{cutAfter: true})
	written, err := client.Docs.Put(ctx, "once", 1, IfAbsent())
	must(t, err)
	equal(t, written.Created, true)
	calls := cluster.asked("")
	equal(t, len(calls), 2)
	equal(t, calls[0].key() != "" && calls[0].key() == calls[1].key(), true)
	equal(t, cluster.state.happened(), 1)
}

func TestAWriteThatIsTurnedAwayAtTheDoorAfterALostAttemptIsInDoubt(t *testing.T) {
	cluster, client := fakeOf(t, 2)
	cluster.faults(fault{cutAfter: true}, refusedBy(401, "unauthorized"))
	_, err := client.Docs.Put(ctx, "a", 1)
	equal(t, cluster.state.happened(), 1)
	equal(t, errors.Is(err, ErrIndeterminate), true)
	equal(t, errors.Is(err, ErrUnauthorized), true)
	cluster.faults(refusedBy(401, "unauthorized"))
	_, err = client.Docs.Put(ctx, "a", 1)
	equal(t, errors.Is(err, ErrIndeterminate), false)
}

func TestAStreamWhoseRefusalNeverEndsIsGivenUp(t *testing.T) {
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer node.Close()
	client, err := New([]string{node.URL})
	must(t, err)
	transport := client.transport
	_, err = transport.open(ctx, transport.waits, node.URL, spec{method: http.MethodGet, path: "/v1/feed"}, 50*time.Millisecond)
	equal(t, err != nil, true)
}

func TestTwoCallsHaveTwoKeys(t *testing.T) {
	cluster, client := fakeOf(t, 1)
	for n := 0; n < 2; n++ {
		_, err := client.Docs.Put(ctx, "a", 1)
		must(t, err)
	}
	calls := cluster.asked("")
	equal(t, calls[0].key() != calls[1].key(), true)
}

func Test504IsAnUnknownOutcomeAgainWithTheSameKey(t *testing.T) {
	cluster, client := fakeOf(t, 2)
	cluster.faults(refusedBy(504, "outcome_unknown"))
	_, err := client.Docs.Put(ctx, "a", 1)
	must(t, err)
	calls := cluster.asked("")
	equal(t, calls[0].key(), calls[1].key())
}

func TestASilentNodeIsGivenUpAfterTheTimeOfAnAttempt(t *testing.T) {
	cluster, client := fakeOf(t, 2, WithTimeouts(10*time.Second, 50*time.Millisecond))
	cluster.setFault(func(c call) fault { return fault{silent: c.node == 0} })
	_, err := client.Docs.Put(ctx, "a", 1)
	must(t, err)
	equal(t, client.Node(), cluster.urls()[1])
}

func TestANodeThatDoesNotEvenSayThatItLivesIsGivenUp(t *testing.T) {
	cluster, client := fakeOf(t, 2, WithTimeouts(time.Minute, time.Minute))
	cluster.setFault(func(c call) fault { return fault{silent: c.node == 0} })
	_, err := client.Docs.Put(ctx, "a", 1)
	must(t, err)
	calls := cluster.asked("/v1/docs/a")
	equal(t, len(calls), 2)
	equal(t, calls[0].key() != "" && calls[0].key() == calls[1].key(), true)
}

func TestANodeThatLivesIsWaitedFor(t *testing.T) {
	var others atomic.Int32
	signs := make(chan struct{}, 16)
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/livez" {
			signs <- struct{}{}
			return
		}
		received(t, signs)
		received(t, signs)
		ok(map[string]any{"key": "a", "rev": "1", "created": true}).send(w)
	}))
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { others.Add(1) }))
	t.Cleanup(slow.Close)
	t.Cleanup(other.Close)
	client, err := New([]string{slow.URL, other.URL}, WithTimeouts(time.Minute, time.Minute))
	must(t, err)
	t.Cleanup(client.Close)
	_, err = client.Docs.Put(ctx, "a", 1)
	must(t, err)
	equal(t, others.Load(), int32(0))
}

func TestIndeterminateAnAttemptWasLostAndTheTimeWasOver(t *testing.T) {
	cluster, client := fakeOf(t, 1, quick)
	cut := true
	cluster.setFault(func(call) fault {
		met := refusedBy(503, "no_leader")
		if cut {
			met = fault{cut: true}
		}
		cut = false
		return met
	})
	_, err := client.Docs.Put(ctx, "a", 1)
	var unknown *Indeterminate
	equal(t, errors.As(err, &unknown) && errors.Is(err, ErrIndeterminate) && !errors.Is(err, ErrUnavailable), true)
	equal(t, unknown.IdempotencyKey, cluster.asked("")[0].key())
	var problem *Problem
	equal(t, errors.As(err, &problem) && problem.Code == "no_leader", true)
	// The same call with its key shows the outcome.
	cluster.faults()
	_, err = client.Docs.Put(ctx, "a", 1, Key(unknown.IdempotencyKey))
	must(t, err)
}

func TestUnavailableSurelyNotAppliedBecauseItWasRefused(t *testing.T) {
	cluster, client := fakeOf(t, 2, quick)
	cluster.setFault(func(call) fault { return refusedBy(503, "no_quorum") })
	_, err := client.Docs.Put(ctx, "a", 1)
	equal(t, errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrIndeterminate), true)
}

func TestUnavailableSurelyNotAppliedBecauseNoNodeWasReached(t *testing.T) {
	cluster, client := fakeOf(t, 2, quick)
	cluster.kill(0)
	cluster.kill(1)
	_, err := client.Docs.Put(ctx, "a", 1)
	equal(t, errors.Is(err, ErrUnavailable), true)
}

func TestAReadThatIsLostIsUnavailableItChangedNothing(t *testing.T) {
	cluster, client := fakeOf(t, 1, quick)
	cluster.setFault(func(call) fault { return fault{cut: true} })
	_, err := client.Docs.Get(ctx, "a", "")
	equal(t, errors.Is(err, ErrUnavailable), true)
}

func Test429And503AreTriedAgain(t *testing.T) {
	cluster, client := fakeOf(t, 1)
	cluster.faults(refusedBy(429, "too_many_requests"), refusedBy(503, "catching_up"))
	_, err := client.Docs.Put(ctx, "a", 1)
	must(t, err)
	equal(t, len(cluster.asked("")), 3)
}

// onlyLeads: every node but this one answers 421.
func onlyLeads(cluster *fakeCluster, leader int, url string) {
	said, _ := json.Marshal(map[string]any{"code": "not_leader", "retryable": true, "leader_node": Node{ID: 3, URL: url}})
	cluster.setFault(func(c call) fault {
		if c.node == leader {
			return fault{}
		}
		return fault{status: http.StatusMisdirectedRequest, body: string(said)}
	})
}

func Test421GoesToTheLeaderThatItNamesIfThatIsOneOfTheNodes(t *testing.T) {
	cluster, client := fakeOf(t, 3)
	onlyLeads(cluster, 2, cluster.urls()[2]+"/")
	_, err := client.Docs.Put(ctx, "a", 1)
	must(t, err)
	equal(t, cluster.nodesAsked(), []int{0, 2})
}

func Test421ThatNamesAnAddressThatWasNotGivenGoesToTheNextNode(t *testing.T) {
	cluster, client := fakeOf(t, 3)
	onlyLeads(cluster, 1, "http://elsewhere.example:9000")
	_, err := client.Docs.Put(ctx, "a", 1)
	must(t, err)
	equal(t, cluster.nodesAsked(), []int{0, 1})
}

func TestARedirectionIsNotFollowed(t *testing.T) {
	var strange, asked atomic.Int32
	stranger := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strange.Add(1) }))
	defer stranger.Close()
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.Redirect(w, r, stranger.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer node.Close()
	client, err := New([]string{node.URL}, quick)
	must(t, err)
	defer client.Close()
	_, err = client.Docs.Put(ctx, "a", 1)
	equal(t, errors.Is(err, ErrBadAnswer), true)
	equal(t, []int32{asked.Load(), strange.Load()}, []int32{1, 0})
}

func TestA503ThatNoNodeGaveSaysNothingAboutAWrite(t *testing.T) {
	cluster, client := fakeOf(t, 1, quick)
	cluster.setFault(func(call) fault { return fault{status: 503, body: `{"message":"gateway"}`} })
	_, err := client.Docs.Put(ctx, "a", 1)
	equal(t, errors.Is(err, ErrIndeterminate), true)
}

func TestARefusalThatStandsIsToldAtOnceWithItsFields(t *testing.T) {
	cluster, client := fakeOf(t, 1)
	cluster.faults(fault{status: 400, body: `{"code":"bad_field","detail":"no","field":"key","request_id":"r1"}`})
	_, err := client.Docs.Put(ctx, "a", 1)
	var problem *Problem
	equal(t, errors.As(err, &problem), true)
	var field string
	equal(t, problem.Field("field", &field), true)
	equal(t, []string{problem.Code, field, problem.RequestID, problem.Detail}, []string{"bad_field", "key", "r1", "no"})
	_, err = client.Docs.Get(ctx, "b", "")
	equal(t, errors.Is(err, ErrNotFound), true)
}

func TestAnswersOfTheWrongShapeAreErrors(t *testing.T) {
	cluster, client := fakeOf(t, 1, quick)
	for _, body := range []string{"null", "[]", "7", "{}", `{"items":{}}`, "no json"} {
		cluster.setFault(func(call) fault { return fault{status: 200, body: body} })
		_, _, err := client.Docs.List(ctx, Page{})
		equal(t, errors.Is(err, ErrBadAnswer), true)
		_, err = client.Roles.Acquire(ctx, "r", Asked{InstanceID: "a"})
		equal(t, errors.Is(err, ErrBadAnswer), true)
	}
	for _, token := range []string{`"7"`, "1.5", "9007199254740992", "-1", "null"} {
		cluster.setFault(func(call) fault {
			return fault{status: 200, body: `{"outcome":"elected","token":` + token + `,"expires_in_ms":10}`}
		})
		_, err := client.Roles.Acquire(ctx, "r", Asked{InstanceID: "a"})
		equal(t, errors.Is(err, ErrBadAnswer), true)
	}
}

func TestACallEndsWithItsContext(t *testing.T) {
	cluster, client := fakeOf(t, 1)
	ending, end := context.WithCancel(ctx)
	cluster.setFault(func(call) fault {
		end()
		return fault{silent: true}
	})
	_, err := client.Docs.Put(ending, "a", 1)
	equal(t, errors.Is(err, context.Canceled) && errors.Is(err, ErrIndeterminate), true)
	_, err = client.Docs.Put(ending, "a", 1)
	equal(t, errors.Is(err, context.Canceled) && errors.Is(err, ErrUnavailable), true)
	equal(t, len(cluster.asked("")), 1)
}

func TestTheTokenAndTheSecretGoAlong(t *testing.T) {
	cluster, _ := fakeOf(t, 1)
	client, err := New(cluster.urls(), WithToken("a token"), WithSecret("only I know"))
	must(t, err)
	_, err = client.Docs.Put(ctx, "a", 1)
	must(t, err)
	_, err = client.Roles.Acquire(ctx, "r", Asked{InstanceID: "a"})
	must(t, err)
	calls := cluster.asked("")
	equal(t, calls[0].header.Get("Authorization"), "Bearer a token")
	equal(t, calls[0].header.Get("Eldest-Secret"), "")
	equal(t, calls[1].header.Get("Eldest-Secret"), "only I know")
}

func TestWhatCannotBeNamedOrSentIsRefusedBeforeAnythingIsCalled(t *testing.T) {
	t.Setenv("ELDEST_URL", "")
	t.Setenv("ELDEST_NODES", "")
	for _, nodes := range [][]string{nil, {"127.0.0.1:9000"}, {"ftp://h"}, {""}} {
		_, err := New(nodes)
		equal(t, err != nil, true)
	}
	for _, option := range []Option{WithToken("a\nb"), WithSecret(""), WithTimeouts(0, 1)} {
		_, err := New([]string{"http://h:1"}, option)
		equal(t, err != nil, true)
	}
	cluster, client := fakeOf(t, 1)
	for _, name := range []string{"", ".", ".."} {
		_, err := client.Docs.Get(ctx, name, "")
		equal(t, err != nil, true)
	}
	for _, option := range []WriteOption{IfRev(""), IfRev("a\n"), Key("ü")} {
		_, err := client.Docs.Put(ctx, "a", 1, option)
		equal(t, err != nil, true)
	}
	_, err := client.Docs.Put(ctx, "a", 1, IfAbsent(), IfRev("1"))
	equal(t, err != nil, true)
	equal(t, len(cluster.asked("")), 0)
}

func TestNodesAreNamedByTheEnvironment(t *testing.T) {
	t.Setenv("ELDEST_NODES", "http://b:1")
	t.Setenv("ELDEST_URL", "http://a:1/, http://a:2")
	client, err := New(nil)
	must(t, err)
	equal(t, client.Nodes(), []string{"http://a:1", "http://a:2"})
	t.Setenv("ELDEST_URL", "")
	client, err = New(nil)
	must(t, err)
	equal(t, client.Nodes(), []string{"http://b:1"})
}
