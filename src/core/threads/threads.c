// SPDX-License-Identifier: Apache-2.0
// A thread pool without locks. The items of a job are divided into one contiguous range per thread,
// so that a thread gets the same rows in consecutive layers; a thread that has finished its range
// takes items from other ranges. Waiting threads spin for some microseconds, longer during a run,
// and then sleep: steps follow each other faster than a sleeping thread wakes up.
#include "core/threads/threads.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "core/threads/processors.h"
#include "core/threads/wait.h"

enum {
    LINE = 64, // bytes of a cache line
    LOOKS = 8, // checks between two readings of the clock
    // During a run: less than the time to wake a thread, and short enough not to matter for threads
    // that share a processor.
    EXPECTING_NS = 20000,
};

// The tasks left in a range: the next one in the low half, the end in the high half.
typedef struct range {
    _Alignas(LINE) _Atomic uint64_t tasks;
} range;

typedef struct worker {
    thread_pool *pool;
    pthread_t thread;
    size_t number;
} worker;

struct thread_pool {
    // The data that the owner writes and workers read at the start of a job is in one cache line.
    _Alignas(LINE) atomic_uint works; // jobs so far; idle workers wait for a change
    atomic_uint sleepers;
    atomic_bool is_ending;
    atomic_bool expects;   // more work follows soon
    uint32_t thread_count; // including the owner
    thread_range_task task;
    void *user;
    _Atomic uint64_t grain; // least and most, as a range
    range *ranges;          // one for each thread
    uint64_t spin_ns;
    _Alignas(LINE) atomic_uint left; // unfinished tasks; the owner waits for 0
    atomic_bool owner_sleeps;
    worker *workers;
    size_t started; // number of threads
};

// --- tasks ---

static uint64_t range_of(size_t first, size_t end) {
    return (uint64_t)end << 32 | (uint32_t)first;
}

static size_t within(size_t count, size_t least, size_t most) {
    return count < least ? least : count > most ? most : count;
}

// The owner of a range takes up to three quarters of the rest from its front; other threads take
// half of it from the end; both within the grain.
static bool take(thread_pool *pool, range *r, bool is_own, size_t *first, size_t *end) {
    uint64_t tasks = atomic_load_explicit(&r->tasks, memory_order_acquire);
    for (;;) {
        const size_t from = (uint32_t)tasks, to = tasks >> 32, left = to - from;
        if (from >= to) return false;
        const uint64_t grain = atomic_load_explicit(&pool->grain, memory_order_relaxed);
        const size_t wished = is_own ? left - left / 4 : left / 2;
        size_t count = within(wished, (uint32_t)grain, grain >> 32);
        if (count > left) count = left;
        *first = is_own ? from : to - count;
        *end = *first + count;
        const uint64_t rest = is_own ? range_of(from + count, to) : range_of(from, to - count);
        if (atomic_compare_exchange_weak_explicit(&r->tasks, &tasks, rest, memory_order_acquire,
                                                  memory_order_acquire))
            return true;
    }
}

// Tasks that were taken belong to the current job: the owner starts no other job before all threads
// have reported their finished tasks.
static void take_tasks(thread_pool *pool, size_t number) {
    const size_t threads = pool->thread_count;
    size_t done = 0, first, end;
    for (size_t i = 0; i < threads; i++)
        while (take(pool, &pool->ranges[(number + i) % threads], i == 0, &first, &end)) {
            pool->task(pool->user, first, end, number);
            done += end - first;
        }
    if (done == 0) return;
    const bool was_last = atomic_fetch_sub(&pool->left, (unsigned)done) == done;
    if (was_last && atomic_load(&pool->owner_sleeps)) tare__wake(&pool->left, 1);
}

static void deal(thread_pool *pool, size_t task_count) {
    const size_t threads = pool->thread_count;
    for (size_t i = 0; i < threads; i++) {
        const size_t first = tare__share_begin(task_count, threads, i);
        const size_t end = tare__share_begin(task_count, threads, i + 1);
        atomic_store_explicit(&pool->ranges[i].tasks, range_of(first, end), memory_order_release);
    }
}

