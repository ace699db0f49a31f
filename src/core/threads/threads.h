// SPDX-License-Identifier: Apache-2.0
// A pool of threads that sleep until there is work. Only the owner submits jobs, and takes part in
// them.
#ifndef CORE_THREADS_THREADS_H
#define CORE_THREADS_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

typedef struct thread_pool thread_pool;

/// Task `index` of a job. worker: the thread that runs it, 0 (the caller) .. thread_count - 1, so
/// that each may have its own memory. Tasks must be independent of each other.
typedef void (*thread_task)(void *user, size_t index, size_t worker);
/// Tasks, or a loop's items, [first, end).
typedef void (*thread_range_task)(void *user, size_t first, size_t end, size_t worker);
/// Items [first, end) of the inner loop, in the outer loop's item `outer`.
typedef void (*thread_nest_task)(void *user, size_t outer, size_t first, size_t end, size_t worker);

/// How many tasks a thread takes at once, 1 <= least <= most: as many as possible while enough are
/// left for idle threads.
typedef struct thread_grain {
    size_t least, most;
} thread_grain;

/// The first item of share `index` where n items are divided as evenly as possible into
/// `share_count` shares; n for index == share_count.
static inline size_t tare__share_begin(size_t n, size_t share_count, size_t index) {
    return n / share_count * index + n % share_count * index / share_count;
}

/// The items [first, end) of a share.
typedef struct share_range {
    int64_t first, end;
} share_range;
static inline share_range tare__share_range(int64_t n, size_t share_count, size_t index) {
    return (share_range){(int64_t)tare__share_begin((size_t)n, share_count, index),
                         (int64_t)tare__share_begin((size_t)n, share_count, index + 1)};
}

/// The number of items, of `each` elements (which may be 0), that have at most `most` elements; at
/// least 1.
static inline size_t tare__grain_of(size_t most, size_t each) {
    return each < most ? most / (each > 0 ? each : 1) : 1;
}

/// The default time that idle threads spin before they sleep: steps follow each other faster than a
/// sleeping thread wakes up.
enum { USUAL_SPIN_US = 5 };

typedef struct thread_settings {
    int thread_count; // at least 1, including the caller
    /// thread_count processors that were checked (core/threads/processors.h), one per thread; NULL:
    /// the system places threads. The first one is that of the caller, which is not moved.
    const int *processors;
    uint32_t spin_us; // 0: idle threads sleep immediately
} thread_settings;

/// A pool of thread_count >= 1 threads, the caller among them, with the usual settings: one thread
/// needs no pool, and *out is NULL. The caller destroys *out.
tare_status tare__thread_pool_create(int thread_count, thread_pool **out, tare_error *err);
/// The same with settings, which are not kept.
tare_status tare__thread_pool_create_with(const thread_settings *settings, thread_pool **out,
                                          tare_error *err);
void tare__thread_pool_destroy(thread_pool *pool); // NULL is allowed
/// The threads of a pool; NULL: 1.
size_t tare__thread_count(const thread_pool *pool);
/// Tells whether more jobs follow soon. Until then spinning threads spin longer, because waking a
/// thread costs more than most jobs take. pool may be NULL.
void tare__thread_pool_expect(thread_pool *pool, bool more);
/// Runs the tasks [0, task_count) once each, in any order, and returns when all are finished. Tasks
/// see what the caller wrote before, and the caller sees what they wrote. pool NULL: the caller
/// runs all tasks in order. For work that is already divided into tasks; for loops use
/// tare__parallel.
void tare__thread_pool_run(thread_pool *pool, size_t task_count, thread_task task, void *user);
/// The same for tasks that are better run in sequence. pool NULL: the caller runs all at once.
void tare__thread_pool_run_ranges(thread_pool *pool, size_t task_count, thread_grain grain,
                                  thread_range_task task, void *user);

/// Runs a loop over the items [0, count), divided among the threads. The body gets ranges that
/// begin at multiples of grain >= 1 and have grain items, or the rest of count; first / grain is
/// the index of the range. Each item is processed once, in any order; with count 0, none. pool
/// NULL: the caller processes all ranges in order.
void tare__parallel(thread_pool *pool, size_t count, size_t grain, thread_range_task body,
                    void *user);
/// The same for a loop over [0, count) within a loop over [0, outer): ranges of the inner loop.
void tare__parallel_nest(thread_pool *pool, size_t outer, size_t count, size_t grain,
                         thread_nest_task body, void *user);
/// The number of ranges of a loop over [0, count).
size_t tare__range_count(size_t count, size_t grain);

#endif
