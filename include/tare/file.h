// SPDX-License-Identifier: Apache-2.0
/// Files: atomic writes, and a guard for mapped files. The library writes all its files this way.
#ifndef TARE_FILE_H
#define TARE_FILE_H

#include <stddef.h>

#include "tare/export.h"
#include "tare/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Writes a file of `size` bytes. They go to a temporary file in the same folder (PATH.tmp- and
/// sixteen random hexadecimal digits), which is flushed to the disk and renamed: after any failure
/// `path` has its old contents or the new ones. Temporary files of a killed process are removed by
/// the next write to the same path. A symbolic link is kept and its target replaced; links of other
/// users in folders that everybody may write to are refused. Devices and pipes are written in
/// place; "-" is standard output. TARE_IO names the path and the failed operation.
TARE_API tare_status tare_file_write(const char *path, const void *bytes, size_t size,
                                     tare_error *err);

/// tare_file_write in two steps, for files that must appear together or not at all: once all are
/// prepared, only a rename per file is left, which takes no memory and no space on the disk.
typedef struct tare_file tare_file;
/// Writes the bytes to the temporary file and flushes it to the disk. The caller passes *out to
/// tare_file_place or to tare_file_discard.
TARE_API tare_status tare_file_prepare(const char *path, const void *bytes, size_t size,
                                       tare_file **out, tare_error *err);
/// Renames the prepared file to its path and releases `file`, also on failure. Where only flushing
/// the folder fails, the call returns TARE_IO although the new file is in place.
TARE_API tare_status tare_file_place(tare_file *file, tare_error *err);
/// Removes the temporary file and releases `file`. NULL is allowed.
TARE_API void tare_file_discard(tare_file *file);

/// Installs a SIGBUS handler for the process. Model files are mapped: reading a page that another
/// process has truncated, or that the disk cannot read, raises SIGBUS, which ends the process. With
/// the handler, such pages read as zeros, and runs and writes fail with TARE_IO and the name of the
/// file until everything that was read from it is destroyed. Other SIGBUS go to the handler that
/// was there before. A program that wants no handler sets `copies_file` in tare_model_read_options.
/// A second call does nothing.
TARE_API tare_status tare_file_guard(tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
