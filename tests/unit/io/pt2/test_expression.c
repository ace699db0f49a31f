// SPDX-License-Identifier: Apache-2.0
// Sizes as archives write them.
#include "support/test.h"

#include "core/text/text.h"
#include "io/pt2/expression.h"

static void expressions_are_what_sympy_says(void **state) {
    (void)state;
#define S "Symbol('s0', positive=True, integer=True)"
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {
        {"Integer(7)", 7},
        {S, 5},
        {"Mul(Integer(2), " S ")", 10},
        {"Add(" S ", Integer(-7), Mul(Integer(3), " S "))", 13},
        {"FloorDiv(Add(" S ", Integer(-8)), Integer(2))", -2},
        {"Mod(" S ", Integer(3))", 2},
        {"Max(Integer(1), " S ", Min(Integer(9), Integer(8)))", 8},
        {"Pow(" S ", Integer(2))", 25},
    };
    static const char *const bad[] = {
        "",
        "Integer(",
        "Integer(1) ",
        "Integer(99999999999)",
        "Symbol(s0)",
        "Symbol('s1')",
        "Sin(" S ")",
        "FloorDiv(Integer(1), Integer(0))",
        "Add()",
        "Pow(" S ", Integer(63))",
        "Mul(Integer(2147483647), Integer(2))",
        "Symbol('",
        "Add(" S,
    };
    map symbols = {0};
    int64_t made;
    assert_true(tare__map_set(&symbols, "s0", tare__map_int(5)));
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(tare__expression_value(good[i].text, &symbols, &made));
        assert_int_equal(made, good[i].value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (tare__expression_value(bad[i], &symbols, &made)) fail_msg("'%s' has a value", bad[i]);
    text deep = {0};
    for (int i = 0; i < 100000; i++) tare__text_append(&deep, "Add(");
    assert_false(tare__expression_value(tare__text_chars(&deep), &symbols, &made));
    tare__text_release(&deep);
    tare__map_release(&symbols);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expressions_are_what_sympy_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
