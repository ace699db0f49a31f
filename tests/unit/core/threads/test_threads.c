// SPDX-License-Identifier: Apache-2.0
// The thread pool: every task runs once, by one worker at a time, whatever the numbers.
#include "support/test.h"

#include <stdatomic.h>
#include <time.h>

#include "core/threads/processors.h"
#include "core/threads/threads.h"
#include "support/processors.h"

enum { MOST_TASKS = 200, MOST_THREADS = 8 };

typedef struct tally {
    int done[MOST_TASKS];
    size_t thread_count;
    size_t parts_of[MOST_THREADS]; // written without a lock: a worker's own
    bool strange;
} tally;

static void count_task(void *user, size_t index, size_t worker) {
    tally *t = user;
    if (worker >= t->thread_count || index >= MOST_TASKS) {
        t->strange = true;
        return;
    }
    t->done[index]++;
    t->parts_of[worker]++;
}

static void check_tally(const tally *all, size_t task_count) {
    const tally t = *all;
    size_t sum = 0;
    for (size_t i = 0; i < MOST_TASKS; i++) assert_int_equal(t.done[i], i < task_count ? 1 : 0);
    for (size_t i = 0; i < MOST_THREADS; i++) sum += t.parts_of[i];
    assert_int_equal(sum, task_count);
    assert_false(t.strange);
}

static void check_run(thread_pool *pool, size_t task_count) {
    tally t = {.thread_count = tare__thread_count(pool)};
    tare__thread_pool_run(pool, task_count, count_task, &t);
    check_tally(&t, task_count);
}

typedef struct range_tally {
    tally tasks; // first, so that count_task serves
    thread_grain grain;
} range_tally;

// What is left of a range at its end, and of one that others took from, may be less than a grain.
static void count_range(void *user, size_t first, size_t end, size_t worker) {
    range_tally *r = user;
    if (first >= end || end - first > r->grain.most) r->tasks.strange = true;
    for (size_t i = first; i < end; i++) count_task(&r->tasks, i, worker);
}

static thread_pool *create_pool(int threads, uint32_t spin_us) {
    const thread_settings s = {.thread_count = threads, .spin_us = spin_us};
    thread_pool *pool = NULL;
    CHECK_OK(tare__thread_pool_create_with(&s, &pool, NULL));
    assert_int_equal(tare__thread_count(pool), threads);
    return pool;
}

static void every_part_of_a_range_is_done_once(void **state) {
    static const thread_grain grains[] = {{1, 1}, {1, MOST_TASKS}, {3, 7}, {20, 20}, {50, 300}};
    (void)state;
    for (int threads = 2; threads <= MOST_THREADS; threads += 3)
        for (size_t g = 0; g < sizeof grains / sizeof *grains; g++) {
            thread_pool *pool = create_pool(threads, USUAL_SPIN_US);
            for (size_t tasks = 0; tasks <= MOST_TASKS; tasks++) {
                range_tally r = {.tasks.thread_count = (size_t)threads, .grain = grains[g]};
                tare__thread_pool_run_ranges(pool, tasks, grains[g], count_range, &r);
                check_tally(&r.tasks, tasks);
            }
            tare__thread_pool_destroy(pool);
        }
}

typedef struct only_range {
    size_t first, end, calls;
} only_range;

static void keep_range(void *user, size_t first, size_t end, size_t worker) {
    only_range *o = user;
    assert_int_equal(worker, 0);
    *o = (only_range){first, end, o->calls + 1};
}

static void one_thread_and_few_parts_are_done_at_once(void **state) {
    (void)state;
    thread_pool *pool = create_pool(2, USUAL_SPIN_US);
    only_range alone = {0}, few = {0}, none = {0};
    tare__thread_pool_run_ranges(NULL, 100, (thread_grain){1, 2}, keep_range, &alone);
    tare__thread_pool_run_ranges(pool, 5, (thread_grain){5, 9}, keep_range, &few);
    tare__thread_pool_run_ranges(pool, 0, (thread_grain){1, 2}, keep_range, &none);
    tare__thread_pool_destroy(pool);
    assert_int_equal(alone.calls, 1);
    assert_int_equal(alone.end, 100);
    assert_int_equal(few.calls, 1);
    assert_int_equal(few.end, 5);
    assert_int_equal(none.calls, 0);
}

