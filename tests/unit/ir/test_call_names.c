// SPDX-License-Identifier: Apache-2.0
// Names of inputs and outputs, from the trees of an exported program and from results of a run.
#include "support/models.h"
#include "support/nodes.h"
#include "support/test.h"

#include "ir/call_names.h"

#define LEAF "{'type': null, 'context': null, 'children_spec': []}"
#define TREE(type, context, children)                                                              \
    "{'type': '" type "', 'context': '" context "', 'children_spec': [" children "]}"
#define DICT(keys, children) TREE("builtins.dict", keys, children)
#define TUPLE(children)      TREE("builtins.tuple", "null", children)

// A graph of three inputs that returns two of their three sums in a tuple.
static graph *three_inputs(void) {
    graph *g = new_graph();
    value items[2];
    const value result = {.kind = VALUE_TUPLE, .count = 2, .as.items = items};
    new_placeholder(g, "a_x");
    items[0] = tare__node_value(new_placeholder(g, "a_y_0"));
    items[1] = tare__node_value(new_placeholder(g, "mask"));
    const node_spec output = {
        .op = NODE_OUTPUT, .target = "output", .args = &result, .arg_count = 1};
    node *n = NULL;
    CHECK_DONE(tare__graph_insert(g, &output, NULL, &n, job_error()));
    return g;
}

// Single quotes stand for double ones; `quoted` goes into a string of JSON.
static void append(text *out, const char *chars, bool quoted) {
    text plain = {0};
    for (; *chars != '\0'; chars++) {
        if (*chars == '`') tare__text_char(&plain, '\\');
        tare__text_char(&plain, *chars == '\'' || *chars == '`' ? '"' : *chars);
    }
    if (quoted)
        tare__text_json_string(out, tare__text_chars(&plain));
    else
        tare__text_append(out, tare__text_chars(&plain));
    tare__text_release(&plain);
}

static tare_status read_names(graph *g, const char *in, const char *out) {
    text about = {0};
    json_t *json = NULL;
    append(&about, "{'treespec_namedtuple_fields': {'m.P': {'field_names': ['loc', 'scale']}}, ",
           false);
    append(&about, "'module_call_graph': [{'signature': {'forward_arg_names': ['a', 'mask'], ",
           false);
    append(&about, "'in_spec': ", false);
    append(&about, in, true);
    append(&about, ", 'out_spec': ", false);
    append(&about, out, true);
    append(&about, "}}]}", false);
    CHECK_DONE(tare__json_parse(about.chars, about.length, &json, job_error()));
    const json_at root = tare__json_root(json);
    const tare_status status = tare__call_names_read(g, &root, job_error());
    json_decref(json);
    tare__text_release(&about);
    return status;
}

static const char plain_inputs[] =
    "[1, " TUPLE(TUPLE(LEAF ", " LEAF) ", " DICT("[`mask`]", LEAF)) "]";

static void check_nesting(const graph *g, const value *result, const char *expected) {
    arena memory = {0};
    call_names names = {0};
    CHECK_DONE(tare__output_names(g, result, &memory, &names, job_error()));
    text wanted = {0};
    append(&wanted, expected, false);
    assert_string_equal(names.tree, tare__text_chars(&wanted));
    tare__text_release(&wanted);
    tare__arena_release(&memory);
}

// The names of what the graph returns, one after the other.
static void check_outputs(const graph *g, const value *result, const char *expected) {
    arena memory = {0};
    call_names names = {0};
    text all = {0};
    CHECK_DONE(tare__output_names(g, result, &memory, &names, job_error()));
    for (size_t i = 0; i < names.count; i++)
        tare__text_printf(&all, "%s%s", i > 0 ? " " : "", names.items[i]);
    assert_string_equal(tare__text_chars(&all), expected);
    tare__text_release(&all);
    tare__arena_release(&memory);
}

static void check_tree(const char *tree, const char *expected) {
    graph *g = three_inputs();
    CHECK_DONE(read_names(g, plain_inputs, tree));
    check_outputs(g, NULL, expected);
    tare__graph_destroy(g);
}

static void outputs_are_called_by_their_paths(void **state) {
    (void)state;
    check_tree("[1, " DICT("[`sum`, `both`]", LEAF ", " TUPLE(LEAF)) "]", "sum both.0");
    check_tree("[1, " TUPLE(DICT("[`y`]", LEAF) ", " LEAF) "]", "output.0.y output.1");
    check_tree("[1, " DICT("[3, `b`]", LEAF ", " LEAF) "]", "output.3 b");
    check_tree("[1, " TREE("collections.namedtuple", "m.P", LEAF ", " LEAF) "]", "loc scale");
    check_tree("[1, " TREE("m.Dataclass", "[[`p`, `q`], [`none`]]", LEAF ", " LEAF) "]", "p q");
    check_tree(
        "[1, " TREE("collections.defaultdict", "{`dict_context`: [`p`, `q`]}", LEAF ", " LEAF) "]",
        "p q");
    // Contexts that tell no keys: positions.
    check_tree("[1, " TREE("m.Other", "not JSON", LEAF ", " LEAF) "]", "output.0 output.1");
    check_tree("[1, " DICT("[`one`]", LEAF ", " LEAF) "]", "output.0 output.1");
}

static void names_are_unique_and_not_endless(void **state) {
    (void)state;
    check_tree("[1, " DICT("[`a.b`, `a`]", LEAF ", " DICT("[`b`]", LEAF)) "]", "a.b a.b_1");
    check_tree("[1, " DICT("[``, `k`]", LEAF ", " LEAF) "]", "output.0 k");
    text tree = {0};
    tare__text_append(&tree, "[1, {'type': 'builtins.dict', 'context': '[`");
    for (int i = 0; i < 300; i++) tare__text_char(&tree, 'x');
    tare__text_append(&tree, "`, `k`]', 'children_spec': [" LEAF ", " LEAF "]}]");
    check_tree(tare__text_chars(&tree), "output.0 k");
    tare__text_release(&tree);
}

