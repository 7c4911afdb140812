/* Loaded before a node: adds a shift, in milliseconds and read from a file, to the wall clock, another one to the clock that goes on
 * while the machine sleeps, and a third one to all clocks but the wall clock.
 *
 * Programs ask the kernel's own page for the time and need no library for it, so it is that page's function which is
 * replaced, in this process alone: the page is private to whoever writes to it. For x86-64. */
#define _GNU_SOURCE
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
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

/* movabs rax, shifted; jmp rax */
static void replace(uint8_t *function) {
    uint8_t jump[12] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};
    uint64_t target = (uint64_t)shifted;
    memcpy(jump + 2, &target, sizeof target);
    uintptr_t page = (uintptr_t)function & ~(uintptr_t)4095;
    if (mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) != 0 &&
        mprotect((void *)page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
        perror("the kernel's page cannot be written");
        abort();
    }
    memcpy(function, jump, sizeof jump);
}

__attribute__((constructor)) static void begin(void) {
    uint8_t *base = (uint8_t *)getauxval(AT_SYSINFO_EHDR);
    Elf64_Ehdr *head = (Elf64_Ehdr *)base;
    Elf64_Phdr *parts = (Elf64_Phdr *)(base + head->e_phoff);
    Elf64_Sym *symbols = NULL;
    const char *names = NULL;
    uint32_t *hash = NULL;
    for (int part = 0; part < head->e_phnum; part++) {
        if (parts[part].p_type != PT_DYNAMIC) continue;
        for (Elf64_Dyn *entry = (Elf64_Dyn *)(base + parts[part].p_offset); entry->d_tag != DT_NULL; entry++) {
            uint8_t *place = base + entry->d_un.d_ptr;
            if (entry->d_tag == DT_SYMTAB) symbols = (Elf64_Sym *)place;
            if (entry->d_tag == DT_STRTAB) names = (const char *)place;
            if (entry->d_tag == DT_HASH) hash = (uint32_t *)place;
        }
    }
    if (!symbols || !names) abort();
    /* The second number of the hash table is how many symbols there are; without one the names end them. */
    size_t count = hash ? hash[1] : ((uintptr_t)names - (uintptr_t)symbols) / sizeof *symbols;
    for (size_t at = 0; at < count; at++) {
        if (strcmp(names + symbols[at].st_name, "__vdso_clock_gettime") == 0) replace(base + symbols[at].st_value);
    }
}
