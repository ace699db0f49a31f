// SPDX-License-Identifier: Apache-2.0
// Lays out buffers with known lifetimes in one block of memory: buffers that are live at the same
// time do not overlap, and the block is small.
// Private to runtime/plan.
#ifndef RUNTIME_PLAN_MEMORY_LAYOUT_H
#define RUNTIME_PLAN_MEMORY_LAYOUT_H

#include "core/error.h"

typedef struct memory_buffer {
    size_t bytes;
    size_t first, last; // the first and the last step at which it is live
    size_t offset;      // the result
} memory_buffer;

/// Assigns an offset to each buffer. *block: the size of the block; *least: the largest sum of
/// bytes that are live at one step, a lower bound of the size. The result is deterministic.
tare_status tare__memory_lay_out(memory_buffer *buffers, size_t count, size_t *block, size_t *least,
                                 tare_error *err);

#endif
