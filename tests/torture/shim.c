/* Loaded before a node of the long random test. It bends the node's clocks and its disk as a page of orders says, which the test
 * has mapped too, and keeps what a power cut would leave.
 *
 * Killing a process leaves what it wrote in the kernel's memory, so a node that acknowledges too early loses nothing by it. So a
 * second image of the data folder is kept beside it, of what is synced and nothing else: `b<inode>` holds the bytes of a file as
 * of its newest sync, `d<inode>` the names in a folder as of its newest sync. After a power cut the test makes the folder what
 * this image says, with some part of what came later. The image is complete before a sync returns to the node.
 *
 * Two things are taken to be more durable than POSIX says. A rename from one folder to another is durable at once, in both: file
 * systems do that in one step. And when a process starts after one that was only killed, all names are taken for durable. */
#define _GNU_SOURCE
#include "../it/harness/vdso.h"
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* The test writes the same words at the same places. */
struct orders {
    _Atomic int64_t wall_ms;
    _Atomic int64_t sleep_ms;
    _Atomic int64_t pause_ms;
    /* Which of the two rates holds. The other one may be written. */
    _Atomic int64_t rate;
    struct {
        _Atomic int64_t since_ns, gained_ns, millionths;
    } rates[2];
    _Atomic int64_t stalled;
    /* So many syncs or writes fail. */
    _Atomic int64_t refusals;
    _Atomic int64_t refused;
    /* Each sync takes so much longer: memory knows no delay, disks do. */
    _Atomic int64_t sync_us;
};

#define RANGES 256
#define BUCKETS 1024

struct file {
    ino_t inode;
    /* More than the ranges may have been written. */
    int whole;
    int count;
    struct {
        off_t at;
        size_t length;
    } ranges[RANGES];
    struct file *next;
};

/* A name that is gone, whose folder is not synced: while it is open its inode is nobody else's. */
struct held {
    int fd;
    ino_t folder;
    struct held *next;
};

static struct orders *orders;
static const char *data, *image;
static struct file *files[BUCKETS];
static struct held *held;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* One at a time changes the image: of two syncs at once the one that looked first must not have the last word. */
static pthread_mutex_t keeping = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static void must(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "the shim of the test cannot go on: %s: %s\n", what, strerror(errno));
    _exit(99);
}

/* Clocks. */

static void add(struct timespec *now, int64_t ns) {
    ns += now->tv_nsec;
    int64_t carried = ns < 0 ? -((-ns + 999999999) / 1000000000) : ns / 1000000000;
    now->tv_sec += carried;
    now->tv_nsec = (long)(ns - carried * 1000000000);
}

static int bent(clockid_t clock, struct timespec *now) {
    long result = syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME) {
        add(now, orders->wall_ms * 1000000);
        return (int)result;
    }
    int64_t read_ns = now->tv_sec * 1000000000 + now->tv_nsec, at = orders->rate & 1;
    int64_t since_ns = read_ns - orders->rates[at].since_ns;
    add(now, orders->rates[at].gained_ns + (int64_t)((__int128)since_ns * orders->rates[at].millionths / 1000000));
    add(now, orders->pause_ms * 1000000);
    if (clock == CLOCK_BOOTTIME) add(now, orders->sleep_ms * 1000000);
    return (int)result;
}

/* The image. */

static int is_ours(const char *path) {
    size_t length = data ? strlen(data) : 0;
    return length > 0 && strncmp(path, data, length) == 0 && (path[length] == '/' || path[length] == 0);
}

static void image_path(char *path, char kind, ino_t inode) {
    snprintf(path, PATH_MAX, "%s/%c%llu", image, kind, (unsigned long long)inode);
}

static struct file *known(ino_t inode) {
    struct file *file = files[inode % BUCKETS];
    while (file && file->inode != inode) file = file->next;
    return file;
}

static struct file *note(ino_t inode, int whole) {
    struct file *file = known(inode);
    if (!file) {
        file = calloc(1, sizeof *file);
        must(file != NULL, "memory");
        file->inode = inode;
        file->next = files[inode % BUCKETS];
        files[inode % BUCKETS] = file;
    }
    file->whole |= whole;
    return file;
}

