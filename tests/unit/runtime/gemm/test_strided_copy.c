// SPDX-License-Identifier: Apache-2.0
// Strided copies move every element to its index, whatever the steps and however the work is cut.
#include "support/test.h"

#include "runtime/gemm/strided_copy.h"

enum { MOST = 1 << 17, MOST_DIMS = 5 };

static uint32_t next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static thread_pool *pool; // of three threads
static unsigned char x[MOST * 8], y[MOST * 8 + 8], expected[MOST * 8 + 8];

static void copy_each(size_t element, int64_t offset, const copy_loop *loops, size_t count,
                      int64_t from, int64_t to) {
    if (count == 0) {
        memcpy(expected + (size_t)to * element, x + (size_t)(from + offset) * element, element);
        return;
    }
    for (int64_t i = 0; i < loops[0].size; i++)
        copy_each(element, offset, loops + 1, count - 1, from + i * loops[0].from,
                  to + i * loops[0].to);
}

static int64_t elements_of(const copy_loop *loops, size_t count) {
    int64_t product = 1;
    for (size_t i = 0; i < count; i++) product *= loops[i].size;
    return product;
}

static void check(size_t element, int64_t offset, const copy_loop *loops, size_t count) {
    memset(y, 0xA5, sizeof y);
    memset(expected, 0xA5, sizeof expected);
    copy_each(element, offset, loops, count, 0, 0);
    const strided_copy c = tare__strided_copy_of(element, offset, loops, count);
    assert_int_equal(tare__strided_copy_elements(&c), elements_of(loops, count));
    for (size_t i = (size_t)c.units; i-- > 0;) tare__strided_copy_units(&c, i, i + 1, x, y);
    assert_memory_equal(y, expected, sizeof y);
    memset(y, 0xA5, sizeof y);
    tare__strided_copy_run(&c, pool, x, y);
    assert_memory_equal(y, expected, sizeof y);
}

static void shuffle(uint64_t *state, int *order, int count) {
    for (int i = 0; i < count; i++) order[i] = i;
    for (int i = count - 1; i > 0; i--) {
        const int k = (int)(next(state) % (uint32_t)(i + 1)), old = order[i];
        order[i] = order[k];
        order[k] = old;
    }
}

// Dimensions of x and of y in orders of their own; some are repeated, some leave elements out, of y
// too.
static void check_random(uint64_t *state, int64_t most_size) {
    copy_loop loops[MOST_DIMS];
    int order[MOST_DIMS];
    const int count = 1 + (int)(next(state) % MOST_DIMS);
    const size_t element = (size_t)1 << next(state) % 4;
    int64_t from = 1, to = 1;
    for (int d = 0; d < count; d++) loops[d].size = 1 + next(state) % (uint32_t)most_size;
    shuffle(state, order, count);
    for (int d = 0; d < count; d++) {
        copy_loop *l = &loops[order[d]];
        const uint32_t kind = next(state) % 8;
        const int64_t step = kind == 0 ? 0 : kind == 1 ? 2 : 1;
        l->from = step * from;
        if (step > 0) from *= step * l->size;
        if (from > MOST / 2) return;
    }
    shuffle(state, order, count);
    if (next(state) % 4 == 0) to = 2 + next(state) % 3;
    for (int d = 0; d < count; d++) {
        loops[order[d]].to = to;
        to *= loops[order[d]].size;
        if (to > MOST / 2) return;
    }
    check(element, next(state) % 100, loops, (size_t)count);
}

static void every_element_finds_its_place(void **state) {
    uint64_t seed = 5;
    (void)state;
    for (size_t i = 0; i < sizeof x; i++) x[i] = (unsigned char)next(&seed);
    for (int i = 0; i < 1500; i++) check_random(&seed, i % 3 == 0 ? 40 : 6);
}

static void long_loops_are_cut(void **state) {
    (void)state;
    check(1, 3, (copy_loop[]){{100000, 1, 1}}, 1);
    check(4, 0, (copy_loop[]){{50001, 2, 1}}, 1);
    check(2, 0, (copy_loop[]){{300, 1, 301}, {301, 300, 1}}, 2);
    check(8, 0, (copy_loop[]){{3, 30000, 1}, {30000, 1, 3}}, 2);
    check(4, 0, (copy_loop[]){{40000, 1, 2}, {2, 0, 1}}, 2);
    check(4, 7, NULL, 0);
}

static void two_lines_are_interleaved(void **state) {
    (void)state;
    for (size_t element = 1; element <= 8; element *= 2)
        for (int64_t line = 1; line <= 70; line++) {
            check(element, 0, (copy_loop[]){{line, 1, 2}, {2, line, 1}}, 2);
            check(element, 1, (copy_loop[]){{5, 3 * line, 2 * line}, {line, 1, 2}, {2, line, 1}},
                  3);
        }
}

static void copies_of_everything_in_order_are_known(void **state) {
    (void)state;
    const copy_loop same[] = {{4, 6, 6}, {2, 3, 3}, {3, 1, 1}}, turned[] = {{4, 1, 6}, {6, 4, 1}};
    strided_copy c = tare__strided_copy_of(4, 0, same, 3);
    assert_true(tare__strided_copy_is_same(&c));
    c = tare__strided_copy_of(4, 1, same, 3);
    assert_false(tare__strided_copy_is_same(&c));
    c = tare__strided_copy_of(4, 0, turned, 2);
    assert_false(tare__strided_copy_is_same(&c));
}

static int create_pool(void **state) {
    (void)state;
    return tare__thread_pool_create(3, &pool, NULL) == TARE_OK ? 0 : -1;
}

static int destroy_pool(void **state) {
    (void)state;
    tare__thread_pool_destroy(pool);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_element_finds_its_place),
        cmocka_unit_test(long_loops_are_cut),
        cmocka_unit_test(two_lines_are_interleaved),
        cmocka_unit_test(copies_of_everything_in_order_are_known),
    };
    return cmocka_run_group_tests(tests, create_pool, destroy_pool);
}
