// SPDX-License-Identifier: Apache-2.0
// Rows of what torch.export makes of torch's functions. Whether they are right is for recorded
// captures to say (tests/unit/quantizers/patterns/test_capture.c).
#include "support/test.h"

#include "ops/export_rows.h"

static export_call call_of(const export_row *row) {
    export_call c = {.row = row, .target = tare__export_target(row->overload, false)};
    if (!tare__signature_of(c.target.text, &c.signature))
        fail_msg("ops/rows lacks the signature of %s: run tools/signatures.py", c.target.text);
    return c;
}

static bool is_word(export_word w, const char *word) {
    return w.length == strlen(word) && memcmp(w.chars, word, w.length) == 0;
}

// Python's wrappers have a few that never reach an overload.
static bool has_no_argument(const export_param *p) {
    return is_word(p->name, "inplace") || is_word(p->name, "mode") ||
           is_word(p->name, "align_corners");
}

static bool takes(const export_call *c, const export_param *wanted) {
    signature_param p;
    for (size_t i = 0; tare__signature_param(&c->signature, i, &p); i++)
        if (p.length == wanted->argument.length &&
            memcmp(p.name, wanted->argument.chars, p.length) == 0)
            return true;
    return is_word(wanted->name, "input") &&
           tare__signature_find(&c->signature, "input", &(size_t){0});
}

static void every_parameter_has_its_argument(void **state) {
    (void)state;
    const export_row *row;
    for (size_t i = 0; (row = tare__export_row_at(i)) != NULL; i++) {
        const export_call c = call_of(row);
        export_param p;
        value v;
        for (size_t k = 0; tare__export_param(&c, k, &p); k++) {
            if (!has_no_argument(&p) && !takes(&c, &p))
                fail_msg("%s takes no '%.*s'", row->overload, (int)p.name.length, p.name.chars);
            if (p.fallback.length > 0)
                assert_true(tare__signature_literal(p.fallback.chars, p.fallback.length, &v));
        }
        if (row->before != NULL) {
            signature ignored;
            assert_true(tare__signature_of(tare__export_target(row->before, false).text, &ignored));
        }
    }
}

// The row of a call; NULL: there is none.
static const export_row *row_of(node_op kind, const char *target, export_call *out) {
    const node n = {.op = kind, .target = target};
    const export_row *row;
    for (size_t i = 0; (row = tare__export_row_at(i)) != NULL; i++)
        if (tare__export_call_of(row, &n, out)) return row;
    return NULL;
}

static void check_target(node_op kind, const char *function, const char *target) {
    export_call c;
    if (row_of(kind, function, &c) == NULL) fail_msg("%s has no row", function);
    assert_string_equal(c.target.text, target);
}

static void names_say_what_is_called(void **state) {
    (void)state;
    export_call c;
#define ATEN "torch.ops.aten."
    check_target(NODE_CALL_FUNCTION, "torch.nn.functional.relu", ATEN "relu.default");
    check_target(NODE_CALL_FUNCTION, "torch.relu_", ATEN "relu_.default");
    check_target(NODE_CALL_METHOD, "relu_", ATEN "relu_.default");
    check_target(NODE_CALL_FUNCTION, "operator.iadd", ATEN "add_.Tensor");
    check_target(NODE_CALL_FUNCTION, "operator.truediv", ATEN "div.Tensor");
    check_target(NODE_CALL_FUNCTION, "operator.itruediv", ATEN "div_.Tensor");
    check_target(NODE_CALL_FUNCTION, "torch._C._nn.linear", ATEN "linear.default");
    check_target(NODE_CALL_FUNCTION, "torch.nn.functional.logsigmoid", ATEN "log_sigmoid.default");
    check_target(NODE_CALL_METHOD, "float", ATEN "to.dtype");
    assert_null(row_of(NODE_CALL_FUNCTION, "torch.view", &c)); // there is the method only
    assert_null(row_of(NODE_CALL_METHOD, "conv2d", &c));
    assert_null(row_of(NODE_CALL_FUNCTION, "torch.conv2d_", &c));
    assert_null(row_of(NODE_CALL_FUNCTION, "operator.imatmul", &c));
    assert_null(row_of(NODE_CALL_FUNCTION, ATEN "relu.default", &c));
    assert_null(row_of(NODE_CALL_FUNCTION, "", &c));
}

static void constants_are_not_written(void **state) {
    (void)state;
    const node n = {.op = NODE_CALL_FUNCTION, .target = "operator.iadd"};
    const export_row *row;
    export_call c;
    size_t count = 0;
    for (size_t i = 0; (row = tare__export_row_at(i)) != NULL; i++)
        count += tare__export_call_of(row, &n, &c);
    assert_int_equal(count, 1);
}

static void parameters_are_pythons(void **state) {
    (void)state;
    export_call c;
    export_param p;
    size_t index;
    assert_non_null(row_of(NODE_CALL_FUNCTION, "torch.nn.functional.dropout", &c));
    assert_true(tare__export_param(&c, 2, &p));
    assert_true(is_word(p.name, "training"));
    assert_true(is_word(p.argument, "train"));
    assert_true(is_word(p.fallback, "True"));
    assert_true(tare__export_param_named(&c, "inplace", &index));
    assert_non_null(row_of(NODE_CALL_FUNCTION, "torch.relu_", &c));
    assert_false(tare__export_param_named(&c, "inplace", &index));
    // Those of the signature, where a row says nothing else.
    assert_non_null(row_of(NODE_CALL_FUNCTION, "torch.addmm", &c));
    assert_true(tare__export_param(&c, 0, &p));
    assert_true(is_word(p.name, "input"));
    assert_true(is_word(p.argument, "self"));
    assert_true(tare__export_param_named(&c, "beta", &index));
    assert_true(tare__export_param(&c, index, &p));
    assert_true(p.is_keyword_only);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_parameter_has_its_argument),
        cmocka_unit_test(names_say_what_is_called),
        cmocka_unit_test(constants_are_not_written),
        cmocka_unit_test(parameters_are_pythons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
