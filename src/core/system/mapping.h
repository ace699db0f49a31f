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
/// where no mapping can be made or guarded: the caller reads the file instead.
tare_status tare__mapping_create(int file, const char *path, size_t size, storage **out,
                                 bool *mapped, tare_error *err);
/// TARE_IO, naming the file, if a mapped file has lost bytes that were read, and is still mapped.
tare_status tare__mapping_check(tare_error *err);

#endif
