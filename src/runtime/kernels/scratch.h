// SPDX-License-Identifier: Apache-2.0
// Scratch memory that is kept between runs and grows on demand, and the threads that share it.
#ifndef RUNTIME_KERNELS_SCRATCH_H
#define RUNTIME_KERNELS_SCRATCH_H

#include <assert.h>
#include <stddef.h>

#include "core/threads/threads.h"

typedef struct scratch { // zero-initialized is a valid empty one
    unsigned char *data; // 64-byte aligned
    size_t size;
} scratch;

/// At least `size` bytes, initialized with unspecified values; NULL if memory ran out.
void *tare__scratch_reserve(scratch *s, size_t size);
void tare__scratch_release(scratch *s);

typedef struct workspace {
    thread_pool *pool;        // lent; NULL: the caller works alone
    size_t number;            // index of the first thread among all that may run a layer at once
    size_t least_shared_macs; // with fewer multiply-accumulates the caller works alone
} workspace;

static inline thread_pool *tare__workspace_pool(const workspace *w, size_t macs) {
    return macs >= w->least_shared_macs ? w->pool : NULL;
}

static inline size_t tare__ceil_div(size_t n, size_t step) {
    assert(step > 0);
    return (n + step - 1) / step;
}
static inline size_t tare__round_up(size_t n, size_t step) {
    return tare__ceil_div(n, step) * step;
}
static inline size_t tare__least(size_t a, size_t b) {
    return a < b ? a : b;
}
static inline size_t tare__most(size_t a, size_t b) {
    return a > b ? a : b;
}
/// The rest of n from `first` on, at most `most`.
static inline size_t tare__remaining(size_t n, size_t first, size_t most) {
    return tare__least(n - first, most);
}
/// The number of tasks for this many multiply-accumulates, or work of that duration. A task takes a
/// few microseconds, so that a thread without work waits no longer than it spins.
static inline size_t tare__task_count(size_t macs, size_t threads) {
    enum { TASK_MACS = 1 << 20, LEAST_TASKS = 4, MOST_TASKS = 64 }; // least, most: per thread
    const size_t tasks = macs / TASK_MACS;
    if (threads <= 1) return 1;
    if (tasks < threads * LEAST_TASKS) return threads * LEAST_TASKS;
    return tasks < threads * MOST_TASKS ? tasks : threads * MOST_TASKS;
}
/// The share of n for each of `count` threads, in whole steps.
static inline size_t tare__share(size_t n, size_t count, size_t step) {
    return tare__round_up(tare__ceil_div(n, count), step);
}

#endif
