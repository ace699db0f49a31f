// SPDX-License-Identifier: Apache-2.0
/// Limits on the memory that untrusted files and models may take. A request above a limit fails
/// with TARE_LIMIT_EXCEEDED before the memory is allocated; the message names the array or node,
/// its size and the limit.
#ifndef TARE_LIMITS_H
#define TARE_LIMITS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Zero means the default; struct_size as in tare/status.h.
typedef struct tare_read_limits {
    uint32_t struct_size;
    /// Bytes of memory for the tensors that reading one file creates by decompressing, copying or
    /// computing constants. Mapped tensors do not count. (The graph's own memory is not limited by
    /// this; it is at most a constant times the size of the file.) 0: 16 times the size of the
    /// file, but at least 1 GiB and at most the machine's memory.
    uint64_t memory_bytes;
} tare_read_limits;

#ifdef __cplusplus
}
#endif
#endif