typedef struct loop_tally {
    tally items; // of all outer items, one after the other
    size_t count, grain, calls[MOST_THREADS];
} loop_tally;

static void count_nested(void *user, size_t outer, size_t first, size_t end, size_t worker) {
    loop_tally *l = user;
    const size_t left = l->count - first, expected = left < l->grain ? left : l->grain;
    if (first % l->grain != 0 || end - first != expected) l->items.strange = true;
    for (size_t i = first; i < end; i++) count_task(&l->items, outer * l->count + i, worker);
    l->calls[worker]++;
}

static void count_items(void *user, size_t first, size_t end, size_t worker) {
    count_nested(user, 0, first, end, worker);
}

static void check_loop(thread_pool *pool, size_t outer, size_t count, size_t grain) {
    loop_tally l = {.items.thread_count = tare__thread_count(pool), .count = count, .grain = grain};
    size_t calls = 0;
    if (outer == 1)
        tare__parallel(pool, count, grain, count_items, &l);
    else
        tare__parallel_nest(pool, outer, count, grain, count_nested, &l);
    for (size_t i = 0; i < MOST_THREADS; i++) calls += l.calls[i];
    assert_int_equal(calls, outer * tare__range_count(count, grain));
    check_tally(&l.items, outer * count);
}

static void a_loop_does_every_item_once_in_ranges_of_its_grain(void **state) {
    static const size_t counts[] = {0, 1, 2, 9, 10, 11, 50}, grains[] = {1, 2, 5, 10, 64, SIZE_MAX};
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        thread_pool *pool = NULL;
        CHECK_OK(tare__thread_pool_create(threads, &pool, NULL));
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            for (size_t g = 0; g < sizeof grains / sizeof *grains; g++)
                for (size_t outer = 0; outer <= 4; outer++)
                    check_loop(pool, outer, counts[c], grains[g]);
        tare__thread_pool_destroy(pool);
    }
}

static void a_grain_fits_into_a_part(void **state) {
    (void)state;
    assert_int_equal(tare__grain_of(100, 7), 14);
    assert_int_equal(tare__grain_of(100, 100), 1);
    assert_int_equal(tare__grain_of(100, 101), 1);
    assert_int_equal(tare__range_count(11, 5), 3);
    assert_int_equal(tare__range_count(0, 0), 0); // no items, no grain
}

static void every_part_is_done_once(void **state) {
    (void)state;
    for (int threads = 1; threads <= MOST_THREADS; threads++) {
        thread_pool *pool = NULL;
        CHECK_OK(tare__thread_pool_create(threads, &pool, NULL));
        assert_int_equal(tare__thread_count(pool), threads);
        for (size_t tasks = 0; tasks <= MOST_TASKS; tasks++) check_run(pool, tasks);
        tare__thread_pool_destroy(pool);
    }
}

