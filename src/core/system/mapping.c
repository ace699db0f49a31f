// SPDX-License-Identifier: Apache-2.0
// Mappings, and the handler of SIGBUS that guards them.
#define _DEFAULT_SOURCE // madvise, MAP_ANONYMOUS
#include "core/system/mapping.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/memory/alloc.h"
#include "core/system/system.h"
#include "tare/file.h"

// The signal handler reads this table. A slot is free while `start` is 0; `end` is written before
// `start`, so that the handler never sees an incomplete range.
typedef struct slot {
    atomic_uintptr_t start, end;
    atomic_bool is_taken, is_lost;
    const char *path; // owned by the slot; protected by the lock
} slot;

enum { MOST_MAPPINGS = 512 };
static slot slots[MOST_MAPPINGS];
static pthread_mutex_t lock =
    PTHREAD_MUTEX_INITIALIZER; // protects paths, which the handler does not read
static atomic_uint lost_count; // of slots
static atomic_bool is_guarded;
static struct sigaction handler_before;
static uintptr_t page_size;

typedef struct mapping {
    void *address;
    size_t size;
    slot *at; // NULL: not guarded
    char path[];
} mapping;

// --- the guard ---

static slot *find(uintptr_t address) {
    for (size_t i = 0; i < MOST_MAPPINGS; i++) {
        const uintptr_t start = atomic_load(&slots[i].start), end = atomic_load(&slots[i].end);
        if (start == 0 || address < start || address >= end) continue;
        if (atomic_load(&slots[i].start) == start) return &slots[i];
    }
    return NULL;
}

static void pass_on(int number, siginfo_t *info, void *context) {
    if ((handler_before.sa_flags & SA_SIGINFO) != 0) {
        handler_before.sa_sigaction(number, info, context);
    } else if (handler_before.sa_handler != SIG_DFL && handler_before.sa_handler != SIG_IGN) {
        handler_before.sa_handler(number);
    } else {
        // The signal is delivered again when this handler returns, and ends the process.
        const struct sigaction usual = {.sa_handler = SIG_DFL};
        sigaction(number, &usual, NULL);
        raise(number);
    }
}

// From the missing page on, the mapping is replaced by zeros. mmap is a plain system call on all
// known systems, so a handler may call it.
static void take_signal(int number, siginfo_t *info, void *context) {
    const int reason = errno;
    const uintptr_t address = (uintptr_t)info->si_addr;
    slot *at = info->si_code > 0 ? find(address) : NULL; // si_code <= 0: a process sent the signal
    const uintptr_t page = address & ~(page_size - 1);
    void *const from = at != NULL ? (char *)info->si_addr - (address - page) : NULL;
    if (at == NULL || mmap(from, atomic_load(&at->end) - page, PROT_READ,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        pass_on(number, info, context);
    else if (!atomic_exchange(&at->is_lost, true))
        atomic_fetch_add(&lost_count, 1);
    errno = reason;
}

tare_status tare_file_guard(tare_error *err) {
    struct sigaction ours = {.sa_sigaction = take_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&ours.sa_mask);
    if (atomic_exchange(&is_guarded, true)) return TARE_OK;
    page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
    if (sigaction(SIGBUS, &ours, &handler_before) == 0) return TARE_OK;
    atomic_store(&is_guarded, false);
    return tare__fail(err, TARE_IO, "cannot handle SIGBUS: %s", strerror(errno));
}

static tare_status refuse(const slot *lost, tare_error *err) {
    tare__fail(err, TARE_IO,
               "parts of the file cannot be read: it was truncated, or its disk failed, while it "
               "was in use");
    tare__hint(err, TARE_IO, "replace a model's file by renaming another one over it");
    return tare__at(err, TARE_IO, "%s", lost->path);
}

tare_status tare__mapping_check(tare_error *err) {
    if (atomic_load_explicit(&lost_count, memory_order_acquire) == 0) return TARE_OK;
    tare_status status = TARE_OK;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < MOST_MAPPINGS && status == TARE_OK; i++)
        if (atomic_load(&slots[i].is_lost)) status = refuse(&slots[i], err);
    pthread_mutex_unlock(&lock);
    return status;
}

// --- mappings ---

static slot *take_slot(void) {
    for (size_t i = 0; i < MOST_MAPPINGS; i++) {
        bool is_taken = false;
        if (atomic_compare_exchange_strong(&slots[i].is_taken, &is_taken, true)) return &slots[i];
    }
    return NULL;
}

static void release_slot(slot *at) {
    atomic_store(&at->start, 0);
    pthread_mutex_lock(&lock);
    if (atomic_exchange(&at->is_lost, false)) atomic_fetch_sub(&lost_count, 1);
    at->path = NULL;
    pthread_mutex_unlock(&lock);
    atomic_store(&at->is_taken, false);
}

static void announce(mapping *m) {
    const uintptr_t start = (uintptr_t)m->address;
    pthread_mutex_lock(&lock);
    m->at->path = m->path;
    pthread_mutex_unlock(&lock);
    atomic_store(&m->at->end, start + m->size);
    atomic_store(&m->at->start, start);
}

static void unmap(void *owner) {
    mapping *m = owner;
    release_slot(m->at);
    tare__system()->munmap(m->address, m->size);
    tare__free(m);
}

// Only whole pages: their neighbours may be in use.
static void forget(void *data, size_t size) {
    const long system_page = sysconf(_SC_PAGESIZE);
    if (system_page <= 0) return;
    const uintptr_t page = (uintptr_t)system_page, address = (uintptr_t)data;
    const uintptr_t first = (address + page - 1) / page * page,
                    end = (address + size) / page * page;
    if (first < end) (void)madvise((char *)data + (first - address), end - first, MADV_DONTNEED);
}

static mapping *new_mapping(const char *path) {
    const size_t length = strlen(path) + 1;
    mapping *m = tare__alloc(sizeof *m + length);
    if (m != NULL) memcpy(m->path, path, length);
    return m;
}

tare_status tare__mapping_create(int file, const char *path, size_t size, storage **out,
                                 bool *mapped, tare_error *err) {
    mapping *m = new_mapping(path);
    if (m == NULL) return tare__out_of_memory(err);
    m->size = size;
    m->at = take_slot();
    m->address = m->at != NULL ? tare__system()->mmap(size, file) : MAP_FAILED;
    *mapped = m->address != MAP_FAILED;
    if (!*mapped) {
        if (m->at != NULL) release_slot(m->at);
        tare__free(m);
        return TARE_OK;
    }
    announce(m);
    *out = tare__storage_adopt(m->address, size, m, unmap);
    if (*out == NULL) {
        unmap(m);
        return tare__out_of_memory(err);
    }
    tare__storage_set_forget(*out, forget);
    return TARE_OK;
}
