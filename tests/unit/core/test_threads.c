// SPDX-License-Identifier: Apache-2.0
// The thread pool: every part is done once, by one worker at a time, whatever the numbers.
#include "support/test.h"

#include "core/threads.h"

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
        cmocka_unit_test(a_pool_without_work_ends),
        cmocka_unit_test(one_thread_needs_no_pool),
        cmocka_unit_test(pools_are_independent),
        cmocka_unit_test(creation_survives_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