// --- waiting ---

// The end of a run is noticed immediately.
static uint64_t spin_of(const thread_pool *pool) {
    const bool expects = atomic_load_explicit(&pool->expects, memory_order_relaxed);
    return expects && pool->spin_ns < EXPECTING_NS ? EXPECTING_NS : pool->spin_ns;
}

// Spins for a while until the word changes; false: it has changed.
static bool stays(const thread_pool *pool, atomic_uint *word, unsigned value) {
    if (pool->spin_ns == 0) return true; // a sleeping thread checks again
    const uint64_t begin = tare__now_ns();
    do {
        for (int i = 0; i < LOOKS; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) != value) return false;
            tare__pause();
        }
    } while (tare__now_ns() - begin < spin_of(pool));
    return true;
}

static void wait_for_work(thread_pool *pool, unsigned seen) {
    if (!stays(pool, &pool->works, seen)) return;
    atomic_fetch_add(&pool->sleepers, 1);
    while (atomic_load(&pool->works) == seen) tare__wait_while(&pool->works, seen);
    atomic_fetch_sub(&pool->sleepers, 1);
}

static void wait_for_tasks(thread_pool *pool) {
    unsigned left;
    while ((left = atomic_load(&pool->left)) != 0) {
        if (!stays(pool, &pool->left, left)) continue;
        atomic_store(&pool->owner_sleeps, true);
        left = atomic_load(&pool->left);
        if (left != 0) tare__wait_while(&pool->left, left);
        atomic_store(&pool->owner_sleeps, false);
    }
}

static void announce(thread_pool *pool, size_t task_count) {
    atomic_fetch_add(&pool->works, 1);
    if (atomic_load(&pool->sleepers) > 0) tare__wake(&pool->works, (unsigned)task_count);
}

static void *work(void *user) {
    const worker *self = user;
    thread_pool *pool = self->pool;
    for (;;) {
        const unsigned seen = atomic_load(&pool->works);
        if (atomic_load(&pool->is_ending)) return NULL;
        take_tasks(pool, self->number);
        wait_for_work(pool, seen);
    }
}

// --- pools ---

static tare_status start_worker(thread_pool *pool, const thread_settings *s, tare_error *err) {
    worker *w = &pool->workers[pool->started];
    const size_t number = pool->started + 1;
    *w = (worker){.pool = pool, .number = number};
    if (pthread_create(&w->thread, NULL, work, w) != 0)
        return tare__fail(err, TARE_OUT_OF_MEMORY,
                          "the system provides %zu threads, %d were requested", number,
                          s->thread_count);
    pool->started++;
    return s->processors != NULL ? tare__thread_keep(w->thread, s->processors[number], err)
                                 : TARE_OK;
}

