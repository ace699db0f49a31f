// SPDX-License-Identifier: Apache-2.0
// Module trees: paths, configs, registered tensors, sharing in clones, and rebuilding from a graph.
#include "support/nodes.h"
#include "support/test.h"

#include "ir/module.h"

static const module_class container = {.name = "torch.nn.Module", .role = ROLE_CONTAINER};
static const module_class graph_module = {.name = "torch.fx.GraphModule", .role = ROLE_CONTAINER};
static const module_class linear = {.name = "torch.nn.Linear", .role = ROLE_FLOAT, .op = "linear"};

static module *new_module(const module_class *class) {
    module *m = NULL;
    CHECK_OK(tare__module_create(class, &m, NULL));
    return m;
}

// Binds a new module by path and keeps no reference of its own.
static module *put(module *root, const char *path, const module_class *class) {
    module *m = new_module(class);
    CHECK_OK(tare__module_set_path(root, path, m, &container, NULL));
    tare__module_release(m);
    return m;
}

static void put_tensor(module *root, const char *path, int64_t number) {
    tare_tensor *t = NULL;
    CHECK_OK(tare__tensor_scalar_int(number, &t, NULL));
    CHECK_OK(tare__module_set_tensor_path(root, path, t, true, &container, NULL));
    tare_tensor_release(t);
}

static tare_status append_path(void *user, const char *path, module *m, tare_error *err) {
    (void)err;
    snprintf((char *)user + strlen(user), 512 - strlen(user), "[%s %s]", path, m->class->name + 6);
    return TARE_OK;
}

static void check_tree(module *root, const char *expected) {
    char found[512] = "";
    CHECK_OK(tare__module_walk(root, append_path, found, NULL));
    assert_string_equal(found, expected);
}

static void paths_make_their_containers(void **state) {
    (void)state;
    module *root = new_module(&graph_module);
    module *fc = put(root, "layer1.0.fc", &linear);
    check_tree(root,
               "[ fx.GraphModule][layer1 nn.Module][layer1.0 nn.Module][layer1.0.fc nn.Linear]");
    assert_ptr_equal(tare__module_find(root, "layer1.0.fc"), fc);
    assert_ptr_equal(tare__module_find(root, ""), root);
    assert_null(tare__module_find(root, "layer1.1"));
    assert_null(tare__module_find(root, "layer"));
    put_tensor(root, "layer1.0.fc.weight", 7);
    assert_non_null(tare__module_tensor(fc, "weight"));
    assert_ptr_equal(tare__module_find_tensor(root, "layer1.0.fc.weight"),
                     tare__module_tensor(fc, "weight"));
    assert_null(tare__module_find_tensor(root, "layer1.weight"));
    assert_null(tare__module_find_tensor(root, "nowhere.weight"));
    tare__module_release(root);
}

static void broken_paths_are_refused(void **state) {
    (void)state;
    module *root = new_module(&graph_module), *m = new_module(&linear);
    const char *const broken[] = {"", ".a", "a..b", "a."};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
        assert_int_equal(tare__module_set_path(root, broken[i], m, &container, NULL),
                         TARE_INVALID_ARGUMENT);
    char deep[400] = "a";
    for (int i = 0; i < 64; i++) strcat(deep, ".a");
    assert_int_equal(tare__module_set_path(root, deep, m, &container, NULL), TARE_INVALID_ARGUMENT);
    tare__module_release(root);
    tare__module_release(m);
}

static void rebinding_keeps_the_place(void **state) {
    (void)state;
    module *root = new_module(&graph_module);
    put(root, "a", &linear);
    put(root, "b", &linear);
    module *shared = tare__module_find(root, "b");
    CHECK_OK(tare__module_set_child(root, "a", shared, NULL));
    assert_int_equal(shared->refcount, 2);
    CHECK_OK(tare__module_set_child(root, "a", shared, NULL)); // by itself
    assert_int_equal(shared->refcount, 2);
    check_tree(root, "[ fx.GraphModule][a nn.Linear][b nn.Linear]");
    tare__module_remove_child(root, "b");
    check_tree(root, "[ fx.GraphModule][a nn.Linear]");
    tare__module_release(root);
}

