// SPDX-License-Identifier: Apache-2.0
// Operands of a call by position and keyword, and the reader of its result.
#include "flow/function_call.h"

#include "support/nodes.h"
#include "support/test.h"

static void arguments_are_found_by_position_and_keyword(void **state) {
    (void)state;
    graph *g = new_graph();
    node *x = new_placeholder(g, "x"), *w = new_placeholder(g, "w");
    node *n = new_call(g, "torch._C._nn.linear", x, NULL);
    const keyword kwarg = {"weight", tare__node_value(w)};
    arena memory = {0};
    function_call call;
    CHECK_OK(tare__node_set_args(n, n->args, n->arg_count, &kwarg, 1, NULL));
    assert_true(tare__function_bind(&memory, n, &call));
    assert_ptr_equal(call.function, n);
    assert_ptr_equal(tare__function_argument_node(&call, "input"), x);
    assert_ptr_equal(tare__function_argument_node(&call, "weight"), w);
    assert_null(tare__function_argument(&call, "bias"));
    assert_null(tare__function_argument(&call, "slope"));
    assert_false(tare__function_bind(&memory, x, &call));
    tare__arena_release(&memory);
    tare__graph_destroy(g);
}

// torch.add(x, 2, alpha=..)
static bool has_operands(value alpha, value out[2]) {
    graph *g = new_graph();
    node *x = new_placeholder(g, "x");
    node *n = new_node(g, NODE_CALL_FUNCTION, "torch.add", VALUES(tare__node_value(x)));
    const keyword kwargs[] = {{"alpha", alpha}, {"other", tare__int(2)}};
    arena memory = {0};
    function_call call;
    CHECK_OK(tare__node_set_args(n, n->args, n->arg_count, kwargs, 2, NULL));
    assert_true(tare__function_bind(&memory, n, &call));
    const bool found = tare__function_operands(&call, out);
    tare__arena_release(&memory);
    tare__graph_destroy(g);
    return found;
}

static void an_alpha_other_than_one_hides_the_operands(void **state) {
    (void)state;
    value operands[2];
    assert_true(has_operands(tare__float(1), operands));
    assert_int_equal(operands[0].kind, VALUE_NODE);
    assert_int_equal(operands[1].as.integer, 2);
    assert_false(has_operands(tare__float(0.5), operands));
    assert_false(has_operands(tare__none(), operands));
}

static void a_reader_is_the_only_one_or_none(void **state) {
    (void)state;
    graph *g = new_graph();
    node *x = new_placeholder(g, "x");
    assert_null(tare__only_reader(x));
    node *n = new_call(g, "torch.relu", x, NULL);
    assert_ptr_equal(tare__only_reader(x), n);
    new_call(g, "torch.tanh", x, NULL);
    assert_null(tare__only_reader(x));
    tare__graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_are_found_by_position_and_keyword),
        cmocka_unit_test(an_alpha_other_than_one_hides_the_operands),
        cmocka_unit_test(a_reader_is_the_only_one_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
