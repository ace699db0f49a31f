// SPDX-License-Identifier: Apache-2.0
// Copies elements from one order to another, described by strides: permuting, slicing, repeating.
#ifndef RUNTIME_GEMM_STRIDED_COPY_H
#define RUNTIME_GEMM_STRIDED_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/threads/threads.h"

/// One loop: its elements are `from` apart in x (0: repeated) and `to` apart in y.
typedef struct copy_loop {
    int64_t size, from, to;
} copy_loop;

enum { COPY_MOST_LOOPS = 32 };
typedef struct strided_copy {
    size_t element;  // bytes: 1, 2, 4 or 8
    int64_t offset;  // of the first element in x
    copy_loop row;   // adjacent in y
    copy_loop other; // adjacent in x, if those of the row are not; else of size 1
    int64_t blocks;  // into which `other`, or the row, is divided
    int64_t block;
    int loop_count; // of the loops around them, outermost first
    copy_loop loop[COPY_MOST_LOOPS];
    int64_t units; // blocks over all loops, which may be copied in any order
    size_t grain;
} strided_copy;

/// y[sum of i_k * to_k] = x[offset + sum of i_k * from_k] for all i_k < size_k. Each element of y
/// is written once. Loops may be given in any order, at most COPY_MOST_LOOPS.
strided_copy tare__strided_copy_of(size_t element, int64_t offset, const copy_loop *loops,
                                   size_t count);
/// True if every element keeps its position: y may be x.
bool tare__strided_copy_is_same(const strided_copy *c);
/// The number of elements that are copied.
int64_t tare__strided_copy_elements(const strided_copy *c);
/// Copies the units [first, end).
void tare__strided_copy_units(const strided_copy *c, size_t first, size_t end, const void *x,
                              void *y);
/// Copies all units; the threads of a pool divide them. NULL: the caller copies alone.
void tare__strided_copy_run(const strided_copy *c, thread_pool *pool, const void *x, void *y);

#endif
