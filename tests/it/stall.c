/* Loaded before a node: its disk acknowledges nothing for as long as the file STALL_FILE exists. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void wait_for_the_disk(void) {
    const char *stalled = getenv("STALL_FILE");
    while (stalled && access(stalled, F_OK) == 0) usleep(10000);
}

int fdatasync(int file) {
    wait_for_the_disk();
    return (int)syscall(SYS_fdatasync, file);
}

int fsync(int file) {
    wait_for_the_disk();
    return (int)syscall(SYS_fsync, file);
}
