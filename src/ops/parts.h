// SPDX-License-Identifier: Apache-2.0
// Calls whose result consists of parts that do not depend on each other: elements, or rows. The
// reference computes them one after the other; a plan's step shares them between threads.
#ifndef OPS_PARTS_H
#define OPS_PARTS_H

#include "ops/call.h"

typedef struct call_parts {
    int64_t count; // 0: only the reference computes this call
    int64_t work;  // about how many elements a part reads or writes; 0: none, as in an empty sum
    /// Computes parts [first, end). Threads run it at the same time, each with a copy of the call
    /// that has memory of its own and no place for an error's message.
    tare_status (*run)(op_call *call, int64_t first, int64_t end);
} call_parts;

/// A part for each element of the call's result, of about the same work.
tare_status tare__element_parts(op_call *call, tare_status (*run)(op_call *, int64_t, int64_t),
                                call_parts *out);
/// What a reference does that has parts: computes all of them.
tare_status tare__run_parts(op_call *call, tare_status (*parts)(op_call *call, call_parts *out));

/// Elements that functions of doubles convert at a time.
enum { PART_BLOCK = 256 };

#endif