static struct file *of(int fd, struct stat *about) {
    if (!data || fstat(fd, about) != 0 || !S_ISREG(about->st_mode)) return NULL;
    return known(about->st_ino);
}

static void forget(char kind, ino_t inode) {
    char path[PATH_MAX];
    image_path(path, kind, inode);
    syscall(SYS_unlink, path);
}

static void copy(int from, int to, off_t at, size_t length) {
    char block[65536];
    while (length > 0) {
        ssize_t got = pread(from, block, length < sizeof block ? length : sizeof block, at);
        must(got >= 0, "read what is synced");
        if (got == 0) return;
        must(syscall(SYS_pwrite64, to, block, got, at) == got, "keep what is synced");
        at += got;
        length -= (size_t)got;
    }
}

/* These ranges of the file are durable, and its length. */
static void keep(int fd, const struct file *written) {
    char path[PATH_MAX], own[64];
    struct stat about;
    snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
    int from = (int)syscall(SYS_openat, AT_FDCWD, own, O_RDONLY | O_CLOEXEC);
    image_path(path, 'b', written->inode);
    int to = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    must(from >= 0 && to >= 0, "open what is synced");
    pthread_mutex_lock(&keeping);
    must(fstat(from, &about) == 0, "look at what is synced");
    if (written->whole) copy(from, to, 0, (size_t)about.st_size);
    for (int range = 0; range < written->count && !written->whole; range++)
        copy(from, to, written->ranges[range].at, written->ranges[range].length);
    must(syscall(SYS_ftruncate, to, about.st_size) == 0, "keep a length");
    pthread_mutex_unlock(&keeping);
    close(from);
    close(to);
}

/* The names in this folder are durable. */
static void keep_names(const char *folder) {
    char path[PATH_MAX], fresh[PATH_MAX], inner[PATH_MAX];
    struct stat about;
    pthread_mutex_lock(&keeping);
    DIR *names = opendir(folder);
    must(names != NULL && fstat(dirfd(names), &about) == 0, folder);
    snprintf(fresh, sizeof fresh, "%s/new%ld", image, (long)syscall(SYS_gettid));
    FILE *list = fopen(fresh, "w");
    must(list != NULL, fresh);
    for (struct dirent *entry; (entry = readdir(names));) {
        struct stat inside;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        snprintf(inner, sizeof inner, "%s/%s", folder, entry->d_name);
        if (lstat(inner, &inside) != 0) continue;
        fprintf(list, "%llu %c %s\n", (unsigned long long)inside.st_ino, S_ISDIR(inside.st_mode) ? 'd' : 'f', entry->d_name);
    }
    must(fclose(list) == 0, fresh);
    image_path(path, 'd', about.st_ino);
    must(syscall(SYS_rename, fresh, path) == 0, path);
    closedir(names);
    pthread_mutex_unlock(&keeping);
    pthread_mutex_lock(&lock);
    for (struct held **at = &held; *at;) {
        struct held *gone = *at;
        if (gone->folder != about.st_ino) {
            at = &gone->next;
            continue;
        }
        *at = gone->next;
        close(gone->fd);
        free(gone);
    }
    pthread_mutex_unlock(&lock);
}

static void folder_of(const char *path, char *folder) {
    snprintf(folder, PATH_MAX, "%s", path);
    char *end = strrchr(folder, '/');
    if (end) *end = 0;
}

/* The name is about to go; what it leads to stays as long as its folder is not synced. */
static void hold(const char *path) {
    char folder[PATH_MAX];
    struct stat about;
    folder_of(path, folder);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return;
    if (stat(folder, &about) != 0) {
        close(fd);
        return;
    }
    struct held *gone = calloc(1, sizeof *gone);
    must(gone != NULL, "memory");
    gone->fd = fd;
    gone->folder = about.st_ino;
    pthread_mutex_lock(&lock);
    gone->next = held;
    held = gone;
    pthread_mutex_unlock(&lock);
}

