package eldest

import (
	"testing"
	"time"
)

func TestTheClockCountsTheSleepOfTheMachine(t *testing.T) {
	at, readable := bootTime()
	if !readable {
		t.Skip("this clock may not be read here")
	}
	if at <= 0 {
		t.Fatalf("%v since the machine began", at)
	}
	if apart := newSystemClock().now() - at; apart < 0 || apart > time.Minute {
		t.Fatalf("%v apart", apart)
	}
}
