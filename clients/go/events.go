package eldest

import "sync"

// ElectionKind is what an election tells.
type ElectionKind string

const (
	// LeaderAcquired, with a Token, and LeaderLost: this process leads; it leads no more.
	LeaderAcquired ElectionKind = "leader_acquired"
	LeaderLost     ElectionKind = "leader_lost"
	// NewLeader, with the Leader: another instance than before leads, or this one.
	NewLeader ElectionKind = "new_leader"
	// ElectionStarted and ElectionCompleted, with Won: it asks for the role; it knows the answer.
	ElectionStarted   ElectionKind = "election_started"
	ElectionCompleted ElectionKind = "election_completed"
	// SubscribeStarted and SubscribeError, with the Err: the feed is open; it broke, and is opened again elsewhere.
	SubscribeStarted ElectionKind = "subscribe_started"
	SubscribeError   ElectionKind = "subscribe_error"
	// HeartbeatFailed, with the Err: a renewal failed. The next one follows while there is time.
	HeartbeatFailed ElectionKind = "heartbeat_error"
	// Failed, with the Err: an attempt to acquire or to release failed.
	Failed ElectionKind = "error"
	// Missed, with the Number: this listener was too slow, and so many events were not told.
	Missed ElectionKind = "missed"
)

// ElectionEvent is one thing that happened; which members say something its kind tells.
type ElectionEvent struct {
	Kind   ElectionKind
	Token  uint64
	Leader string
	Won    bool
	Err    error
	Number int
}

// A listener that is not read from misses what comes when so many events wait.
const eventsMost = 256

type listener struct {
	told   chan ElectionEvent
	missed int
}

// listeners hear the same events, each in their order. Nobody waits for a slow one.
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

// tell keeps the last place for the word that events were missed.
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
