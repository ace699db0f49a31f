// SPDX-License-Identifier: Apache-2.0
// Lists of processors.
#include "support/test.h"

#include "core/threads/processors.h"
#include "support/processors.h"

static void check_list(const char *chars, const int *expected, size_t expected_count) {
    int *found = NULL;
    size_t count = 0;
    CHECK_OK(tare__processors_read(chars, &found, &count, NULL));
    assert_int_equal(count, expected_count);
    assert_memory_equal(found, expected, count * sizeof *found);
    tare__free(found);
}

static void numbers_and_ranges_keep_their_order(void **state) {
    (void)state;
    check_list("0", (int[]){0}, 1);
    check_list("7,0,2-5", (int[]){7, 0, 2, 3, 4, 5}, 6);
    check_list("8190-8191,3-3", (int[]){8190, 8191, 3}, 3);
}

static void other_texts_are_refused(void **state) {
    static const char *const texts[] = {"",    ",",      "0,",      "0,,1",
                                        "-1",  "2-",     "5-2",     "0 ,1",
                                        "all", "0-8192", "1,2,0-1", "99999999999999999999",
                                        "3,3", "0-1-2"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        int *found = NULL;
        size_t count = 0;
        assert_int_equal(tare__processors_read(texts[i], &found, &count, NULL),
                         TARE_INVALID_ARGUMENT);
        assert_null(found);
    }
}

static void processors_of_others_are_refused_with_our_own_named(void **state) {
    (void)state;
    int own[2];
    const size_t count = allowed_processors(own, 2);
    if (count < 2) skip();
    tare_error *err = tare_error_create();
    CHECK_OK(tare__processors_check(own, 2, err));
    assert_int_equal(tare__processors_check((int[]){own[0], 8191}, 2, err), TARE_INVALID_ARGUMENT);
    assert_non_null(strstr(tare_error_message(err), "8191"));
    allow_processors(own, 1);
    assert_int_equal(tare__processors_check(&own[1], 1, err), TARE_INVALID_ARGUMENT);
    char end[32];
    (void)snprintf(end, sizeof end, "may use: %d", own[0]);
    assert_non_null(strstr(tare_error_message(err), end));
    allow_processors(own, 2);
    tare_error_destroy(err);
}

static void reading_survives_every_failed_allocation(void **state) {
    (void)state;
    tare_status status;
    int *found = NULL;
    size_t count = 0;
    EVERY_ALLOCATION_FAILS(status, status = tare__processors_read("0-99", &found, &count, NULL),
                           tare__free(found))
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_and_ranges_keep_their_order),
        cmocka_unit_test(other_texts_are_refused),
        cmocka_unit_test(processors_of_others_are_refused_with_our_own_named),
        cmocka_unit_test(reading_survives_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
