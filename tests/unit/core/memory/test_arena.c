// SPDX-License-Identifier: Apache-2.0
// Blocks of an arena do not overlap, are zeroed and aligned, and are NULL when memory is out.
#include "support/test.h"

#include <stdalign.h>

#include "core/memory/arena.h"

static void pieces_are_zero_aligned_and_apart(void **state) {
    (void)state;
    arena a = {0};
    unsigned char *pieces[500];
    for (size_t i = 0; i < 500; i++) {
        pieces[i] = tare__arena_alloc(&a, i + 1);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % alignof(max_align_t), 0);
        for (size_t b = 0; b <= i; b++) assert_int_equal(pieces[i][b], 0);
        memset(pieces[i], (int)(i % 251), i + 1);
    }
    for (size_t i = 0; i < 500; i++)
        for (size_t b = 0; b <= i; b++) assert_int_equal(pieces[i][b], i % 251);
    tare__arena_release(&a);
    assert_null(a.blocks);
}

static void large_requests_get_room(void **state) {
    (void)state;
    arena a = {0};
    char *large = tare__arena_array(&a, 1 << 20, 3);
    assert_non_null(large);
    memset(large, 1, (size_t)3 << 20);
    assert_non_null(tare__arena_alloc(&a, 0));
    assert_null(tare__arena_array(&a, SIZE_MAX / 2, 3));
    assert_null(tare__arena_alloc(&a, SIZE_MAX));
    tare__arena_release(&a);
}

static void strings_are_copied(void **state) {
    (void)state;
    arena a = {0};
    char source[] = "layer1.0.conv1";
    char *copy = tare__arena_strdup(&a, source), *part = tare__arena_strndup(&a, source, 6);
    source[0] = 'X';
    assert_string_equal(copy, "layer1.0.conv1");
    assert_string_equal(part, "layer1");
    assert_string_equal(tare__arena_printf(&a, "%s_%d", part, 12), "layer1_12");
    assert_string_equal(tare__arena_printf(&a, "%s", ""), "");
    tare__arena_release(&a);
}

static void lost_memory_is_null(void **state) {
    (void)state;
    arena a = {0};
    tare__alloc_fail_at(1);
    assert_null(tare__arena_strdup(&a, "x"));
    tare__alloc_fail_at(1);
    assert_null(tare__arena_printf(&a, "x"));
    tare__alloc_fail_at(0);
    assert_non_null(tare__arena_strdup(&a, "x"));
    tare__arena_release(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_zero_aligned_and_apart),
        cmocka_unit_test(large_requests_get_room),
        cmocka_unit_test(strings_are_copied),
        cmocka_unit_test(lost_memory_is_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
