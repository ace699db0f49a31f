// SPDX-License-Identifier: Apache-2.0
// Which nodes a pattern matches: targets, users, arguments, literals; and equality of patterns.
#include "ir/pattern.h"

#include "support/nodes.h"
#include "support/test.h"

#define NODE(n) tare__node_value(n)
#define NAMED(k, n)                                                                                \
    { .kind = (k), .name = (n) }
#define FUNCTION(n) NAMED(PATTERN_FUNCTION, n)
#define MODULE(n)   NAMED(PATTERN_MODULE, n)
#define METHOD(n)   NAMED(PATTERN_METHOD, n)
#define ANY                                                                                        \
    { .kind = PATTERN_ANY }
#define INT(i)                                                                                     \
    {                                                                                              \
        .kind = PATTERN_LITERAL, .literal = {.kind = VALUE_INT, .as.integer = (i) }                \
    }
#define TUPLE(...)                                                                                 \
    {                                                                                              \
        .kind = PATTERN_TUPLE, .items = (const pattern[]){__VA_ARGS__},                            \
        .item_count = sizeof((const pattern[]){__VA_ARGS__}) / sizeof(pattern)                     \
    }

static const module_class container = {.name = "torch.nn.Module", .print_name = "Module"};
static const module_class conv = {
    .name = "torch.nn.Conv2d", .print_name = "Conv2d", .role = ROLE_FLOAT};
static const module_class relu = {
    .name = "torch.nn.ReLU", .print_name = "ReLU", .role = ROLE_FLOAT};

static module *root;

static void add_module(const char *path, const module_class *class) {
    module *m = NULL;
    CHECK_OK(tare__module_create(class, &m, NULL));
    CHECK_OK(tare__module_set_path(root, path, m, &container, NULL));
    tare__module_release(m);
}

static int make_modules(void **state) {
    (void)state;
    CHECK_OK(tare__module_create(&container, &root, NULL));
    add_module("conv", &conv);
    add_module("layer.relu", &relu);
    return 0;
}

static int drop_modules(void **state) {
    (void)state;
    tare__module_release(root);
    return 0;
}

static node *call_module(graph *g, const char *path, node *input) {
    return new_node(g, NODE_CALL_MODULE, path, VALUES(NODE(input)));
}

static bool matches(const pattern *p, node *n) {
    const value v = NODE(n);
    return tare__pattern_matches(p, &v, root);
}

static void operators_match_by_kind_and_exact_name(void **state) {
    (void)state;
    graph *g = new_graph();
    node *x = new_placeholder(g, "x");
    node *module_relu = call_module(g, "layer.relu", x);
    node *function_relu = new_call(g, "torch.relu", x, NULL);
    node *method_relu = new_node(g, NODE_CALL_METHOD, "relu", VALUES(NODE(x)));
    const pattern module_pattern = MODULE("torch.nn.ReLU");
    const pattern function_pattern = FUNCTION("torch.relu");
    const pattern other_function = FUNCTION("torch.nn.functional.relu");
    const pattern method_pattern = METHOD("relu");
    assert_true(matches(&module_pattern, module_relu));
    assert_false(matches(&module_pattern, function_relu));
    assert_true(matches(&function_pattern, function_relu));
    assert_false(matches(&function_pattern, method_relu));
    assert_false(matches(&other_function, function_relu));
    assert_true(matches(&method_pattern, method_relu));
    assert_false(matches(&method_pattern, module_relu));
    assert_false(matches(&method_pattern, x));
    tare__graph_destroy(g);
}

static void chains_match_from_the_last_operator(void **state) {
    (void)state;
    graph *g = new_graph();
    node *x = new_placeholder(g, "x");
    node *c = call_module(g, "conv", x);
    node *r = call_module(g, "layer.relu", c);
    const pattern conv_relu = TUPLE(MODULE("torch.nn.ReLU"), MODULE("torch.nn.Conv2d"));
    const pattern relu_conv = TUPLE(MODULE("torch.nn.Conv2d"), MODULE("torch.nn.ReLU"));
    assert_true(matches(&conv_relu, r));
    assert_false(matches(&relu_conv, r));
    assert_false(matches(&conv_relu, c));
    tare__graph_destroy(g);
}

static void only_the_outermost_node_may_have_several_users(void **state) {
    (void)state;
    graph *g = new_graph();
    node *x = new_placeholder(g, "x");
    node *c = call_module(g, "conv", x);
    node *r = call_module(g, "layer.relu", c);
    new_call(g, "torch.add", r, r);
    new_call(g, "torch.mul", r, r);
    const pattern conv_relu = TUPLE(MODULE("torch.nn.ReLU"), MODULE("torch.nn.Conv2d"));
    assert_true(matches(&conv_relu, r));
    new_call(g, "torch.tanh", c, NULL); // a second user of the inner node
    assert_false(matches(&conv_relu, r));
    tare__graph_destroy(g);
}

