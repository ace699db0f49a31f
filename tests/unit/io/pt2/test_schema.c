// SPDX-License-Identifier: Apache-2.0
// Signatures that archives need, and sizes as they write them.
#include "support/test.h"

#include "core/text/text.h"
#include "io/pt2/expression.h"
#include "io/pt2/schema.h"
#include "ops/op.h"

// Names without a row go to `missing`. An overload's name ends at its parameters:
// "relu.default(input)". A name without an overload stands for several, and has no row.
static void check_names(const char *names, text *missing) {
    static const char *const prefixes[] = {"torch.ops.aten.", "torch.ops.quantized_decomposed."};
    char name[256];
    while (names != NULL && *names != '\0') {
        const size_t length = strcspn(names, "| ("), end = strcspn(names, "| ");
        assert_true(length < sizeof name);
        memcpy(name, names, length);
        name[length] = '\0';
        for (size_t i = 0; i < 2; i++)
            if (tare__starts_with(name, prefixes[i]) &&
                strchr(name + strlen(prefixes[i]), '.') != NULL && tare__pt2_schema(name) == NULL)
                tare__text_printf(missing, " %s", name + strlen("torch.ops."));
        // The parameters of an overload hold '|' too.
        names += names[length] == '(' ? strcspn(names, ")") + 1 : end;
        names += strspn(names, "| ");
    }
}

static void every_exported_operator_has_a_signature(void **state) {
    (void)state;
    text missing = {0};
    for (size_t i = 0; tare__op_at(i) != NULL; i++) {
        check_names(tare__op_at(i)->functions, &missing);
        check_names(tare__op_at(i)->overloads, &missing);
    }
    if (missing.length > 0)
        fail_msg("io/pt2/schema.c lacks rows: run tools/pt2_schemas.py%s", missing.chars);
    assert_null(tare__pt2_schema("torch.conv2d"));
    assert_null(tare__pt2_schema("torch.ops.aten.conv2d"));
}

static void parameters_say_how_they_are_given(void **state) {
    (void)state;
    const pt2_schema *to = tare__pt2_schema("torch.ops.aten.to.dtype_layout");
    const pt2_schema *cat = tare__pt2_schema("torch.ops.aten.cat.default");
    pt2_param p;
    assert_true(tare__pt2_schema_param(to, 0, &p));
    assert_memory_equal(p.name, "self", p.length);
    assert_false(p.is_keyword_only);
    assert_true(tare__pt2_schema_param(to, 1, &p));
    assert_memory_equal(p.name, "dtype", p.length);
    assert_true(p.is_keyword_only);
    assert_true(tare__pt2_schema_param(cat, 0, &p));
    assert_int_equal(p.length, strlen("tensors"));
    assert_int_equal(p.list_of, 'T');
    assert_false(tare__pt2_schema_param(cat, 2, &p));
}

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
        cmocka_unit_test(every_exported_operator_has_a_signature),
        cmocka_unit_test(parameters_say_how_they_are_given),
        cmocka_unit_test(expressions_are_what_sympy_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
