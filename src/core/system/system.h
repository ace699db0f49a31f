// SPDX-License-Identifier: Apache-2.0
// The interface to the system: every allocation, and every operation on files and folders, goes
// through one table of functions. Tests replace the table to make a call fail, to simulate a power
// failure, or to count calls. A test over the object files ensures that no other source calls the
// system.
#ifndef CORE_SYSTEM_SYSTEM_H
#define CORE_SYSTEM_SYSTEM_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

/// Each function is the C or POSIX function of its name, with its results and errno; others are
/// described.
typedef struct system_calls {
    void *(*malloc)(size_t size);
    void *(*calloc)(size_t count, size_t size);
    void *(*realloc)(void *old, size_t size);
    void *(*aligned_alloc)(size_t alignment, size_t size);
    void (*free)(void *memory);      // for memory from any of the four
    bool (*has_memory)(size_t size); // true if this many bytes could be allocated now

    int (*open)(const char *path, int flags, mode_t mode);
    int (*close)(int file);
    ssize_t (*read)(int file, void *bytes, size_t size);
    ssize_t (*write)(int file, const void *bytes, size_t size);
    int (*fsync)(int file);                // for files and folders
    int (*flock)(int file, int operation); // the lock ends when the file is closed
    int (*fchmod)(int file, mode_t mode);
    int (*fstat)(int file, struct stat *out);
    int (*stat)(const char *path, struct stat *out);
    int (*lstat)(const char *path, struct stat *out);
    int (*access)(const char *path, int mode);
    bool (*is_remote)(int file); // true for a network file system, if known
    void *(*mmap)(size_t size,
                  int file); // MAP_FAILED on failure; private, read-only, from the file's start
    int (*munmap)(void *address, size_t size);
    int (*rename)(const char *from, const char *to);
    int (*unlink)(const char *path);
    int (*mkdir)(const char *path, mode_t mode);
    char *(*realpath)(const char *path, char *resolved); // resolved: room for PATH_MAX
    DIR *(*opendir)(const char *path);
    struct dirent *(*readdir)(DIR *folder);
    int (*closedir)(DIR *folder);
    int (*getentropy)(void *bytes, size_t size);
} system_calls;

/// The table in use.
const system_calls *tare__system(void);
/// The operating system's own functions.
extern const system_calls tare__system_own;
/// For tests: replaces the table, which must stay valid until it is replaced again; NULL: the
/// system's own. Must not be called while another thread uses the library.
void tare__system_replace(const system_calls *calls);

#endif
