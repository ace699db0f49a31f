// SPDX-License-Identifier: Apache-2.0
// Operators by the names of their functions and methods.
#include "support/test.h"

#include "ops/op.h"
#include "ops/signatures.h"

static bool lists(const char *list, const char *name) {
    const size_t length = strlen(name);
    for (const char *at = list; at != NULL; at = strchr(at, '|')) {
        at += *at == '|' ? 1 : 0;
        if (strcspn(at, "|") == length && memcmp(at, name, length) == 0) return true;
    }
    return false;
}

// The first row with the name, as the table is written.
static const op_info *first_row(bool is_function, const char *name) {
    const op_info *op;
    for (size_t i = 0; (op = tare__op_at(i)) != NULL; i++)
        if (lists(is_function ? op->functions : op->methods, name)) return op;
    for (size_t i = 0; is_function && (op = tare__op_at(i)) != NULL; i++)
        if (tare__op_overload(op, name) != NULL) return op;
    return NULL;
}

// Each name of a list, which `separators` and remarks in brackets are between.
static size_t check_names(const char *list, const char *separators, bool is_function) {
    size_t count = 0;
    for (const char *at = list; at != NULL && *at != '\0'; count++) {
        char name[128];
        const size_t length = strcspn(at, separators);
        assert_true(length > 0 && length < sizeof name);
        memcpy(name, at, length);
        name[length] = '\0';
        const op_info *found = is_function ? tare__op_function(name) : tare__op_method(name);
        if (found != first_row(is_function, is_function ? tare__function_canonical(name) : name) &&
            found != first_row(is_function, name))
            fail_msg("%s", name);
        at += length;
        if (*at == '(') at += strcspn(at, ")") + 1;
        at += strspn(at, separators);
    }
    return count;
}

static void every_name_finds_its_row(void **state) {
    (void)state;
    const op_info *op;
    size_t names = 0;
    for (size_t i = 0; (op = tare__op_at(i)) != NULL; i++)
        names += check_names(op->functions, "|", true) + check_names(op->methods, "|", false) +
                 check_names(op->overloads, " (", true);
    assert_true(names > 1000);
}

static void other_names_find_nothing(void **state) {
    (void)state;
    static const char *const names[] = {"",          "torch.relu ",
                                        "torch.rel", "torch.add|torch.sub",
                                        "aten.add",  "torch.ops.aten.add.Tensor(",
                                        " "};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_null(tare__op_function(names[i]));
        assert_null(tare__op_method(names[i]));
    }
}

// Overloads without a row of their own.
static void overloads_have_usual_names(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"torch.ops.aten.cumsum_.default", "torch.ops.aten.cumsum.default"},
        {"torch.ops.aten.greater.Tensor", "torch.ops.aten.gt.Tensor"},
        {"torch.ops.aten.subtract_.Tensor", "torch.ops.aten.sub.Tensor"},
        {"torch.ops.aten.special_psi.default", "torch.ops.aten.digamma.default"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        signature s;
        const op_info *op = tare__op_function(pairs[i][0]);
        assert_non_null(op);
        assert_ptr_equal(op, tare__op_function(pairs[i][1]));
        assert_true(tare__signature_of(pairs[i][0], &s));
    }
    // Views in place change the shape of their base: those that are read have names of their own.
    assert_non_null(tare__op_function("torch.ops.aten.transpose_.int"));
    assert_null(tare__op_function("torch.ops.aten.as_strided_.default"));
    assert_null(tare__op_function("torch.ops.aten.greatest.Tensor"));
    assert_null(tare__op_function("torch.ops.aten.greater"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_name_finds_its_row),
        cmocka_unit_test(other_names_find_nothing),
        cmocka_unit_test(overloads_have_usual_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
