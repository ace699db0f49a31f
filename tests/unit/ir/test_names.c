// SPDX-License-Identifier: Apache-2.0
// Names of nodes are unique and are made as torch.fx makes them.
#include "support/nodes.h"
#include "support/test.h"

#include "ir/names.h"

static void free_names_are_taken_as_they_are(void **state) {
    (void)state;
    graph *g = new_graph();
    assert_string_equal(name_for(g, "conv1"), "conv1");
    assert_string_equal(name_for(g, "_x"), "_x");
    assert_string_equal(name_for(g, "layer_7"), "layer_7");
    tare__graph_destroy(g);
}

static void taken_names_get_the_next_number_of_their_base(void **state) {
    (void)state;
    graph *g = new_graph();
    assert_string_equal(name_for(g, "relu"), "relu");
    assert_string_equal(name_for(g, "relu"), "relu_1");
    assert_string_equal(name_for(g, "relu"), "relu_2");
    assert_string_equal(name_for(g, "relu_1"), "relu_3");
    assert_string_equal(name_for(g, "relu_9"), "relu_9");
    assert_string_equal(name_for(g, "relu"), "relu_10");
    assert_string_equal(name_for(g, "scale_0"), "scale_0");
    assert_string_equal(name_for(g, "scale_0"), "scale_1");
    tare__graph_destroy(g);
}

static void characters_outside_of_identifiers_become_underscores(void **state) {
    (void)state;
    graph *g = new_graph();
    assert_string_equal(name_for(g, "seq.0"), "seq_0");
    assert_string_equal(name_for(g, "0"), "_0");
    assert_string_equal(name_for(g, ""), "_unnamed");
    assert_string_equal(name_for(g, "a-->b"), "a_b");
    assert_string_equal(name_for(g, "quantize_per_tensor.default"), "quantize_per_tensor_default");
    assert_string_equal(name_for(g, "0_input_scale_0"), "_0_input_scale_0");
    assert_string_equal(name_for(g, "caf\xc3\xa9!"), "caf_");
    tare__graph_destroy(g);
}

static void reserved_names_are_never_given(void **state) {
    (void)state;
    graph *g = new_graph();
    assert_string_equal(name_for(g, "input"), "input_1");
    assert_string_equal(name_for(g, "input"), "input_2");
    assert_string_equal(name_for(g, "getattr"), "getattr_1");
    assert_string_equal(name_for(g, "lambda"), "lambda_1");
    assert_string_equal(name_for(g, "torch"), "torch_1");
    assert_string_equal(name_for(g, "inf"), "inf_1");
    assert_true(tare__name_is_reserved("zip"));
    assert_true(tare__name_is_reserved("ArithmeticError"));
    assert_false(tare__name_is_reserved("relu"));
    tare__graph_destroy(g);
}

static void numbers_beyond_reach_stay_part_of_the_base(void **state) {
    (void)state;
    graph *g = new_graph();
    assert_string_equal(name_for(g, "x_99999999999999999999"), "x_99999999999999999999");
    assert_string_equal(name_for(g, "x_99999999999999999999"), "x_99999999999999999999_1");
    tare__graph_destroy(g);
}

static void check_candidate(node_op op, const char *target, const char *expected) {
    graph *g = new_graph();
    const char *candidate = NULL;
    CHECK_OK(tare__graph_candidate(g, op, target, &candidate, NULL));
    assert_string_equal(candidate, expected);
    tare__graph_destroy(g);
}

static void candidates_come_from_the_target(void **state) {
    (void)state;
    check_candidate(NODE_CALL_FUNCTION, "torch.nn.functional.relu", "relu");
    check_candidate(NODE_CALL_FUNCTION, "operator.add", "add");
    check_candidate(NODE_CALL_FUNCTION, "torch.ops.quantized.linear_relu", "linear_relu");
    check_candidate(NODE_CALL_FUNCTION,
                    "torch.ops.quantized_decomposed.quantize_per_tensor.default",
                    "quantize_per_tensor.default");
    check_candidate(NODE_CALL_FUNCTION, "abs", "abs");
    check_candidate(NODE_CALL_METHOD, "__add__", "add");
    check_candidate(NODE_CALL_METHOD, "masked_fill", "masked_fill");
    check_candidate(NODE_CALL_MODULE, "layer1.subConv", "layer1.sub_conv");
    check_candidate(NODE_CALL_MODULE, "ReLU", "re_lu");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(free_names_are_taken_as_they_are),
        cmocka_unit_test(taken_names_get_the_next_number_of_their_base),
        cmocka_unit_test(characters_outside_of_identifiers_become_underscores),
        cmocka_unit_test(reserved_names_are_never_given),
        cmocka_unit_test(numbers_beyond_reach_stay_part_of_the_base),
        cmocka_unit_test(candidates_come_from_the_target),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