static void every_positional_argument_needs_its_pattern(void **state) {
    (void)state;
    graph *g = new_graph();
    node *x = new_placeholder(g, "x");
    node *c = call_module(g, "conv", x);
    node *sum = new_node(g, NODE_CALL_FUNCTION, "operator.add",
                         VALUES(NODE(c), {.kind = VALUE_FLOAT, .as.real = 2.5}));
    const pattern left = TUPLE(FUNCTION("operator.add"), MODULE("torch.nn.Conv2d"), ANY);
    const pattern right = TUPLE(FUNCTION("operator.add"), ANY, MODULE("torch.nn.Conv2d"));
    const pattern one = TUPLE(FUNCTION("operator.add"), MODULE("torch.nn.Conv2d"));
    const pattern three = TUPLE(FUNCTION("operator.add"), MODULE("torch.nn.Conv2d"), ANY, ANY);
    assert_true(matches(&left, sum)); // a wildcard takes constants too
    assert_false(matches(&right, sum));
    assert_false(matches(&one, sum));
    assert_false(matches(&three, sum));
    tare__graph_destroy(g);
}

static void keyword_arguments_do_not_count(void **state) {
    (void)state;
    graph *g = new_graph();
    node *x = new_placeholder(g, "x");
    node *c = call_module(g, "conv", x);
    const value args[] = {NODE(c)};
    const keyword kwargs[] = {{"inplace", tare__bool(true)}};
    const node_spec spec = {.op = NODE_CALL_FUNCTION,
                            .target = "torch.nn.functional.relu",
                            .args = args,
                            .arg_count = 1,
                            .kwargs = kwargs,
                            .kwarg_count = 1};
    node *r = NULL;
    CHECK_OK(tare__graph_insert(g, &spec, NULL, &r, NULL));
    const pattern p = TUPLE(FUNCTION("torch.nn.functional.relu"), MODULE("torch.nn.Conv2d"));
    assert_true(matches(&p, r));
    tare__graph_destroy(g);
}

static void literals_compare_as_in_python(void **state) {
    (void)state;
    graph *g = new_graph();
    node *x = new_placeholder(g, "x");
    node *pool = new_call(g, "torch.max_pool2d", x, NULL);
    node *first = new_node(g, NODE_CALL_FUNCTION, "operator.getitem",
                           VALUES(NODE(pool), {.kind = VALUE_INT, .as.integer = 0}));
    const pattern zero = TUPLE(FUNCTION("operator.getitem"), FUNCTION("torch.max_pool2d"), INT(0));
    const pattern one = TUPLE(FUNCTION("operator.getitem"), FUNCTION("torch.max_pool2d"), INT(1));
    assert_true(matches(&zero, first));
    assert_false(matches(&one, first));
    const value no = tare__bool(false), half = tare__float(0.5), none = tare__none();
    const pattern literal = INT(0);
    assert_true(tare__pattern_matches(&literal, &no, root));
    assert_false(tare__pattern_matches(&literal, &half, root));
    assert_false(tare__pattern_matches(&literal, &none, root));
    tare__graph_destroy(g);
}

static void getattr_compares_the_attribute(void **state) {
    (void)state;
    graph *g = new_graph();
    node *x = new_placeholder(g, "x");
    node *shape = new_node(g, NODE_CALL_FUNCTION, "getattr",
                           VALUES(NODE(x), {.kind = VALUE_STRING, .as.text = "shape"}));
    const pattern p = TUPLE(FUNCTION("getattr"), METHOD("shape"));
    const pattern other = TUPLE(FUNCTION("getattr"), METHOD("ndim"));
    assert_true(matches(&p, shape));
    assert_false(matches(&other, shape));
    tare__graph_destroy(g);
}

static void equality_and_length_descend(void **state) {
    (void)state;
    const pattern a = TUPLE(MODULE("A"), TUPLE(FUNCTION("f"), ANY, INT(0)));
    const pattern same = TUPLE(MODULE("A"), TUPLE(FUNCTION("f"), ANY, INT(0)));
    const pattern literal = TUPLE(MODULE("A"), TUPLE(FUNCTION("f"), ANY, INT(1)));
    const pattern kind = TUPLE(MODULE("A"), TUPLE(METHOD("f"), ANY, INT(0)));
    const pattern flat = TUPLE(MODULE("A"), FUNCTION("f"), ANY, INT(0));
    assert_true(tare__pattern_equal(&a, &same));
    assert_false(tare__pattern_equal(&a, &literal));
    assert_false(tare__pattern_equal(&a, &kind));
    assert_false(tare__pattern_equal(&a, &flat));
    assert_int_equal(tare__pattern_leaf_count(&a), 4);
    assert_int_equal(tare__pattern_leaf_count(&flat), 4);
}

static void targets_that_are_missing_match_nothing(void **state) {
    (void)state;
    graph *g = new_graph();
    node *lost = call_module(g, "nowhere", new_placeholder(g, "x"));
    const pattern p = MODULE("torch.nn.Conv2d");
    pattern_kind kind = PATTERN_ANY;
    assert_false(matches(&p, lost));
    assert_null(tare__node_operator(lost, root, &kind));
    tare__graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_match_by_kind_and_exact_name),
        cmocka_unit_test(chains_match_from_the_last_operator),
        cmocka_unit_test(only_the_outermost_node_may_have_several_users),
        cmocka_unit_test(every_positional_argument_needs_its_pattern),
        cmocka_unit_test(keyword_arguments_do_not_count),
        cmocka_unit_test(literals_compare_as_in_python),
        cmocka_unit_test(getattr_compares_the_attribute),
        cmocka_unit_test(equality_and_length_descend),
        cmocka_unit_test(targets_that_are_missing_match_nothing),
    };
    return cmocka_run_group_tests(tests, make_modules, drop_modules);
}
