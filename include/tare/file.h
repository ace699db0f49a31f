// SPDX-License-Identifier: Apache-2.0
/// Files: written so that no half of one is ever seen, and guarded while they are mapped. All
/// files of the library are written in this way.
#ifndef TARE_FILE_H
#define TARE_FILE_H

#include <stddef.h>

#include "tare/export.h"
#include "tare/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Writes `size` bytes as the whole file. They go to a new file beside it, PATH.tmp- and sixteen
/// random hexadecimal digits, which is flushed to the disk and renamed: whatever fails, `path` has
/// its old bytes or the new ones. Such files that a killed process left are removed by the next
/// that writes `path`. A symbolic link stays and its target is replaced; links of other users in
/// folders that everybody may write to are refused. Devices and pipes are written as they are; "-"
/// is standard output. TARE_IO names the path and what failed.
TARE_API tare_status tare_file_write(const char *path, const void *bytes, size_t size,
                                     tare_error *err);

/// The same in two steps, for files that shall appear together or not at all: when all of them are
/// prepared, nothing but a rename each is left, which takes no memory and no room on the disk.
typedef struct tare_file tare_file;
/// Brings the bytes to the disk under the other name. The caller places or discards *out.
TARE_API tare_status tare_file_prepare(const char *path, const void *bytes, size_t size,
                                       tare_file **out, tare_error *err);
/// Gives the file its name, and releases it.
TARE_API tare_status tare_file_place(tare_file *file, tare_error *err);
TARE_API void tare_file_discard(tare_file *file); // NULL is fine

/// Installs a handler of SIGBUS for the process, from then on. Files of models are mapped, and
/// reading a page that another process has cut off, or that a disk cannot read, raises SIGBUS,
/// which ends the process. With the handler such pages are zeros, and runs and writes fail with
/// TARE_IO, naming the file, until what was read from it is destroyed. Other SIGBUS go to the
/// handler that was there before. Programs that want no handler set `copies_file` in
/// tare_model_read_options. Calling it again does nothing.
TARE_API tare_status tare_file_guard(tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
