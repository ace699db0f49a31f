// SPDX-License-Identifier: Apache-2.0
// Operators by number: the enum against the rows, and what nodes call.
#include "support/test.h"

#include "ops/interpret.h"
#include "ops/op.h"

static void every_id_has_a_row_that_leads_back(void **state) {
    (void)state;
    for (int id = TARE_OP_NONE + 1; id < TARE_OP_COUNT; id++) {
        const op_info *op = tare__op_row((op_id)id);
        if (op == NULL) fail_msg("line %d of the build's ops/ids.def names no row", id);
        if (tare__op_id(op) != (op_id)id)
            fail_msg("'%s' stands out of order in the build's ops/ids.def", op->id);
    }
    assert_string_equal(tare__op_row(TARE_OP_CONV2D)->id, "conv2d");
    assert_string_equal(tare__op_row(TARE_OP_QUANTIZED_ADD_RELU)->id, "quantized.add_relu");
}

static void every_row_has_an_id(void **state) {
    (void)state;
    text missing = {0};
    const op_info *op;
    for (size_t i = 0; (op = tare__op_at(i)) != NULL; i++)
        if (tare__op_id(op) == TARE_OP_NONE) tare__text_printf(&missing, " %s", op->id);
    if (missing.length > 0) fail_msg("src/ops/rows lacks the ID of%s", missing.chars);
    assert_int_equal(tare__op_id(NULL), TARE_OP_NONE);
    assert_null(tare__op_row(TARE_OP_NONE));
}

static void a_node_says_its_operator_in_every_spelling(void **state) {
    (void)state;
    const node called = {.op = NODE_CALL_FUNCTION, .target = "torch.nn.functional.relu"};
    const node exported = {.op = NODE_CALL_FUNCTION, .target = "torch.ops.aten.relu_.default"};
    const node method = {.op = NODE_CALL_METHOD, .target = "relu_"};
    const node unknown = {.op = NODE_CALL_FUNCTION, .target = "mine.relu"};
    const node module_call = {.op = NODE_CALL_MODULE, .target = "relu"};
    assert_int_equal(tare__node_op(&called), TARE_OP_RELU);
    assert_int_equal(tare__node_op(&exported), TARE_OP_RELU);
    assert_int_equal(tare__node_op(&method), TARE_OP_RELU);
    assert_int_equal(tare__node_op(&unknown), TARE_OP_NONE);
    assert_int_equal(tare__node_op(&module_call), TARE_OP_NONE);
    assert_int_equal(tare__node_op(NULL), TARE_OP_NONE);
}

static void underscores_mark_writes_but_not_of_operator(void **state) {
    static const char *const writes[] = {"torch.relu_", "torch.ops.aten.add_.Tensor"};
    static const char *const reads[] = {"operator.and_", "operator.or_", "torch.relu",
                                        "torch.ops.aten.add.Tensor"};
    (void)state;
    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++) {
        const node n = {.op = NODE_CALL_FUNCTION, .target = writes[i]};
        assert_true(tare__node_writes_in_place(NULL, &n));
    }
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
        const node n = {.op = NODE_CALL_FUNCTION, .target = reads[i]};
        assert_false(tare__node_writes_in_place(NULL, &n));
    }
}

static void functions_and_methods_are_told_apart(void **state) {
    (void)state;
    const node called = {.op = NODE_CALL_FUNCTION, .target = "torch.dequantize"};
    const node method = {.op = NODE_CALL_METHOD, .target = "dequantize"};
    assert_int_equal(tare__function_op(&called), TARE_OP_DEQUANTIZE);
    assert_int_equal(tare__function_op(&method), TARE_OP_NONE);
    assert_int_equal(tare__function_op(NULL), TARE_OP_NONE);
    assert_false(tare__calls_method(&called, TARE_OP_DEQUANTIZE));
    assert_true(tare__calls_method(&method, TARE_OP_DEQUANTIZE));
    assert_false(tare__calls_method(&method, TARE_OP_RELU));
    assert_false(tare__calls_method(NULL, TARE_OP_RELU));
}

static void a_class_names_its_row(void **state) {
    (void)state;
    const module_class conv = {.name = "a", .op = "conv", .dims = 2}, none = {.name = "b"};
    assert_int_equal(tare__class_op(&conv), TARE_OP_CONV2D);
    assert_int_equal(tare__class_op(&none), TARE_OP_NONE);
}

