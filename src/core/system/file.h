// SPDX-License-Identifier: Apache-2.0
// Files: mapped or read in; written beside their final name, flushed to the disk, and renamed when
// all is well (tare_file_write of tare/file.h does all that at once). After a failure, a kill or a
// power cut the path has its old bytes or its new ones.
#ifndef CORE_SYSTEM_FILE_H
#define CORE_SYSTEM_FILE_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/tensor/tensor.h"

/// Maps a regular file read-only. "-" reads standard input into memory instead; so are files read
/// that lie on a network's file system, where any page may fail later. *out is a storage whose
/// bytes are *data, *size; the caller releases it.
tare_status tare__file_map(const char *path, storage **out, const unsigned char **data,
                           size_t *size, tare_error *err);
/// The same into memory always: what others do to the file later changes nothing.
tare_status tare__file_read(const char *path, storage **out, const unsigned char **data,
                            size_t *size, tare_error *err);
/// Standard input, as the two above read "-": at most `limit` bytes; 0: half of the machine's memory.
/// Where there are more: TARE_LIMIT_EXCEEDED.
tare_status tare__standard_input_read(uint64_t limit, storage **out, const unsigned char **data,
                                      size_t *size, tare_error *err);

/// Is there a file of this name?
bool tare__file_exists(const char *path);
void tare__file_remove(const char *path);
/// The next name in a folder that does not begin with a dot, lent until the next call; NULL at the
/// end, and where the folder cannot be read on, which *status says then.
const char *tare__folder_next(DIR *folder, tare_status *status, tare_error *err);

/// A file in the making: PATH.tmp-XXXXXXXXXXXXXXXX, sixteen random hexadecimal digits, which nobody
/// else opened before and which is locked while it is written. Such files without a lock are what
/// killed processes left; whoever writes PATH next removes them.
typedef struct file_writer {
    char *path, *temporary; // temporary NULL: standard output or a device, written in place
    int file;
    unsigned char *buffer;
    size_t used; // of the buffer
} file_writer;
/// A symbolic link at `path` stays, and its target is replaced; but in a folder that everybody may
/// write to, links of others are refused.
tare_status tare__file_begin(file_writer *w, const char *path, tare_error *err);
tare_status tare__file_write(file_writer *w, const void *data, size_t size, tare_error *err);
/// Renames the file to its path; also releases the writer.
tare_status tare__file_commit(file_writer *w, tare_error *err);
void tare__file_abort(file_writer *w); // fine after commit, fine twice

/// The same in three steps, for files that belong together: `flush` brings all bytes to the disk,
/// `place` renames it to `path` (NULL: the one that was begun), and abort releases the writer with
/// its lock.
tare_status tare__file_flush(file_writer *w, tare_error *err);
tare_status tare__file_place(file_writer *w, const char *path, tare_error *err);

/// Removes files of the folder of `path` whose names are its own with `before`, sixteen hexadecimal
/// digits and `after` behind it, and which nobody has locked; but not `kept` (a path; NULL: none).
void tare__file_remove_stale(const char *path, const char *before, const char *after,
                             const char *kept);

/// Locks the folder of `path` against other processes that do the same; *out is closed by
/// tare__file_unlock_folder. -1 where the file system has no locks.
int tare__file_lock_folder(const char *path);
void tare__file_unlock_folder(int folder);

#endif
