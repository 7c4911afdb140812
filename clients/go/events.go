package eldest

import "sync"

// ElectionKind is the kind of an event of an election.
type ElectionKind string

const (
	// LeaderAcquired, with a Token: this process leads. LeaderLost: it does not lead any more.
	LeaderAcquired ElectionKind = "leader_acquired"
	LeaderLost     ElectionKind = "leader_lost"
	// NewLeader, with the Leader: another instance than before leads, or this one.
	NewLeader ElectionKind = "new_leader"
	// ElectionStarted: this process asks for the role. ElectionCompleted, with Won: it knows the answer.
	ElectionStarted   ElectionKind = "election_started"
	ElectionCompleted ElectionKind = "election_completed"
	// SubscribeStarted: the feed is open. SubscribeError, with the Err: it broke, and is reopened elsewhere.
	SubscribeStarted ElectionKind = "subscribe_started"
	SubscribeError   ElectionKind = "subscribe_error"
	// HeartbeatFailed, with the Err: a renewal failed. The next one follows while there is time.
	HeartbeatFailed ElectionKind = "heartbeat_error"
	// Failed, with the Err: an attempt to acquire or to release failed.
	Failed ElectionKind = "error"
	// Missed, with the Number: this listener was too slow, and missed this many events.
	Missed ElectionKind = "missed"
)

// ElectionEvent is one event; its kind says which members are set.
type ElectionEvent struct {
	Kind   ElectionKind
	Token  uint64
	Leader string
	Won    bool
	Err    error
	Number int
}

// If this many events wait for a listener, it misses those that come.
const eventsMost = 256

type listener struct {
	told   chan ElectionEvent
	missed int
}

// listeners get the same events, each in order. The election waits for no slow listener.
type listeners struct {
	mu  sync.Mutex
	all map[*listener]bool
}

func (l *listeners) add() (<-chan ElectionEvent, func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[*listener]bool{}
	}
	one := &listener{told: make(chan ElectionEvent, eventsMost)}
	l.all[one] = true
	return one.told, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.all[one] {
			delete(l.all, one)
			close(one.told)
		}
	}
}

func (l *listeners) tell(event ElectionEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for one := range l.all {
		one.tell(event)
	}
}

// tell keeps the last place for the event that others were missed.
func (l *listener) tell(event ElectionEvent) {
	free := cap(l.told) - len(l.told)
	if l.missed > 0 && free > 1 {
		l.told <- ElectionEvent{Kind: Missed, Number: l.missed}
		l.missed = 0
		free--
	}
	if free > 1 {
		l.told <- event
		return
	}
	l.missed++
}
