package eldest

import (
	"syscall"
	"time"
	"unsafe"
)

// The number of the clock that goes on while the machine sleeps; the runtime's monotonic clock stands still meanwhile.
const clockBoottime = 7

func bootTime() (time.Duration, bool) {
	var at syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&at)), 0)
	return time.Duration(at.Nano()), errno == 0
}

// steadyTime reads that clock. If it cannot be read, it is the runtime's clock plus the sleep that the wall clock
// shows.
func steadyTime() func() time.Duration {
	if _, ok := bootTime(); !ok {
		return runtimeClock()
	}
	return func() time.Duration {
		now, _ := bootTime()
		return now
	}
}