static void configs_are_read_by_kind(void **state) {
    (void)state;
    module *m = new_module(&linear);
    value pair[] = {tare__int(3), tare__int(5)};
    const value size = {.kind = VALUE_TUPLE, .count = 2, .as.items = pair};
    const value one = tare__int(1), half = tare__float(0.5), yes = tare__bool(true);
    CHECK_OK(tare__module_set_config(m, "kernel_size", &size, NULL));
    CHECK_OK(tare__module_set_config(m, "stride", &one, NULL));
    CHECK_OK(tare__module_set_config(m, "eps", &one, NULL));
    CHECK_OK(tare__module_set_config(m, "eps", &half, NULL));
    CHECK_OK(tare__module_set_config(m, "ceil_mode", &yes, NULL));
    int64_t out[2] = {0};
    assert_true(tare__module_ints(m, "kernel_size", 2, out) && out[0] == 3 && out[1] == 5);
    assert_true(tare__module_ints(m, "stride", 2, out) && out[0] == 1 && out[1] == 1);
    assert_false(tare__module_ints(m, "kernel_size", 3, out));
    assert_false(tare__module_ints(m, "eps", 1, out));
    assert_int_equal(tare__module_int(m, "stride", 9), 1);
    assert_int_equal(tare__module_int(m, "absent", 9), 9);
    assert_true(tare__module_double(m, "eps", 9) == 0.5);
    assert_true(tare__module_bool(m, "ceil_mode", false));
    assert_int_equal(m->config_count, 4);
    tare__module_release(m);
}

static void tensors_may_be_registered_as_none(void **state) {
    (void)state;
    module *m = new_module(&linear);
    CHECK_OK(tare__module_set_tensor(m, "bias", NULL, true, NULL));
    assert_true(tare__module_has_tensor(m, "bias"));
    assert_null(tare__module_tensor(m, "bias"));
    put_tensor(m, "bias", 1);
    assert_non_null(tare__module_tensor(m, "bias"));
    assert_int_equal(m->tensor_count, 1);
    tare__module_remove_tensor(m, "bias");
    assert_false(tare__module_has_tensor(m, "bias"));
    tare__module_release(m);
}

static void a_replaced_tensor_stays_a_parameter(void **state) {
    (void)state;
    module *root = new_module(&graph_module);
    tare_tensor *t = NULL;
    put_tensor(root, "fc.weight", 7);
    CHECK_OK(tare__tensor_scalar_int(8, &t, NULL));
    CHECK_OK(tare__module_replace_tensor(root, "fc.weight", t, NULL));
    CHECK_OK(tare__module_replace_tensor(root, "fc.bias", t, NULL));
    assert_ptr_equal(tare__module_find_tensor(root, "fc.weight"), t);
    assert_true(tare__module_find_named_tensor(root, "fc.weight")->is_parameter);
    assert_null(tare__module_find_named_tensor(root, "fc.bias"));
    tare_tensor_release(t);
    tare__module_release(root);
}

static void a_free_name_is_that_of_no_tensor_and_no_child(void **state) {
    (void)state;
    module *root = new_module(&graph_module);
    arena memory = {0};
    size_t number = 0;
    put_tensor(root, "observer_0", 7);
    put(root, "observer_1", &linear);
    assert_string_equal(tare__module_free_name(root, &memory, "observer_", &number), "observer_2");
    assert_int_equal(number, 2);
    number = 5;
    assert_string_equal(tare__module_free_name(root, &memory, "observer_", &number), "observer_5");
    tare__arena_release(&memory);
    tare__module_release(root);
}

static module *shared_tree(void) {
    module *root = new_module(&graph_module);
    put_tensor(root, "a.w", 7);
    put(root, "a.fc", &linear);
    CHECK_OK(tare__module_set_child(root, "b", tare__module_find(root, "a.fc"), NULL));
    tare__module_find(root, "b")->training = false;
    root->graph = new_graph();
    new_placeholder(root->graph, "x");
    return root;
}