static void a_quantized_form_is_found_by_its_id(void **state) {
    (void)state;
    const op_info *linear = tare__op_row(TARE_OP_LINEAR), *gelu = tare__op_by_id("gelu", 0);
    assert_ptr_equal(tare__op_form(linear, FORM_QUANTIZED_RELU),
                     tare__op_by_id("quantized.linear_relu", 0));
    assert_ptr_equal(tare__op_form(linear, FORM_DYNAMIC_RELU),
                     tare__op_by_id("quantized.linear_relu_dynamic", 0));
    assert_null(tare__op_form(linear, FORM_ADD));
    assert_ptr_equal(tare__op_form(gelu, FORM_BY_RULE), tare__op_by_id("tare.gelu", 0));
}

static void a_name_is_the_first_of_the_row(void **state) {
    (void)state;
    const op_info *clamp = tare__op_row(TARE_OP_CLAMP), *op;
    assert_string_equal(tare__op_function_name(clamp).text, "torch.clamp");
    assert_string_equal(tare__op_method_name(clamp).text, "clamp");
    for (size_t i = 0; (op = tare__op_at(i)) != NULL; i++) {
        if (op->functions == NULL && op->overloads == NULL) continue;
        assert_ptr_equal(tare__op_function(tare__op_function_name(op).text), op);
    }
}

static void an_overload_is_told_from_those_in_place(void **state) {
    (void)state;
    const op_overload sum = OVERLOAD(ADD, "Tensor"), no_overload = OVERLOAD(ADD, "no");
    const op_overload list[] = {IN_PLACE_OVERLOAD(MUL, "Tensor"), IN_PLACE_OVERLOAD(ADD, "Tensor"),
                                OVERLOADS_END};
    const node plain = {.op = NODE_CALL_FUNCTION, .target = "torch.ops.aten.add.Tensor"};
    const node in_place = {.op = NODE_CALL_FUNCTION, .target = "torch.ops.aten.add_.Tensor"};
    assert_string_equal(tare__overload_name(sum).text, plain.target);
    assert_string_equal(tare__overload_name(list[1]).text, in_place.target);
    assert_string_equal(tare__overload_name(no_overload).text, "");
    assert_true(tare__calls_one_of(&in_place, list));
    assert_false(tare__calls_one_of(&plain, list));
    assert_false(tare__calls_one_of(NULL, list));
    assert_true(tare__is_in_place_overload(in_place.target));
    assert_false(tare__is_in_place_overload(plain.target));
    assert_false(tare__is_in_place_overload("torch.relu_"));
    assert_string_equal(tare__aten_name(plain.target), "add.Tensor");
    assert_null(tare__aten_name("torch.add"));
    assert_true(tare__calls_overload(&plain, TARE_OP_ADD, "Tensor"));
    assert_false(tare__calls_overload(&in_place, TARE_OP_ADD, "Tensor"));
    assert_false(tare__calls_overload(&plain, TARE_OP_MUL, "Tensor"));
}

static void a_synonym_is_not_the_first_name(void **state) {
    (void)state;
    const node functional = {.op = NODE_CALL_FUNCTION, .target = "torch.nn.functional.relu"};
    const node synonym = {.op = NODE_CALL_FUNCTION, .target = "torch.relu"};
    assert_true(tare__uses_first_name(&functional));
    assert_false(tare__uses_first_name(&synonym));
}

static void an_id_is_looked_for_in_a_list(void **state) {
    (void)state;
    assert_true(OP_IS_ANY(TARE_OP_ADD, TARE_OP_MUL, TARE_OP_ADD));
    assert_false(OP_IS_ANY(TARE_OP_CAT, TARE_OP_MUL, TARE_OP_ADD));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_id_has_a_row_that_leads_back),
        cmocka_unit_test(every_row_has_an_id),
        cmocka_unit_test(a_node_says_its_operator_in_every_spelling),
        cmocka_unit_test(underscores_mark_writes_but_not_of_operator),
        cmocka_unit_test(functions_and_methods_are_told_apart),
        cmocka_unit_test(a_class_names_its_row),
        cmocka_unit_test(a_quantized_form_is_found_by_its_id),
        cmocka_unit_test(a_name_is_the_first_of_the_row),
        cmocka_unit_test(an_overload_is_told_from_those_in_place),
        cmocka_unit_test(a_synonym_is_not_the_first_name),
        cmocka_unit_test(an_id_is_looked_for_in_a_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
