// SPDX-License-Identifier: Apache-2.0
// The only source that calls the operating system's functions for memory and files.
#define _DEFAULT_SOURCE // flock, getentropy, MAP_ANONYMOUS
#include "core/system/system.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#ifdef __linux__
#include <sys/vfs.h>
#endif
#include <unistd.h>

// Does not use malloc, which may keep the memory after free.
static bool has_memory(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory != MAP_FAILED && munmap(memory, size) == 0;
}

static int open_file(const char *path, int flags, mode_t mode) {
    return open(path, flags, mode);
}

static void *map_file(size_t size, int file) {
    return mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
}

#ifdef __linux__
static bool is_remote(int file) {
    // NFS, SMB, CIFS, SMB2, FUSE, 9P, AFS, Ceph, Lustre, OCFS2, GFS2: linux/magic.h and statfs(2).
    static const uint32_t remote[] = {0x6969,     0x517b,     0xff534d42, 0xfe534d42,
                                      0x65735546, 0x01021997, 0x5346414f, 0x00c36400,
                                      0x0bd00bd0, 0x7461636f, 0x01161970};
    struct statfs info;
    if (fstatfs(file, &info) != 0) return false;
    for (size_t i = 0; i < sizeof remote / sizeof *remote; i++)
        if ((uint32_t)info.f_type == remote[i]) return true;
    return false;
}
#else
static bool is_remote(int file) {
    (void)file;
    return false;
}
#endif

const system_calls tare__system_own = {
    .malloc = malloc,
    .calloc = calloc,
    .realloc = realloc,
    .aligned_alloc = aligned_alloc,
    .free = free,
    .has_memory = has_memory,
    .open = open_file,
    .close = close,
    .read = read,
    .write = write,
    .fsync = fsync,
    .flock = flock,
    .fchmod = fchmod,
    .fstat = fstat,
    .stat = stat,
    .lstat = lstat,
    .access = access,
    .is_remote = is_remote,
    .mmap = map_file,
    .munmap = munmap,
    .rename = rename,
    .unlink = unlink,
    .mkdir = mkdir,
    .realpath = realpath,
    .opendir = opendir,
    .readdir = readdir,
    .closedir = closedir,
    .getentropy = getentropy,
};

// The library's only mutable global; only tests set it.
static const system_calls *_Atomic in_use = &tare__system_own;

const system_calls *tare__system(void) {
    return atomic_load_explicit(&in_use, memory_order_acquire);
}

void tare__system_replace(const system_calls *calls) {
    atomic_store(&in_use, calls != NULL ? calls : &tare__system_own);
}
