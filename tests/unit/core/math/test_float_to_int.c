// SPDX-License-Identifier: Apache-2.0
// Doubles become integers by truncation, and by the nearest bound where they do not fit.
#include "support/test.h"

#include <math.h>

#include "core/math/float_to_int.h"

static void numbers_are_cut_towards_zero(void **state) {
    (void)state;
    assert_int_equal(tare__cut_int64(2.9), 2);
    assert_int_equal(tare__cut_int64(-2.9), -2);
    assert_int_equal(tare__cut_int32(2147483647.5), INT32_MAX);
    assert_int_equal(tare__cut_int32(-2147483648.5), INT32_MIN);
    assert_true(tare__cut_int64(0x1.fffffffffffffp62) == 0x7ffffffffffffc00);
    assert_true(tare__cut_int64(-0x1p63) == INT64_MIN);
}

static void what_does_not_fit_becomes_the_nearest_bound(void **state) {
    (void)state;
    assert_int_equal(tare__cut_int32(0x1p31), INT32_MAX);
    assert_int_equal(tare__cut_int32(-0x1p31 - 1), INT32_MIN);
    assert_true(tare__cut_int64(0x1p63) == INT64_MAX);
    assert_true(tare__cut_int64((double)INFINITY) == INT64_MAX);
    assert_true(tare__cut_int64(-1e300) == INT64_MIN);
    assert_int_equal(tare__cut_int32(-(double)INFINITY), INT32_MIN);
    assert_int_equal(tare__cut_int64((double)NAN), 0);
    assert_int_equal(tare__cut_int32((double)NAN), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_cut_towards_zero),
        cmocka_unit_test(what_does_not_fit_becomes_the_nearest_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