// Signals are for the program: workers block them.
static tare_status start_workers(thread_pool *pool, const thread_settings *s, tare_error *err) {
    sigset_t all, before;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return tare__out_of_memory(err);
    tare_status status = TARE_OK;
    while (status == TARE_OK && pool->started + 1 < pool->thread_count)
        status = start_worker(pool, s, err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

static thread_pool *create_pool(const thread_settings *s) {
    const size_t count = (size_t)s->thread_count;
    thread_pool *pool = tare__alloc_aligned(sizeof *pool, LINE);
    if (pool == NULL) return NULL;
    *pool = (thread_pool){.thread_count = (uint32_t)count,
                          .spin_ns = (uint64_t)s->spin_us * 1000,
                          .workers = tare__alloc_zeroed(count, sizeof *pool->workers),
                          .ranges = tare__alloc_aligned(count * sizeof(range), LINE)};
    if (pool->workers == NULL || pool->ranges == NULL) {
        tare__thread_pool_destroy(pool);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) atomic_init(&pool->ranges[i].tasks, 0);
    return pool;
}

tare_status tare__thread_pool_create_with(const thread_settings *settings, thread_pool **out,
                                          tare_error *err) {
    *out = NULL;
    if (settings->thread_count <= 1) return TARE_OK;
    thread_pool *pool = create_pool(settings);
    if (pool == NULL) return tare__out_of_memory(err);
    const tare_status status = start_workers(pool, settings, err);
    if (status == TARE_OK)
        *out = pool;
    else
        tare__thread_pool_destroy(pool);
    return status;
}

tare_status tare__thread_pool_create(int thread_count, thread_pool **out, tare_error *err) {
    const thread_settings usual = {.thread_count = thread_count, .spin_us = USUAL_SPIN_US};
    return tare__thread_pool_create_with(&usual, out, err);
}

void tare__thread_pool_destroy(thread_pool *pool) {
    if (pool == NULL) return;
    atomic_store(&pool->is_ending, true);
    announce(pool, pool->thread_count);
    for (size_t i = 0; i < pool->started; i++) pthread_join(pool->workers[i].thread, NULL);
    tare__free(pool->workers);
    tare__free_aligned(pool->ranges);
    tare__free_aligned(pool);
}

size_t tare__thread_count(const thread_pool *pool) {
    return pool != NULL ? pool->thread_count : 1;
}

void tare__thread_pool_expect(thread_pool *pool, bool more) {
    if (pool != NULL) atomic_store_explicit(&pool->expects, more, memory_order_relaxed);
}

void tare__thread_pool_run_ranges(thread_pool *pool, size_t task_count, thread_grain grain,
                                  thread_range_task task, void *user) {
    assert(grain.least >= 1 && grain.least <= grain.most);
    if (task_count == 0) return;
    if (pool == NULL || task_count <= grain.least) {
        task(user, 0, task_count, 0);
        return;
    }
    assert(task_count <= UINT32_MAX && grain.most <= UINT32_MAX);
    pool->task = task;
    pool->user = user;
    atomic_store_explicit(&pool->grain, range_of(grain.least, grain.most), memory_order_relaxed);
    atomic_store(&pool->left, (unsigned)task_count);
    deal(pool, task_count);
    announce(pool, task_count - 1);
    take_tasks(pool, 0);
    wait_for_tasks(pool);
}

typedef struct single_tasks {
    thread_task task;
    void *user;
} single_tasks;

static void do_each(void *user, size_t first, size_t end, size_t number) {
    const single_tasks *s = user;
    for (size_t i = first; i < end; i++) s->task(s->user, i, number);
}

void tare__thread_pool_run(thread_pool *pool, size_t task_count, thread_task task, void *user) {
    single_tasks s = {task, user};
    tare__thread_pool_run_ranges(pool, task_count, (thread_grain){1, 1}, do_each, &s);
}

// --- loops ---

typedef struct parallel_loop {
    size_t count, grain, ranges; // items of a range; ranges of an outer item
    thread_range_task body;
    thread_nest_task nest_body;
    void *user;
} parallel_loop;

static size_t end_of(const parallel_loop *l, size_t first) {
    return l->count - first < l->grain ? l->count : first + l->grain;
}

static void do_range(void *user, size_t index, size_t number) {
    const parallel_loop *l = user;
    const size_t first = index * l->grain;
    l->body(l->user, first, end_of(l, first), number);
}

static void do_nested_range(void *user, size_t index, size_t number) {
    const parallel_loop *l = user;
    const size_t first = index % l->ranges * l->grain;
    l->nest_body(l->user, index / l->ranges, first, end_of(l, first), number);
}

size_t tare__range_count(size_t count, size_t grain) {
    if (count == 0) return 0;
    assert(grain >= 1);
    return count / grain + (count % grain != 0);
}

void tare__parallel(thread_pool *pool, size_t count, size_t grain, thread_range_task body,
                    void *user) {
    const size_t ranges = tare__range_count(count, grain);
    parallel_loop l = {count, grain, ranges, .body = body, .user = user};
    tare__thread_pool_run(pool, ranges, do_range, &l);
}

void tare__parallel_nest(thread_pool *pool, size_t outer, size_t count, size_t grain,
                         thread_nest_task body, void *user) {
    const size_t ranges = tare__range_count(count, grain);
    parallel_loop l = {count, grain, ranges, .nest_body = body, .user = user};
    tare__thread_pool_run(pool, outer * ranges, do_nested_range, &l);
}
