// SPDX-License-Identifier: Apache-2.0
// Files: mapped or read; written beside their final name, flushed to disk, and renamed on success
// (tare_file_write of tare/file.h does this in one call). After a failure, a kill or a power
// failure the path has either its old bytes or its new ones.
#ifndef CORE_SYSTEM_FILE_H
#define CORE_SYSTEM_FILE_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/tensor/tensor.h"

/// Maps a regular file read-only. "-" reads standard input into memory; files on a network file
/// system are also read into memory, because any of their pages may fail later. *out is a storage
/// with the bytes *data, *size; the caller releases it.
tare_status tare__file_map(const char *path, storage **out, const unsigned char **data,
                           size_t *size, tare_error *err);
/// The same, but always reads into memory: later changes of the file have no effect.
tare_status tare__file_read(const char *path, storage **out, const unsigned char **data,
                            size_t *size, tare_error *err);
/// Reads standard input, as "-" does above: at most `limit` bytes; 0: half of the machine's memory.
/// TARE_LIMIT_EXCEEDED if there are more.
tare_status tare__standard_input_read(uint64_t limit, storage **out, const unsigned char **data,
                                      size_t *size, tare_error *err);

/// True if the file exists.
bool tare__file_exists(const char *path);
void tare__file_remove(const char *path);
/// The next name in a folder that does not begin with a dot, lent until the next call. NULL at the
/// end, and after a failure, which sets *status.
const char *tare__folder_next(DIR *folder, tare_status *status, tare_error *err);

/// A file being written: PATH.tmp- and sixteen random hexadecimal digits. It did not exist before
/// and is locked while it is written. Unlocked files with such names were left by killed processes;
/// the next writer of PATH removes them.
typedef struct file_writer {
    char *path, *temporary; // temporary NULL: standard output or a device, written in place
    int file;
    unsigned char *buffer;
    size_t used; // of the buffer
} file_writer;
/// A symbolic link at `path` stays, and its target is replaced. In a folder that everybody may
/// write to, links of other users are refused.
tare_status tare__file_begin(file_writer *w, const char *path, tare_error *err);
tare_status tare__file_write(file_writer *w, const void *data, size_t size, tare_error *err);
/// Renames the file to its path; also releases the writer.
tare_status tare__file_commit(file_writer *w, tare_error *err);
void tare__file_abort(file_writer *w); // allowed after commit, and twice

/// The same in three steps, for files that belong together: `flush` writes all bytes to disk,
/// `place` renames the file to `path` (NULL: the path given at the beginning), and abort releases
/// the writer and its lock.
tare_status tare__file_flush(file_writer *w, tare_error *err);
tare_status tare__file_place(file_writer *w, const char *path, tare_error *err);

/// Removes unlocked files from the folder of `path` whose names are that of `path` followed by
/// `before`, sixteen hexadecimal digits and `after`, except for `kept` (a path; NULL: none).
void tare__file_remove_stale(const char *path, const char *before, const char *after,
                             const char *kept);

/// Locks the folder of `path` against other processes that lock it; *out is closed by
/// tare__file_unlock_folder. -1 if the file system has no locks.
int tare__file_lock_folder(const char *path);
void tare__file_unlock_folder(int folder);

#endif
