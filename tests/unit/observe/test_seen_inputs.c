// SPDX-License-Identifier: Apache-2.0
// What calibration notes of its data: no statement is made that some of the data contradicts.
#include <math.h>

#include "support/test.h"

#include "observe/seen_inputs.h"
#include "support/observers.h"

static void see(seen_inputs *s, tare_tensor *x) {
    CHECK_OK(tare__seen_add(s, "x", x, 1, NULL));
    tare_tensor_release(x);
}

static void one_value_is_all_there_is(void **state) {
    (void)state;
    seen_inputs s = {0};
    see(&s, row(2, (float[]){0.5F, 0.5F}));
    assert_false(tare__seen_one_value(tare__seen_find(&s, "x")));
    see(&s, row(2, (float[]){0.5F, 0.5F}));
    assert_true(tare__seen_one_value(tare__seen_find(&s, "x")));
    assert_true(tare__seen_one_sample(&s));
    see(&s, row(2, (float[]){0.5F, -INFINITY})); // a mask
    assert_false(tare__seen_one_value(tare__seen_find(&s, "x")));
    assert_false(tare__seen_one_sample(&s));
    tare__seen_release(&s);
}

static void nothing_is_said_of_partial_notes(void **state) {
    (void)state;
    seen_inputs s = {0}, copy = {0};
    for (int i = 0; i < 2; i++) see(&s, row(2, (float[]){0.5F, 0.5F}));
    s.is_partial = true;
    CHECK_OK(tare__seen_copy(&copy, &s, NULL));
    assert_false(tare__seen_one_sample(&copy));
    assert_null(tare__seen_find(&copy, "x"));
    tare__seen_release(&copy);
    tare__seen_release(&s);
}

static void peaks_span_what_lies_between(void **state) {
    (void)state;
    seen_inputs s = {0};
    see(&s, row(2, (float[]){-1, 0.5F}));
    see(&s, row(2, (float[]){-3, 4}));
    const seen_input *x = tare__seen_find(&s, "x");
    assert_true(tare__seen_spans(x, 1));
    assert_true(tare__seen_spans(x, 2));
    assert_false(tare__seen_spans(x, 0.9));
    assert_false(tare__seen_spans(x, 4.1));
    tare__seen_release(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_value_is_all_there_is),
        cmocka_unit_test(nothing_is_said_of_partial_notes),
        cmocka_unit_test(peaks_span_what_lies_between),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
