/* Loaded before a node: adds a shift, in milliseconds and read from a file, to the wall clock, another one to the clock that goes on
 * while the machine sleeps, and a third one to all clocks but the wall clock. */
#define _GNU_SOURCE
#include "harness/vdso.h"
#include <sys/syscall.h>
#include <unistd.h>

static void add(const char *path, struct timespec *now) {
    FILE *file = path ? fopen(path, "r") : NULL;
    long long ms = 0;
    if (!file) return;
    if (fscanf(file, "%lld", &ms) == 1) {
        long long ns = now->tv_nsec + ms % 1000 * 1000000;
        long long carried = ns < 0 ? -1 : ns / 1000000000;
        now->tv_sec += ms / 1000 + carried;
        now->tv_nsec = (long)(ns - carried * 1000000000);
    }
    fclose(file);
}

static int shifted(clockid_t clock, struct timespec *now) {
    long result = syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME) add(getenv("SHIFT_FILE"), now);
    if (clock == CLOCK_BOOTTIME) add(getenv("SLEEP_FILE"), now);
    if (clock != CLOCK_REALTIME) add(getenv("PAUSE_FILE"), now);
    return (int)result;
}

__attribute__((constructor)) static void begin(void) {
    take_over_clocks(shifted);
}
