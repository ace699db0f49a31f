// SPDX-License-Identifier: Apache-2.0
// Allocations: overflow of sizes, alignment, zeroed memory, and a failure of the n-th request.
#include "support/test.h"

static void sizes_that_overflow_are_refused(void **state) {
    (void)state;
    size_t out = 7;
    assert_false(tare__mul_size(SIZE_MAX / 2, 3, &out));
    assert_false(tare__add_size(SIZE_MAX, 1, &out));
    assert_int_equal(out, 7);
    assert_true(tare__mul_size(0, SIZE_MAX, &out) && out == 0);
    assert_true(tare__add_size(SIZE_MAX - 1, 1, &out) && out == SIZE_MAX);
    assert_null(tare__realloc_array(NULL, SIZE_MAX / 2, 4));
    assert_null(tare__alloc_zeroed(SIZE_MAX / 2, 4));
    assert_null(tare__alloc_aligned(SIZE_MAX - 8, 64));
    assert_null(tare__alloc_lines(SIZE_MAX / 2, 4));
}

static void no_bytes_are_memory_too(void **state) {
    (void)state;
    void *blocks[] = {tare__alloc(0), tare__alloc_zeroed(0, 4), tare__realloc_array(NULL, 0, 4)};
    for (size_t i = 0; i < 3; i++) {
        assert_non_null(blocks[i]);
        tare__free(blocks[i]);
    }
}

static void large_memory_is_whole_lines_or_pages(void **state) {
    (void)state;
    assert_null(tare__alloc_large(SIZE_MAX - 8));
    assert_int_equal(tare__large_size(SIZE_MAX - 8), SIZE_MAX - 8);
    assert_int_equal(tare__large_size(100), 100);
    assert_int_equal(tare__large_size(((size_t)8 << 20) + 1), (size_t)10 << 20);
    for (size_t size = 0; size <= (size_t)16 << 20; size = 3 * size + 1) {
        unsigned char *memory = tare__alloc_large(size);
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % 64, 0);
        memory[0] = 1;
        if (size > 0) memory[size - 1] = 1;
        tare__free_aligned(memory);
    }
}

static void lines_are_zero_and_begin_on_one(void **state) {
    (void)state;
    for (size_t count = 0; count < 100; count++) {
        int32_t *memory = tare__alloc_lines(count, sizeof *memory);
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % 64, 0);
        for (size_t i = 0; i < count; i++) assert_int_equal(memory[i], 0);
        memset(memory, 1, count * sizeof *memory);
        tare__free_aligned(memory);
    }
}

static void aligned_memory_is_aligned(void **state) {
    (void)state;
    for (size_t alignment = 1; alignment <= 4096; alignment *= 2) {
        void *memory = tare__alloc_aligned(100, alignment);
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % alignment, 0);
        memset(memory, 1, 100);
        tare__free_aligned(memory);
    }
}

static void a_growing_array_keeps_its_elements(void **state) {
    (void)state;
    int *list = NULL;
    size_t capacity = 0;
    for (size_t count = 0; count < 1000; count++) {
        assert_true(tare__grow((void **)&list, &capacity, count, sizeof *list));
        list[count] = (int)count;
    }
    for (int i = 0; i < 1000; i++) assert_int_equal(list[i], i);
    const size_t before = capacity;
    tare__alloc_fail_at(1);
    assert_false(tare__grow((void **)&list, &capacity, capacity, sizeof *list));
    tare__alloc_fail_at(0);
    assert_int_equal(capacity, before);
    assert_int_equal(list[999], 999);
    tare__free(list);
}

static void exactly_the_ordered_request_fails(void **state) {
    (void)state;
    tare__alloc_fail_at(2);
    char *first = tare__strdup("a");
    assert_false(tare__alloc_failed());
    char *second = tare__strdup("b");
    assert_true(tare__alloc_failed());
    char *third = tare__strndup("cde", 1);
    tare__alloc_fail_at(0);
    assert_string_equal(first, "a");
    assert_null(second);
    assert_string_equal(third, "c");
    assert_false(tare__alloc_failed());
    tare__free(first);
    tare__free(third);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_that_overflow_are_refused),
        cmocka_unit_test(no_bytes_are_memory_too),
        cmocka_unit_test(lines_are_zero_and_begin_on_one),
        cmocka_unit_test(aligned_memory_is_aligned),
        cmocka_unit_test(large_memory_is_whole_lines_or_pages),
        cmocka_unit_test(a_growing_array_keeps_its_elements),
        cmocka_unit_test(exactly_the_ordered_request_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
