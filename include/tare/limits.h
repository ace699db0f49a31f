// SPDX-License-Identifier: Apache-2.0
/// Limits: what a caller will spend on files and models from others, whose sizes may be false. A
/// request above a limit fails with TARE_LIMIT_EXCEEDED before the memory is taken; the message
/// names the array or node, its size and the limit.
#ifndef TARE_LIMITS_H
#define TARE_LIMITS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Zero means the default; struct_size as in tare/status.h.
typedef struct tare_read_limits {
    uint32_t struct_size;
    /// Bytes of memory for tensors that reading one file creates: inflated, copied, or computed
    /// from constants. Mapped tensors do not count. The graph's own memory is at most a constant
    /// times the size of the file. 0: 16 times the size of the file, at least 1 GiB, at most the
    /// machine's memory.
    uint64_t memory_bytes;
} tare_read_limits;

#ifdef __cplusplus
}
#endif
#endif
