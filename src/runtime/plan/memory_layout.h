// SPDX-License-Identifier: Apache-2.0
// Lays out buffers with known life times in one block of memory: buffers that live at the same time
// do not overlap, and the block is small.
// Private to runtime/plan.
#ifndef RUNTIME_PLAN_MEMORY_LAYOUT_H
#define RUNTIME_PLAN_MEMORY_LAYOUT_H

#include "core/error.h"

typedef struct memory_buffer {
    size_t bytes;
    size_t first, last; // the steps at which it lives, both included
    size_t offset;      // found here
} memory_buffer;

/// Gives every buffer its offset. *block: bytes of all of them together; *least: the greatest sum
/// of bytes that live at one step, below which no layout can go. The same buffers always get the
/// same offsets.
tare_status tare__memory_lay_out(memory_buffer *buffers, size_t count, size_t *block, size_t *least,
                                 tare_error *err);

#endif
