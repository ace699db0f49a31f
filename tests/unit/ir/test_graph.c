// SPDX-License-Identifier: Apache-2.0
// Nodes of a graph: order, users, replacing, erasing, dead code, clones and lost memory.
#include "support/nodes.h"
#include "support/test.h"

#define NODE(n) tare__node_value(n)

static void nodes_stand_in_order_of_insertion(void **state) {
    (void)state;
    graph *g = new_graph();
    node *x = new_placeholder(g, "x");
    node *relu = new_call(g, "torch.relu", x, NULL);
    new_output(g, relu);
    const value args[] = {NODE(x)};
    const node_spec spec = {.op = NODE_CALL_METHOD, .target = "abs", .args = args, .arg_count = 1};
    CHECK_OK(tare__graph_insert(g, &spec, relu, NULL, NULL));
    assert_string_equal(node_names(g), "x abs_1 relu output");
    tare__graph_move_before(relu, x);
    assert_string_equal(node_names(g), "relu x abs_1 output");
    tare__graph_move_before(relu, NULL);
    assert_string_equal(node_names(g), "x abs_1 output relu");
    assert_int_equal(g->node_count, 4);
    tare__graph_destroy(g);
}

static void users_are_listed_once_in_order_of_registration(void **state) {
    (void)state;
    graph *g = new_graph();
    node *x = new_placeholder(g, "x");
    node *y = new_placeholder(g, "y");
    node *twice = new_call(g, "torch.add", x, x);
    node *other = new_call(g, "torch.mul", x, y);
    assert_string_equal(user_names(x), "add mul");
    // Setting arguments drops the old uses first: the node moves to the end of the list.
    CHECK_OK(tare__node_set_args(twice, VALUES(NODE(x), NODE(y)), NULL, 0, NULL));
    assert_string_equal(user_names(x), "mul add");
    assert_string_equal(user_names(y), "mul add");
    CHECK_OK(tare__node_replace_input(other, x, y, NULL));
    assert_string_equal(user_names(x), "add");
    assert_string_equal(user_names(y), "add mul");
    tare__graph_destroy(g);
}

static void uses_inside_containers_and_keywords_count(void **state) {
    (void)state;
    graph *g = new_graph();
    node *x = new_placeholder(g, "x");
    node *y = new_placeholder(g, "y");
    value items[] = {NODE(x), NODE(x)};
    const value list = {.kind = VALUE_LIST, .count = 2, .as.items = items};
    const keyword out = {"out", NODE(y)};
    const node_spec spec = {.op = NODE_CALL_FUNCTION,
                            .target = "torch.cat",
                            .args = &list,
                            .arg_count = 1,
                            .kwargs = &out,
                            .kwarg_count = 1};
    node *cat = NULL;
    CHECK_OK(tare__graph_insert(g, &spec, NULL, &cat, NULL));
    assert_string_equal(user_names(x), "cat");
    assert_string_equal(user_names(y), "cat");
    assert_ptr_equal(tare__node_kwarg(cat, "out")->as.node, y);
    assert_null(tare__node_kwarg(cat, "dim"));
    assert_null(tare__node_arg(cat, 0));
    CHECK_OK(tare__node_replace_uses(y, x, NULL, NULL));
    assert_string_equal(user_names(y), "");
    assert_string_equal(user_names(x), "cat");
    tare__graph_destroy(g);
}

static void replacing_uses_spares_the_exception(void **state) {
    (void)state;
    graph *g = new_graph();
    node *x = new_placeholder(g, "x");
    new_call(g, "torch.relu", x, NULL);
    node *observer = new_call(g, "torch.observe", x, NULL);
    new_call(g, "torch.add", x, x);
    CHECK_OK(tare__node_replace_uses(x, observer, observer, NULL));
    assert_string_equal(user_names(x), "observe");
    assert_string_equal(user_names(observer), "relu add");
    tare__graph_destroy(g);
}

static void erasing_a_used_node_is_refused(void **state) {
    (void)state;
    graph *g = new_graph();
    node *x = new_placeholder(g, "x");
    node *relu = new_call(g, "torch.relu", x, NULL);
    assert_int_equal(tare__graph_erase(g, x, NULL), TARE_INTERNAL);
    CHECK_OK(tare__graph_erase(g, relu, NULL));
    assert_string_equal(user_names(x), "");
    CHECK_OK(tare__graph_erase(g, x, NULL));
    assert_int_equal(g->node_count, 0);
    assert_null(g->first);
    assert_null(g->last);
    tare__graph_destroy(g);
}

static void names_are_not_released_by_erasing(void **state) {
    (void)state;
    graph *g = new_graph();
    node *x = new_placeholder(g, "x");
    node *relu = new_call(g, "torch.relu", x, NULL);
    CHECK_OK(tare__graph_erase(g, relu, NULL));
    assert_null(tare__graph_find(g, "relu"));
    assert_string_equal(new_call(g, "torch.relu", x, NULL)->name, "relu_1");
    tare__graph_destroy(g);
}

static bool is_setitem(const void *user, const node *n) {
    (void)user;
    return strcmp(n->target, "operator.setitem") == 0;
}

