// SPDX-License-Identifier: Apache-2.0
// Each test plants one corruption in a healthy graph and expects the verifier to name it.
#include "support/nodes.h"
#include "support/test.h"

typedef struct healthy {
    graph *g;
    node *x, *y, *add, *output;
} healthy;

static healthy build(void) {
    healthy h = {.g = new_graph()};
    h.x = new_placeholder(h.g, "x");
    h.y = new_call(h.g, "torch.relu", h.x, NULL);
    h.add = new_call(h.g, "torch.add", h.x, h.y);
    h.output = new_output(h.g, h.add);
    CHECK_OK(tare__graph_verify(h.g, NULL));
    return h;
}

static void expect_broken(healthy *h, const char *sentence) {
    tare_error *err = tare_error_create();
    assert_non_null(err);
    assert_int_equal(tare__graph_verify(h->g, err), TARE_INTERNAL);
    assert_string_equal(tare_error_message(err), sentence);
    tare_error_destroy(err);
    tare__graph_destroy(h->g);
}

#define CORRUPTION(name, plant, sentence)                                                          \
    static void name(void **state) {                                                               \
        (void)state;                                                                               \
        healthy h = build();                                                                       \
        plant;                                                                                     \
        expect_broken(&h, sentence);                                                               \
    }

CORRUPTION(a_repeated_name, h.y->name = "x", "node 'x' shares its name with another node")
CORRUPTION(a_name_that_is_no_identifier, h.y->name = "a.b",
           "node 'a.b' has a name that is no identifier")
CORRUPTION(a_name_outside_of_the_table, h.y->name = "stranger",
           "node 'stranger' is missing in the table of names")
CORRUPTION(a_repeated_id, h.y->id = h.x->id, "node 'relu' shares its id with another node")
CORRUPTION(an_id_out_of_range, h.y->id = 1000, "node 'relu' has an id beyond the graph's")
CORRUPTION(a_foreign_owner, h.y->owner = NULL, "node 'relu' belongs to another graph")
CORRUPTION(a_broken_link_to_the_left, h.x->prev = h.y, "node 'x' is linked wrongly to the left")
CORRUPTION(a_broken_link_to_the_right, h.g->last = h.add,
           "node 'output' is linked wrongly to the right")
CORRUPTION(a_use_before_its_definition, tare__graph_move_before(h.y, NULL),
           "node 'add' uses 'relu', which does not stand before it")
CORRUPTION(a_use_of_itself, h.add->args[0].as.node = h.add,
           "node 'add' uses 'add', which does not stand before it")
CORRUPTION(an_argument_outside_of_the_inputs, h.add->args[1].as.node = h.x,
           "node 'add' lists inputs that it does not mention")
CORRUPTION(a_wrong_input, h.add->inputs[0] = h.y,
           "node 'add' does not list its inputs as its arguments mention them")
CORRUPTION(a_missing_user, h.x->user_count = 1, "node 'x' has a wrong number of users")
CORRUPTION(a_repeated_user, h.x->users[1] = h.x->users[0], "node 'x' lists a user twice")
CORRUPTION(a_user_that_is_none, h.x->users[1] = h.output,
           "node 'x' lists a user that does not use it")
CORRUPTION(a_missing_target, h.y->target = "", "node 'relu' has no target")
CORRUPTION(a_method_of_nothing,
           (h.y->op = NODE_CALL_METHOD, h.y->arg_count = 0, h.x->user_count = 1,
            h.x->users[0] = h.add),
           "node 'relu' calls a method of nothing")
CORRUPTION(an_output_in_the_middle, tare__graph_move_before(h.output, h.add),
           "node 'output' is an output in front of other nodes")
CORRUPTION(no_output, assert_int_equal(tare__graph_erase(h.g, h.output, NULL), TARE_OK),
           "the graph returns nothing")
CORRUPTION(a_wrong_count, h.g->node_count = 7, "the graph has 4 nodes and counts 7")

static void repeated_keywords(void **state) {
    (void)state;
    healthy h = build();
    const keyword twice[] = {{"dim", tare__int(1)}, {"dim", tare__int(2)}};
    CHECK_OK(tare__node_set_args(h.add, h.add->args, 2, twice, 2, NULL));
    expect_broken(&h, "node 'add' has the same keyword twice");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_repeated_name),
        cmocka_unit_test(a_name_that_is_no_identifier),
        cmocka_unit_test(a_name_outside_of_the_table),
        cmocka_unit_test(a_repeated_id),
        cmocka_unit_test(an_id_out_of_range),
        cmocka_unit_test(a_foreign_owner),
        cmocka_unit_test(a_broken_link_to_the_left),
        cmocka_unit_test(a_broken_link_to_the_right),
        cmocka_unit_test(a_use_before_its_definition),
        cmocka_unit_test(a_use_of_itself),
        cmocka_unit_test(an_argument_outside_of_the_inputs),
        cmocka_unit_test(a_wrong_input),
        cmocka_unit_test(a_missing_user),
        cmocka_unit_test(a_repeated_user),
        cmocka_unit_test(a_user_that_is_none),
        cmocka_unit_test(a_missing_target),
        cmocka_unit_test(a_method_of_nothing),
        cmocka_unit_test(an_output_in_the_middle),
        cmocka_unit_test(no_output),
        cmocka_unit_test(a_wrong_count),
        cmocka_unit_test(repeated_keywords),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
