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

/// Writes `size` bytes to a file. They go to a temporary file in the same folder (PATH.tmp- and
/// sixteen random hexadecimal digits), which is flushed to disk and renamed, so after any failure
/// `path` has either its old contents or the new ones. The next write to the same path removes
/// temporary files that a killed process left. A symbolic link is kept and its target replaced;
/// links of other users in world-writable folders are refused. Devices and pipes are written in
/// place; "-" is standard output. TARE_IO names the path and the failed operation.
TARE_API tare_status tare_file_write(const char *path, const void *bytes, size_t size,
                                     tare_error *err);

/// A prepared file: tare_file_write in two steps, for files that must appear together or not at
/// all. Once all are prepared, only one rename per file is left, which needs neither memory nor
/// disk space.
typedef struct tare_file tare_file;
/// Writes the bytes to the temporary file and flushes it to disk. The caller passes *out to
/// tare_file_place or to tare_file_discard. Errors as for tare_file_write.
TARE_API tare_status tare_file_prepare(const char *path, const void *bytes, size_t size,
                                       tare_file **out, tare_error *err);
/// Renames the prepared file to its path and releases `file`, also on failure. If only flushing the
/// folder fails, the call returns TARE_IO although the new file is in place.
TARE_API tare_status tare_file_place(tare_file *file, tare_error *err);
/// Removes the temporary file and releases `file`. NULL is allowed.
TARE_API void tare_file_discard(tare_file *file);

/// Installs a SIGBUS handler for the process. Model files are mapped: reading a page that another
/// process has truncated, or that the disk cannot read, raises SIGBUS, which ends the process. With
/// the handler, such pages read as zeros, and runs and writes fail with TARE_IO and the name of the
/// file until every model and tensor read from it is destroyed. SIGBUS for other addresses goes to
/// the previous handler. A program that wants no handler sets `copies_file` in
/// tare_model_read_options. A second call does nothing. TARE_IO if the handler cannot be installed.
TARE_API tare_status tare_file_guard(tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