static void dead_nodes_go_and_impure_ones_stay(void **state) {
    (void)state;
    graph *g = new_graph();
    node *x = new_placeholder(g, "x");
    new_placeholder(g, "unused");
    node *dead = new_call(g, "torch.relu", x, NULL);
    new_call(g, "torch.neg", dead, NULL); // keeps `dead` alive until it goes itself
    new_call(g, "operator.setitem", x, NULL);
    new_output(g, x);
    CHECK_OK(tare__graph_eliminate_dead(g, is_setitem, NULL, NULL));
    assert_string_equal(node_names(g), "x unused setitem output");
    CHECK_OK(tare__graph_eliminate_dead(g, NULL, NULL, NULL));
    assert_string_equal(node_names(g), "x unused output");
    tare__graph_destroy(g);
}

// x, relu(x), add(relu, x), output; relu erased and made anew, so that ids and names have gaps.
static graph *sample(void) {
    graph *g = new_graph();
    node *x = new_placeholder(g, "x");
    node *gone = new_call(g, "torch.relu", x, NULL);
    node *add = new_call(g, "torch.add", x, x);
    CHECK_OK(tare__graph_erase(g, gone, NULL));
    node *relu = new_call(g, "torch.relu", add, NULL);
    new_output(g, new_call(g, "torch.add", relu, x));
    return g;
}

static void a_clone_keeps_ids_users_and_the_name_table(void **state) {
    (void)state;
    graph *g = sample(), *copy = NULL;
    CHECK_OK(tare__graph_clone(g, &copy, NULL));
    CHECK_OK(tare__graph_verify(copy, NULL));
    assert_string_equal(node_names(copy), "x add relu_1 add_1 output");
    const node *m = copy->first;
    for (const node *n = g->first; n; n = n->next, m = m->next) {
        assert_int_equal(n->id, m->id);
        assert_int_equal(n->user_count, m->user_count);
        for (size_t i = 0; i < n->user_count; i++) {
            assert_ptr_not_equal(n->users[i], m->users[i]);
            assert_string_equal(n->users[i]->name, m->users[i]->name);
        }
    }
    tare__graph_destroy(g);
    assert_string_equal(name_for(copy, "relu"), "relu_2");
    tare__graph_destroy(copy);
}

static node *the_other_graphs(void *user, node *n) {
    return tare__graph_find(user, n->name);
}

static void copied_nodes_keep_their_names_and_drop_the_gaps(void **state) {
    (void)state;
    graph *g = sample(), *copy = new_graph();
    for (const node *n = g->first; n; n = n->next)
        CHECK_OK(tare__graph_copy_node(copy, n, the_other_graphs, copy, NULL, NULL));
    CHECK_OK(tare__graph_verify(copy, NULL));
    assert_string_equal(node_names(copy), "x add relu_1 add_1 output");
    assert_string_equal(name_for(copy, "relu"), "relu"); // a rebuild starts a fresh table
    tare__graph_destroy(g);
    tare__graph_destroy(copy);
}

static void nodes_of_other_graphs_are_refused(void **state) {
    (void)state;
    graph *g = new_graph(), *other = new_graph();
    node *x = new_placeholder(g, "x");
    node *stranger = new_placeholder(other, "x");
    const value args[] = {NODE(x), NODE(stranger)};
    const node_spec spec = {
        .op = NODE_CALL_FUNCTION, .target = "torch.add", .args = args, .arg_count = 2};
    assert_int_equal(tare__graph_insert(g, &spec, NULL, NULL, NULL), TARE_INTERNAL);
    assert_string_equal(user_names(x), "");
    assert_int_equal(g->node_count, 1);
    tare__graph_destroy(g);
    tare__graph_destroy(other);
}

static void lost_memory_leaves_nothing_behind(void **state) {
    (void)state;
    graph *g = sample(), *copy = NULL;
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(status, status = tare__graph_clone(g, &copy, NULL),
                           tare__graph_destroy(copy));
    EVERY_ALLOCATION_FAILS(status, status = tare__graph_verify(g, NULL), (void)0);
    node *x = g->first, *relu = tare__graph_find(g, "relu_1");
    EVERY_ALLOCATION_FAILS(status, status = tare__node_replace_uses(x, relu, relu->prev, NULL),
                           (void)0);
    tare__graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_stand_in_order_of_insertion),
        cmocka_unit_test(users_are_listed_once_in_order_of_registration),
        cmocka_unit_test(uses_inside_containers_and_keywords_count),
        cmocka_unit_test(replacing_uses_spares_the_exception),
        cmocka_unit_test(erasing_a_used_node_is_refused),
        cmocka_unit_test(names_are_not_released_by_erasing),
        cmocka_unit_test(dead_nodes_go_and_impure_ones_stay),
        cmocka_unit_test(a_clone_keeps_ids_users_and_the_name_table),
        cmocka_unit_test(copied_nodes_keep_their_names_and_drop_the_gaps),
        cmocka_unit_test(nodes_of_other_graphs_are_refused),
        cmocka_unit_test(lost_memory_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
