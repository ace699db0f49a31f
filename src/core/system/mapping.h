// SPDX-License-Identifier: Apache-2.0
// Mapped files, and the guard for those that change while they are mapped. Reading a page that the
// file lost, or that its disk cannot read, raises SIGBUS. With the guard, lost bytes read as zeros,
// and whatever was computed from them is refused (tare_file_guard).
#ifndef CORE_SYSTEM_MAPPING_H
#define CORE_SYSTEM_MAPPING_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/tensor/tensor.h"

/// Maps `size` > 0 bytes of an open file as a storage. path: for messages; copied. *mapped is false
/// if no mapping can be created or guarded: the caller then reads the file.
tare_status tare__mapping_create(int file, const char *path, size_t size, storage **out,
                                 bool *mapped, tare_error *err);
/// TARE_IO, with the file's name, if bytes of a mapping that still exists were lost.
tare_status tare__mapping_check(tare_error *err);

#endif
