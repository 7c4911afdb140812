//go:build !linux

package eldest

import "time"

func steadyTime() func() time.Duration { return runtimeClock() }