static void trees_of_other_graphs_name_nothing(void **state) {
    (void)state;
    check_tree("[1, " DICT("[`sum`]", LEAF) "]", "output.0 output.1");
    check_tree("[1, " LEAF "]", "output.0 output.1");
    graph *g = three_inputs();
    CHECK_DONE(read_names(g, "[1, " TUPLE(TUPLE(LEAF) ", " DICT("[]", "")) "]", "[1, " LEAF "]"));
    assert_string_equal(tare__input_name(g->first), "a_x");
    tare__graph_destroy(g);
}

static void inputs_are_called_by_their_paths(void **state) {
    (void)state;
    graph *g = three_inputs(), *copy = NULL;
    CHECK_DONE(read_names(g,
                          "[1, " TUPLE(TUPLE(DICT("[`x`, `y`]", LEAF ", " TUPLE(LEAF))) ", " DICT(
                              "[`mask`]", LEAF)) "]",
                          "[1, " LEAF "]"));
    CHECK_DONE(tare__graph_clone(g, &copy, job_error()));
    assert_string_equal(tare__input_name(copy->first), "a.x");
    assert_string_equal(tare__input_name(copy->first->next), "a.y.0");
    assert_string_equal(tare__input_name(copy->first->next->next), "mask");
    tare__graph_destroy(g);
    tare__graph_destroy(copy);
}

static void broken_trees_are_refused(void **state) {
    (void)state;
    static const char *const broken[] = {"[1", "[1]", "[1, 2]", "[1, {'type': 'x'}]",
                                         "[1, {'type': 'x', 'children_spec': [3]}]"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        graph *g = three_inputs();
        assert_int_equal(read_names(g, plain_inputs, broken[i]), TARE_MALFORMED_FILE);
        assert_int_equal(read_names(g, broken[i], "[1, " LEAF "]"), TARE_MALFORMED_FILE);
        tare__graph_destroy(g);
    }
}

static void check_nesting_of(const char *tree, const char *expected) {
    graph *g = three_inputs(), *copy = NULL;
    CHECK_DONE(read_names(g, plain_inputs, tree));
    CHECK_DONE(tare__graph_clone(g, &copy, job_error()));
    check_nesting(copy, NULL, expected);
    tare__graph_destroy(copy);
    tare__graph_destroy(g);
}

static void nesting_is_the_exporter_s(void **state) {
    (void)state;
    check_nesting_of("[1, " DICT("[`sum`, `both`]", LEAF ", " TUPLE(LEAF)) "]",
                     "{'type': 'dict', 'items': [0, {'type': 'tuple', 'items': [1]}], "
                     "'keys': ['sum', 'both']}");
    check_nesting_of("[1, " TREE("builtins.list", "null", LEAF ", " LEAF) "]",
                     "{'type': 'list', 'items': [0, 1]}");
    check_nesting_of("[1, " TREE("collections.namedtuple", "m.P", LEAF ", " LEAF) "]",
                     "{'type': 'namedtuple', 'name': 'm.P', 'items': [0, 1], "
                     "'keys': ['loc', 'scale']}");
    check_nesting_of("[1, " TREE("m.Dataclass", "[[`p`, `q`], [`none`]]", LEAF ", " LEAF) "]",
                     "{'type': 'object', 'name': 'm.Dataclass', 'items': [0, 1], "
                     "'keys': ['p', 'q']}");
    // A tree of another graph, or none: what the graph returns.
    check_nesting_of("[1, " LEAF "]", "{'type': 'tuple', 'items': [0, 1]}");
}

// What a node gave, and what is no tensor, stands in the exporter's tree.
static void nesting_has_what_a_run_gave(void **state) {
    (void)state;
    graph *g = three_inputs();
    value pair[] = {{.kind = VALUE_TENSOR}, {.kind = VALUE_TENSOR}};
    value items[] = {{.kind = VALUE_TUPLE, .count = 2, .as.items = pair}, tare__int(3)};
    const value result = {.kind = VALUE_TUPLE, .count = 2, .as.items = items};
    CHECK_DONE(read_names(g, plain_inputs, "[1, " DICT("[`a`, 7]", LEAF ", " LEAF) "]"));
    check_nesting(g, &result,
                  "{'type': 'dict', 'items': [{'type': 'tuple', 'items': [0, 1]}, {'value': 3}], "
                  "'keys': ['a', 7]}");
    tare__graph_destroy(g);
}

// What a run gave tells of nodes that give several tensors, and of those that give none.
static void results_tell_what_a_node_gave(void **state) {
    (void)state;
    graph *g = three_inputs();
    value pair[] = {{.kind = VALUE_TENSOR}, {.kind = VALUE_TENSOR}};
    value items[] = {{.kind = VALUE_TUPLE, .count = 2, .as.items = pair}, tare__int(3)};
    const value result = {.kind = VALUE_TUPLE, .count = 2, .as.items = items};
    check_outputs(g, &result, "output.0.0 output.0.1");
    items[0] = pair[0];
    check_outputs(g, &result, "output");
    tare__graph_destroy(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_are_called_by_their_paths),
        cmocka_unit_test(names_are_unique_and_not_endless),
        cmocka_unit_test(trees_of_other_graphs_name_nothing),
        cmocka_unit_test(inputs_are_called_by_their_paths),
        cmocka_unit_test(broken_trees_are_refused),
        cmocka_unit_test(nesting_is_the_exporter_s),
        cmocka_unit_test(nesting_has_what_a_run_gave),
        cmocka_unit_test(results_tell_what_a_node_gave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