static void rest(long ms) {
    (void)nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static double now_s(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Work that comes while workers look, while they go to sleep, and while they sleep.
static void waiting_loses_no_work(void **state) {
    static const uint32_t spins[] = {0, 1, 50, 20000};
    (void)state;
    for (size_t i = 0; i < sizeof spins / sizeof *spins; i++) {
        thread_pool *pool = create_pool(3, spins[i]);
        for (size_t tasks = 0; tasks <= MOST_TASKS; tasks++) {
            tare__thread_pool_expect(pool, tasks / 50 % 2 == 1); // within runs and between them
            check_run(pool, tasks);
            if (tasks % 20 == 0) rest(1);
        }
        tare__thread_pool_destroy(pool);
    }
}

static void a_pool_ends_while_its_workers_look_or_sleep(void **state) {
    (void)state;
    for (int i = 0; i < 20; i++) {
        thread_pool *looks = create_pool(3, 1000000000), *sleeps = create_pool(3, 0);
        tare__thread_pool_expect(looks, i % 2 == 0);
        tare__thread_pool_expect(sleeps, i % 2 == 0);
        check_run(looks, 9);
        check_run(sleeps, 9);
        if (i % 4 == 0) rest(2);
        tare__thread_pool_destroy(sleeps);
        const double begin = now_s();
        tare__thread_pool_destroy(looks);
        assert_true(now_s() - begin < 500); // they need not look to the end
    }
}

typedef struct processors_used {
    atomic_uint arrived;
    int of_worker[2];
} processors_used;

// Both threads are here at once, so each runs one task.
static void note_processor(void *user, size_t index, size_t worker) {
    processors_used *p = user;
    (void)index;
    atomic_fetch_add(&p->arrived, 1);
    while (atomic_load(&p->arrived) < 2) rest(0);
    p->of_worker[worker] = current_processor();
}

static void workers_stay_on_their_processors_and_the_caller_where_it_is(void **state) {
    (void)state;
    int own[2];
    thread_pool *pool = NULL;
    if (allowed_processors(own, 2) < 2) skip();
    for (int turn = 0; turn < 2; turn++) {
        const thread_settings s = {.thread_count = 2, .processors = own, .spin_us = 5};
        CHECK_OK(tare__processors_check(own, 2, NULL));
        CHECK_OK(tare__thread_pool_create_with(&s, &pool, NULL));
        for (int i = 0; i < 50; i++) {
            processors_used p = {.of_worker = {-1, -1}};
            tare__thread_pool_run(pool, 2, note_processor, &p);
            assert_int_equal(p.of_worker[1], own[1]);
        }
        int left[2];
        assert_int_equal(allowed_processors(left, 2), 2);
        tare__thread_pool_destroy(pool);
        const int first = own[0];
        own[0] = own[1];
        own[1] = first;
    }
}

static void a_pool_without_work_ends(void **state) {
    (void)state;
    for (int i = 0; i < 50; i++) {
        thread_pool *pool = NULL;
        CHECK_OK(tare__thread_pool_create(3, &pool, NULL));
        tare__thread_pool_destroy(pool);
    }
}

static void one_thread_needs_no_pool(void **state) {
    (void)state;
    thread_pool *pool = NULL;
    CHECK_OK(tare__thread_pool_create(1, &pool, NULL));
    assert_null(pool);
    assert_int_equal(tare__thread_count(pool), 1);
    tare__thread_pool_expect(pool, true);
    check_run(pool, 7);
    tare__thread_pool_destroy(pool);
}

typedef struct meeting {
    thread_pool *helper;
    size_t order[2];
} meeting;

static void note_order(void *user, size_t index, size_t worker) {
    meeting *m = user;
    (void)worker;
    m->order[index] = index + 1;
}

static void a_task_may_use_another_pool(void *user, size_t index, size_t worker) {
    (void)worker;
    meeting *m = user;
    if (index == 0) tare__thread_pool_run(m->helper, 2, note_order, m);
}

static void pools_are_independent(void **state) {
    (void)state;
    thread_pool *pool = NULL;
    meeting m = {0};
    CHECK_OK(tare__thread_pool_create(2, &pool, NULL));
    CHECK_OK(tare__thread_pool_create(2, &m.helper, NULL));
    tare__thread_pool_run(pool, 2, a_task_may_use_another_pool, &m);
    assert_int_equal(m.order[0], 1);
    assert_int_equal(m.order[1], 2);
    tare__thread_pool_destroy(m.helper);
    tare__thread_pool_destroy(pool);
}

static void creation_survives_every_failed_allocation(void **state) {
    (void)state;
    tare_status status;
    thread_pool *pool = NULL;
    EVERY_ALLOCATION_FAILS(status, status = tare__thread_pool_create(3, &pool, NULL),
                           tare__thread_pool_destroy(pool))
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_part_is_done_once),
        cmocka_unit_test(every_part_of_a_range_is_done_once),
        cmocka_unit_test(a_loop_does_every_item_once_in_ranges_of_its_grain),
        cmocka_unit_test(a_grain_fits_into_a_part),
        cmocka_unit_test(one_thread_and_few_parts_are_done_at_once),
        cmocka_unit_test(waiting_loses_no_work),
        cmocka_unit_test(a_pool_ends_while_its_workers_look_or_sleep),
        cmocka_unit_test(workers_stay_on_their_processors_and_the_caller_where_it_is),
        cmocka_unit_test(a_pool_without_work_ends),
        cmocka_unit_test(one_thread_needs_no_pool),
        cmocka_unit_test(pools_are_independent),
        cmocka_unit_test(creation_survives_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
