// SPDX-License-Identifier: Apache-2.0
// The thread pool: every part is done once, by one worker at a time, whatever the numbers.
#include "support/test.h"

#include <stdatomic.h>
#include <time.h>

#include "core/processors.h"
#include "core/threads.h"
#include "support/processors.h"

enum { MOST_PARTS = 200, MOST_THREADS = 8 };

typedef struct tally {
    int done[MOST_PARTS];
    size_t thread_count;
    size_t parts_of[MOST_THREADS]; // written without a lock: a worker's own
    bool strange;
} tally;

static void count_part(void *user, size_t part, size_t worker) {
    tally *t = user;
    if (worker >= t->thread_count || part >= MOST_PARTS) {
        t->strange = true;
        return;
    }
    t->done[part]++;
    t->parts_of[worker]++;
}

static void check_run(thread_pool *pool, size_t part_count) {
    tally t = {.thread_count = tare__thread_count(pool)};
    tare__thread_pool_run(pool, part_count, count_part, &t);
    size_t sum = 0;
    for (size_t i = 0; i < MOST_PARTS; i++) assert_int_equal(t.done[i], i < part_count ? 1 : 0);
    for (size_t i = 0; i < MOST_THREADS; i++) sum += t.parts_of[i];
    assert_int_equal(sum, part_count);
    assert_false(t.strange);
}

static void every_part_is_done_once(void **state) {
    (void)state;
    for (int threads = 1; threads <= MOST_THREADS; threads++) {
        thread_pool *pool = NULL;
        CHECK_OK(tare__thread_pool_create(threads, &pool, NULL));
        assert_int_equal(tare__thread_count(pool), threads);
        for (size_t parts = 0; parts <= MOST_PARTS; parts++) check_run(pool, parts);
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

static thread_pool *create_pool(int threads, uint32_t spin_us) {
    const thread_settings s = {.thread_count = threads, .spin_us = spin_us};
    thread_pool *pool = NULL;
    CHECK_OK(tare__thread_pool_create_with(&s, &pool, NULL));
    assert_int_equal(tare__thread_count(pool), threads);
    return pool;
}

// Work that comes while workers look, while they go to sleep, and while they sleep.
static void waiting_loses_no_work(void **state) {
    static const uint32_t spins[] = {0, 1, 50, 20000};
    (void)state;
    for (size_t i = 0; i < sizeof spins / sizeof *spins; i++) {
        thread_pool *pool = create_pool(3, spins[i]);
        for (size_t parts = 0; parts <= MOST_PARTS; parts++) {
            tare__thread_pool_expect(pool, parts / 50 % 2 == 1); // within runs and between them
            check_run(pool, parts);
            if (parts % 20 == 0) rest(1);
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

typedef struct places {
    atomic_uint arrived;
    int of_worker[2];
} places;

// Both threads are here at once, so each does one part.
static void note_place(void *user, size_t part, size_t worker) {
    places *p = user;
    (void)part;
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
            places p = {.of_worker = {-1, -1}};
            tare__thread_pool_run(pool, 2, note_place, &p);
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

static void note_order(void *user, size_t part, size_t worker) {
    meeting *m = user;
    (void)worker;
    m->order[part] = part + 1;
}

static void a_part_may_use_another_pool(void *user, size_t part, size_t worker) {
    (void)worker;
    meeting *m = user;
    if (part == 0) tare__thread_pool_run(m->helper, 2, note_order, m);
}

static void pools_are_independent(void **state) {
    (void)state;
    thread_pool *pool = NULL;
    meeting m = {0};
    CHECK_OK(tare__thread_pool_create(2, &pool, NULL));
    CHECK_OK(tare__thread_pool_create(2, &m.helper, NULL));
    tare__thread_pool_run(pool, 2, a_part_may_use_another_pool, &m);
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