/* What is there when a process starts: all of it is durable when the image begins, and later the names alone. */
static void adopt(const char *folder, int begins) {
    char inner[PATH_MAX];
    DIR *names = opendir(folder);
    if (!names) return;
    for (struct dirent *entry; (entry = readdir(names));) {
        struct stat inside;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        snprintf(inner, sizeof inner, "%s/%s", folder, entry->d_name);
        if (lstat(inner, &inside) != 0) continue;
        if (S_ISDIR(inside.st_mode)) adopt(inner, begins);
        if (!S_ISREG(inside.st_mode) || !begins) continue;
        struct file all = {.inode = inside.st_ino, .whole = 1};
        int fd = (int)syscall(SYS_openat, AT_FDCWD, inner, O_RDONLY | O_CLOEXEC);
        must(fd >= 0, inner);
        keep(fd, &all);
        close(fd);
    }
    closedir(names);
    keep_names(folder);
}

/* Orders to the disk. Nonzero: this call fails. */
static int obeyed(void) {
    struct timespec moment = {0, 5000000};
    while (orders->stalled) syscall(SYS_nanosleep, &moment, NULL);
    int64_t left = orders->refusals;
    while (left > 0 && !atomic_compare_exchange_weak(&orders->refusals, &left, left - 1)) {
    }
    if (left <= 0) return 0;
    orders->refused++;
    errno = EIO;
    return 1;
}

/* What the node calls. */

static int opened(const char *path, int fd, int flags, int was_there) {
    struct stat about;
    if (fd < 0 || !data || !is_ours(path) || fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) return fd;
    pthread_mutex_lock(&lock);
    if (!was_there) {
        forget('b', about.st_ino);
        struct file *file = note(about.st_ino, 0);
        file->whole = file->count = 0;
    } else {
        /* A process before this one may have written what nobody has synced since. */
        note(about.st_ino, !known(about.st_ino) || (flags & O_TRUNC) != 0);
    }
    pthread_mutex_unlock(&lock);
    return fd;
}

static int there(const char *path, int flags) {
    struct stat about;
    return !(flags & O_CREAT) || (!(flags & O_EXCL) && stat(path, &about) == 0);
}

static mode_t mode_of(int flags, va_list rest) {
    return flags & (O_CREAT | O_TMPFILE) ? (mode_t)va_arg(rest, int) : 0;
}

#define OPEN(name)                                                                                       \
    int name(const char *path, int flags, ...) {                                                         \
        va_list rest;                                                                                    \
        va_start(rest, flags);                                                                           \
        mode_t mode = mode_of(flags, rest);                                                              \
        va_end(rest);                                                                                    \
        int was_there = there(path, flags);                                                              \
        int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);                                  \
        return opened(path, fd, flags, was_there);                                                       \
    }
OPEN(open)
OPEN(open64)

static int synced(int fd, long call) {
    struct stat about;
    if (!data || fstat(fd, &about) != 0) return (int)syscall(call, fd);
    struct timespec longer = {orders->sync_us / 1000000, orders->sync_us % 1000000 * 1000};
    if (S_ISDIR(about.st_mode)) {
        char own[64], path[PATH_MAX];
        snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(own, path, sizeof path - 1);
        path[length > 0 ? length : 0] = 0;
        if (!is_ours(path)) return (int)syscall(call, fd);
        syscall(SYS_nanosleep, &longer, NULL);
        if (obeyed() || syscall(call, fd) != 0) return -1;
        keep_names(path);
        return 0;
    }
    pthread_mutex_lock(&lock);
    struct file *file = of(fd, &about);
    pthread_mutex_unlock(&lock);
    if (!file) return (int)syscall(call, fd);
    syscall(SYS_nanosleep, &longer, NULL);
    /* Who takes what was written keeps it before anybody else's sync of this file returns. */
    pthread_mutex_lock(&keeping);
    pthread_mutex_lock(&lock);
    struct file written = *file;
    file->whole = file->count = 0;
    pthread_mutex_unlock(&lock);
    int failed = obeyed() || syscall(call, fd) != 0;
    if (failed) {
        pthread_mutex_lock(&lock);
        file->whole = 1;
        pthread_mutex_unlock(&lock);
    } else {
        keep(fd, &written);
    }
    pthread_mutex_unlock(&keeping);
    return failed ? -1 : 0;
}