static void a_clone_shares_what_was_shared(void **state) {
    (void)state;
    module *root = shared_tree(), *copy = NULL;
    CHECK_OK(tare__module_clone(root, &copy, NULL));
    check_tree(copy, "[ fx.GraphModule][a nn.Module][a.fc nn.Linear][b nn.Linear]");
    assert_ptr_equal(tare__module_find(copy, "b"), tare__module_find(copy, "a.fc"));
    assert_ptr_not_equal(tare__module_find(copy, "b"), tare__module_find(root, "b"));
    assert_int_equal(tare__module_find(copy, "b")->refcount, 2);
    assert_false(tare__module_find(copy, "b")->training);
    assert_ptr_equal(tare__module_find_tensor(copy, "a.w"), tare__module_find_tensor(root, "a.w"));
    assert_string_equal(node_names(copy->graph), "x");
    tare__module_release(root);
    tare__module_release(copy);
}

static void lost_memory_leaves_nothing_behind(void **state) {
    (void)state;
    module *root = shared_tree(), *copy = NULL;
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(status, status = tare__module_clone(root, &copy, NULL),
                           tare__module_release(copy));
    tare__module_release(root);
}

static module *model(void) {
    module *root = new_module(&graph_module);
    put(root, "unused", &linear);
    put(root, "seq.0", &linear);
    put(root, "seq.1", &linear);
    put_tensor(root, "seq.1.weight", 1);
    put(root, "last", &linear);
    put_tensor(root, "second", 2);
    put_tensor(root, "first", 1);
    return root;
}

static void rebuilt_trees_follow_the_graph(void **state) {
    (void)state;
    module *root = model(), *rebuilt = NULL;
    graph *g = new_graph();
    node *x = new_placeholder(g, "x");
    new_node(g, NODE_CALL_MODULE, "last", VALUES(tare__node_value(x)));
    new_node(g, NODE_GET_ATTR, "first", NULL, 0);
    new_node(g, NODE_CALL_MODULE, "seq.1", VALUES(tare__node_value(x)));
    new_node(g, NODE_GET_ATTR, "seq.1.weight", NULL, 0); // seq.1 is there already
    new_node(g, NODE_GET_ATTR, "second", NULL, 0);
    new_output(g, x);
    CHECK_OK(tare__module_from_graph(root, g, &container, &graph_module, &rebuilt, NULL));
    check_tree(rebuilt, "[ fx.GraphModule][last nn.Linear][seq nn.Module][seq.1 nn.Linear]");
    assert_ptr_equal(tare__module_find(rebuilt, "last"), tare__module_find(root, "last"));
    assert_int_equal(rebuilt->tensor_count, 2);
    assert_string_equal(rebuilt->tensors[0].name, "first");
    assert_ptr_equal(rebuilt->graph, g);
    tare__module_release(root);
    tare__module_release(rebuilt);
}

static void targets_that_do_not_exist_are_named(void **state) {
    (void)state;
    module *root = model(), *rebuilt = NULL;
    graph *g = new_graph();
    node *x = new_placeholder(g, "x");
    new_node(g, NODE_CALL_MODULE, "seq.2", VALUES(tare__node_value(x)));
    tare_error *err = tare_error_create();
    assert_int_equal(tare__module_from_graph(root, g, &container, &graph_module, &rebuilt, err),
                     TARE_NOT_FOUND);
    assert_string_equal(tare_error_message(err),
                        "node 'seq_2' refers to 'seq.2', which the model does not have");
    assert_null(rebuilt);
    tare_error_destroy(err);
    tare__graph_destroy(g);
    tare__module_release(root);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_make_their_containers),
        cmocka_unit_test(broken_paths_are_refused),
        cmocka_unit_test(rebinding_keeps_the_place),
        cmocka_unit_test(configs_are_read_by_kind),
        cmocka_unit_test(tensors_may_be_registered_as_none),
        cmocka_unit_test(a_replaced_tensor_stays_a_parameter),
        cmocka_unit_test(a_free_name_is_that_of_no_tensor_and_no_child),
        cmocka_unit_test(a_clone_shares_what_was_shared),
        cmocka_unit_test(lost_memory_leaves_nothing_behind),
        cmocka_unit_test(rebuilt_trees_follow_the_graph),
        cmocka_unit_test(targets_that_do_not_exist_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
