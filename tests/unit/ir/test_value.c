// SPDX-License-Identifier: Apache-2.0
// Values compare by kind and items, convert to numbers, and own their copies.
#include "support/test.h"

#include <math.h>

#include "ir/value.h"

static bool equal(value a, value b) {
    return tare__value_equal(&a, &b);
}

static void kinds_are_part_of_equality(void **state) {
    (void)state;
    assert_true(equal(tare__int(1), tare__int(1)));
    assert_false(equal(tare__int(1), tare__float(1)));
    assert_false(equal(tare__int(1), tare__bool(true)));
    assert_true(equal(tare__float(NAN), tare__float(NAN)));
    assert_false(equal(tare__float(0.0), tare__float(-0.0)));
    assert_true(equal(tare__string("mean"), tare__string("mean")));
    assert_false(equal(tare__string("mean"), tare__string("sum")));
    assert_true(equal(tare__none(), tare__none()));
    assert_false(equal(tare__dtype_value(TARE_QINT8), tare__dtype_value(TARE_QUINT8)));
}

static void containers_compare_by_items(void **state) {
    (void)state;
    value a[] = {tare__int(1), tare__string("x")}, b[] = {tare__int(1), tare__string("y")};
    const value list = {.kind = VALUE_LIST, .count = 2, .as.items = a};
    const value tuple = {.kind = VALUE_TUPLE, .count = 2, .as.items = a};
    const value other = {.kind = VALUE_LIST, .count = 2, .as.items = b};
    const value shorter = {.kind = VALUE_LIST, .count = 1, .as.items = a};
    assert_true(equal(list, list));
    assert_false(equal(list, tuple));
    assert_false(equal(list, other));
    assert_false(equal(list, shorter));
}

static void numbers_come_from_every_numeric_kind(void **state) {
    (void)state;
    value half[] = {tare__float(0.5), tare__dtype_value(TARE_FLOAT32)};
    const value scalar = {.kind = VALUE_SCALAR, .count = 2, .as.items = half};
    double out = 0;
    const value three = tare__int(3), yes = tare__bool(true), text = tare__string("3");
    assert_true(tare__value_number(&three, &out) && out == 3);
    assert_true(tare__value_number(&yes, &out) && out == 1);
    assert_true(tare__value_number(&scalar, &out) && out == 0.5);
    assert_false(tare__value_number(&text, &out));
}

static void copies_own_everything(void **state) {
    (void)state;
    char word[] = "same";
    value items[] = {tare__string(word), tare__int(2)};
    value list = {.kind = VALUE_LIST, .count = 2, .as.items = items}, copy = tare__none();
    arena a = {0};
    CHECK_OK(tare__value_copy(&a, &list, NULL, NULL, &copy, NULL));
    assert_true(equal(list, copy));
    word[0] = 'l';
    items[1] = tare__int(3);
    assert_string_equal(copy.as.items[0].as.text, "same");
    assert_int_equal(copy.as.items[1].as.integer, 2);
    tare__arena_release(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_are_part_of_equality),
        cmocka_unit_test(containers_compare_by_items),
        cmocka_unit_test(numbers_come_from_every_numeric_kind),
        cmocka_unit_test(copies_own_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
