// SPDX-License-Identifier: Apache-2.0
// What a memory limit admits and refuses, at its edges and near overflow, and its message.
#include "support/test.h"

#include "core/memory/budget.h"

static void more_than_the_limit_is_refused_with_nothing_taken(void **state) {
    (void)state;
    tare_error *err = tare_error_create();
    memory_budget b = {.limit = 1000};
    CHECK_OK(tare__budget_take(&b, 1000, "'a'", err));
    assert_int_equal(tare__budget_take(&b, 1, "'b'", err), TARE_LIMIT_EXCEEDED);
    assert_string_equal(tare_error_message(err),
                        "'b' would take 1 bytes of memory, with 1000 bytes "
                        "already in use; the limit is 1000 bytes");
    assert_non_null(strstr(tare_error_hint(err), "--max-memory"));
    assert_int_equal(b.used, 1000);
    tare_error_destroy(err);
}

static void sums_do_not_overflow(void **state) {
    (void)state;
    memory_budget b = {.limit = UINT64_MAX};
    CHECK_OK(tare__budget_take(&b, UINT64_MAX - 1, "a", NULL));
    assert_int_equal(tare__budget_take(&b, 2, "b", NULL), TARE_LIMIT_EXCEEDED);
    assert_int_equal(tare__budget_take(&b, UINT64_MAX, "b", NULL), TARE_LIMIT_EXCEEDED);
    CHECK_OK(tare__budget_take(&b, 1, "b", NULL));
}

static tare_status all_is_free(void *user, uint64_t *used, tare_error *err) {
    (void)err;
    ++*(int *)user;
    *used = 0;
    return TARE_OK;
}

static void what_was_given_back_is_counted_when_little_is_left(void **state) {
    (void)state;
    int count = 0;
    memory_budget b = {.limit = 10, .recount = all_is_free, .user = &count};
    CHECK_OK(tare__budget_take(&b, 6, "a", NULL));
    assert_int_equal(count, 0);
    CHECK_OK(tare__budget_take(&b, 6, "b", NULL));
    assert_int_equal(count, 1);
    assert_int_equal(b.used, 6);
}

static void files_may_take_a_multiple_of_their_size(void **state) {
    (void)state;
    const uint64_t memory = tare__machine_memory(), gib = (uint64_t)1 << 30;
    assert_int_equal(tare__file_budget(5, 100).limit, 5);
    assert_int_equal(tare__file_budget(0, 100).limit, gib < memory ? gib : memory);
    assert_int_equal(tare__file_budget(0, UINT64_MAX).limit, memory);
    if (memory >= 2 * gib) assert_int_equal(tare__file_budget(0, gib / 8).limit, 2 * gib);
    assert_int_equal(tare__run_budget(0).limit, memory);
    assert_int_equal(tare__run_budget(7).limit, 7);
}

static void sizes_are_said_in_units(void **state) {
    (void)state;
    char text[BYTES_TEXT];
    assert_string_equal(tare__bytes_text(1023, text), "1023 bytes");
    assert_string_equal(tare__bytes_text(1024, text), "1.0 KiB");
    assert_string_equal(tare__bytes_text((uint64_t)37 << 30, text), "37 GiB");
    assert_string_equal(tare__bytes_text(UINT64_MAX, text), "16 EiB");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_than_the_limit_is_refused_with_nothing_taken),
        cmocka_unit_test(sums_do_not_overflow),
        cmocka_unit_test(what_was_given_back_is_counted_when_little_is_left),
        cmocka_unit_test(files_may_take_a_multiple_of_their_size),
        cmocka_unit_test(sizes_are_said_in_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
