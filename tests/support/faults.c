// SPDX-License-Identifier: Apache-2.0
// Counts allocations and calls on files, and fails those that were ordered.
#include "support/faults.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#include "core/system/system.h"

static fault_order ordered;
static _Atomic long count;
static _Atomic bool has_happened;

static bool is_denied(fault_kind kind) {
    if ((ordered.kinds & (int)kind) == 0) return false;
    const long now = atomic_fetch_add(&count, 1) + 1;
    if (ordered.at == 0 || now < ordered.at || (now > ordered.at && !ordered.stays)) return false;
    atomic_store(&has_happened, true);
    return true;
}

// --- memory ---

static bool faulty_has_memory(size_t size) {
    return !is_denied(FAULT_MEMORY) && tare__system_own.has_memory(size);
}

static void *faulty_malloc(size_t size) {
    return is_denied(FAULT_MEMORY) ? NULL : tare__system_own.malloc(size);
}

static void *faulty_calloc(size_t number, size_t size) {
    return is_denied(FAULT_MEMORY) ? NULL : tare__system_own.calloc(number, size);
}

static void *faulty_realloc(void *old, size_t size) {
    return is_denied(FAULT_MEMORY) ? NULL : tare__system_own.realloc(old, size);
}

static void *faulty_aligned_alloc(size_t alignment, size_t size) {
    return is_denied(FAULT_MEMORY) ? NULL : tare__system_own.aligned_alloc(alignment, size);
}

// --- files ---

static bool file_fails(void) {
    if (!is_denied(FAULT_FILES)) return false;
    errno = ordered.file_error != 0 ? ordered.file_error : EIO;
    return true;
}

static int faulty_open(const char *path, int flags, mode_t mode) {
    return file_fails() ? -1 : tare__system_own.open(path, flags, mode);
}

// The descriptor is gone even where close fails.
static int faulty_close(int file) {
    const int result = tare__system_own.close(file);
    return file_fails() ? -1 : result;
}

static ssize_t faulty_read(int file, void *bytes, size_t size) {
    return file_fails() ? -1 : tare__system_own.read(file, bytes, size);
}

// A disk takes part of what it is given before it fails.
static ssize_t faulty_write(int file, const void *bytes, size_t size) {
    if (!file_fails()) return tare__system_own.write(file, bytes, size);
    if (size > 1) (void)!tare__system_own.write(file, bytes, size / 2);
    errno = ordered.file_error != 0 ? ordered.file_error : EIO;
    return -1;
}

static int faulty_fsync(int file) {
    return file_fails() ? -1 : tare__system_own.fsync(file);
}

static int faulty_flock(int file, int operation) {
    return file_fails() ? -1 : tare__system_own.flock(file, operation);
}

static int faulty_fchmod(int file, mode_t mode) {
    return file_fails() ? -1 : tare__system_own.fchmod(file, mode);
}

static int faulty_fstat(int file, struct stat *out) {
    return file_fails() ? -1 : tare__system_own.fstat(file, out);
}

static int faulty_stat(const char *path, struct stat *out) {
    return file_fails() ? -1 : tare__system_own.stat(path, out);
}

static int faulty_lstat(const char *path, struct stat *out) {
    return file_fails() ? -1 : tare__system_own.lstat(path, out);
}

static int faulty_access(const char *path, int mode) {
    return file_fails() ? -1 : tare__system_own.access(path, mode);
}

static void *faulty_mmap(size_t size, int file) {
    return file_fails() ? (void *)-1 : tare__system_own.mmap(size, file);
}

static int faulty_rename(const char *from, const char *to) {
    return file_fails() ? -1 : tare__system_own.rename(from, to);
}

static int faulty_unlink(const char *path) {
    return file_fails() ? -1 : tare__system_own.unlink(path);
}

static int faulty_mkdir(const char *path, mode_t mode) {
    return file_fails() ? -1 : tare__system_own.mkdir(path, mode);
}

static char *faulty_realpath(const char *path, char *resolved) {
    return file_fails() ? NULL : tare__system_own.realpath(path, resolved);
}

static DIR *faulty_opendir(const char *path) {
    return file_fails() ? NULL : tare__system_own.opendir(path);
}

static struct dirent *faulty_readdir(DIR *folder) {
    return file_fails() ? NULL : tare__system_own.readdir(folder);
}

static int faulty_getentropy(void *bytes, size_t size) {
    return file_fails() ? -1 : tare__system_own.getentropy(bytes, size);
}

// --- orders ---

static system_calls faulty_calls(void) {
    system_calls calls = tare__system_own; // what cannot fail
    calls.malloc = faulty_malloc;
    calls.has_memory = faulty_has_memory;
    calls.calloc = faulty_calloc;
    calls.realloc = faulty_realloc;
    calls.aligned_alloc = faulty_aligned_alloc;
    calls.open = faulty_open;
    calls.close = faulty_close;
    calls.read = faulty_read;
    calls.write = faulty_write;
    calls.fsync = faulty_fsync;
    calls.flock = faulty_flock;
    calls.fchmod = faulty_fchmod;
    calls.fstat = faulty_fstat;
    calls.stat = faulty_stat;
    calls.lstat = faulty_lstat;
    calls.access = faulty_access;
    calls.mmap = faulty_mmap;
    calls.rename = faulty_rename;
    calls.unlink = faulty_unlink;
    calls.mkdir = faulty_mkdir;
    calls.realpath = faulty_realpath;
    calls.opendir = faulty_opendir;
    calls.readdir = faulty_readdir;
    calls.getentropy = faulty_getentropy;
    return calls;
}

void faults_order(fault_order order) {
    static system_calls calls;
    calls = faulty_calls();
    ordered = order;
    atomic_store(&count, 0);
    atomic_store(&has_happened, false);
    tare__system_replace(&calls);
}

void faults_end(void) {
    ordered = (fault_order){.kinds = 0};
    atomic_store(&has_happened, false);
    tare__system_replace(NULL);
}

long faults_count(void) {
    return atomic_load(&count);
}

bool faults_happened(void) {
    return atomic_load(&has_happened);
}

void tare__alloc_fail_at(long request) {
    if (request > 0)
        faults_order((fault_order){.kinds = FAULT_MEMORY, .at = request});
    else
        faults_end();
}

bool tare__alloc_failed(void) {
    return faults_happened();
}