int fsync(int fd) {
    return synced(fd, SYS_fsync);
}

int fdatasync(int fd) {
    return synced(fd, SYS_fdatasync);
}

static ssize_t wrote(int fd, off_t at, ssize_t length) {
    struct stat about;
    if (length <= 0) return length;
    pthread_mutex_lock(&lock);
    struct file *file = of(fd, &about);
    if (file && (file->count == RANGES || at < 0)) file->whole = 1;
    if (file && !file->whole) {
        file->ranges[file->count].at = at;
        file->ranges[file->count++].length = (size_t)length;
    }
    pthread_mutex_unlock(&lock);
    return length;
}

static int is_kept(int fd) {
    struct stat about;
    pthread_mutex_lock(&lock);
    int is = of(fd, &about) != NULL;
    pthread_mutex_unlock(&lock);
    return is;
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at) {
    if (is_kept(fd) && obeyed()) return -1;
    return wrote(fd, at, syscall(SYS_pwrite64, fd, bytes, length, at));
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at) {
    return pwrite64(fd, bytes, length, at);
}

ssize_t write(int fd, const void *bytes, size_t length) {
    if (is_kept(fd) && obeyed()) return -1;
    return wrote(fd, -1, syscall(SYS_write, fd, bytes, length));
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    if (is_kept(fd) && obeyed()) return -1;
    return wrote(fd, -1, syscall(SYS_writev, fd, parts, count));
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at) {
    if (is_kept(fd) && obeyed()) return -1;
    return wrote(fd, at, syscall(SYS_pwritev, fd, parts, count, at, 0));
}

int ftruncate64(int fd, off64_t length) {
    int result = (int)syscall(SYS_ftruncate, fd, length);
    if (result == 0) wrote(fd, -1, 1);
    return result;
}

int ftruncate(int fd, off_t length) {
    return ftruncate64(fd, length);
}

int fallocate64(int fd, int mode, off64_t at, off64_t length) {
    int result = (int)syscall(SYS_fallocate, fd, mode, at, length);
    if (result == 0) wrote(fd, -1, 1);
    return result;
}

int rename(const char *from, const char *to) {
    char old[PATH_MAX], new[PATH_MAX];
    int ours = data && is_ours(from) && is_ours(to);
    if (ours) hold(to);
    int result = (int)syscall(SYS_rename, from, to);
    if (!ours || result != 0) return result;
    folder_of(from, old);
    folder_of(to, new);
    if (strcmp(old, new) == 0) return 0;
    keep_names(new);
    keep_names(old);
    return 0;
}

int unlink(const char *path) {
    if (data && is_ours(path)) hold(path);
    return (int)syscall(SYS_unlink, path);
}

int rmdir(const char *path) {
    if (data && is_ours(path)) hold(path);
    return (int)syscall(SYS_rmdir, path);
}

int mkdir(const char *path, mode_t mode) {
    struct stat about;
    int result = (int)syscall(SYS_mkdir, path, mode);
    if (result == 0 && data && is_ours(path) && stat(path, &about) == 0) forget('d', about.st_ino);
    return result;
}

__attribute__((constructor)) static void begin(void) {
    const char *page = getenv("TORTURE_ORDERS"), *begun = "begun";
    if (!page) return;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, page, O_RDWR | O_CLOEXEC);
    must(fd >= 0, page);
    void *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    must(mapped != MAP_FAILED, page);
    close(fd);
    orders = mapped;
    take_over_clocks(bent);
    image = getenv("TORTURE_IMAGE");
    must(image && getenv("TORTURE_DATA"), "two folders");
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", image, begun);
    int has_begun = access(path, F_OK) == 0;
    adopt(getenv("TORTURE_DATA"), !has_begun);
    fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    must(fd >= 0, path);
    close(fd);
    data = getenv("TORTURE_DATA");
}
