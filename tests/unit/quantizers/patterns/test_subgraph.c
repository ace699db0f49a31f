// SPDX-License-Identifier: Apache-2.0
// Patterns written as code match graphs: inner users, literals, defaults, overlaps and refusals.
#include "support/exported.h"
#include "support/models.h"
#include "support/test.h"

#define CONV_RELU(relu)                                                                            \
    "def forward(self, x, weight, bias):\n"                                                        \
    "    conv2d = torch.nn.functional.conv2d(x, weight, bias)\n"                                   \
    "    relu = torch.nn.functional." relu "\n"                                                    \
    "    return (relu, {'input': x, 'bias': bias, 'conv': conv2d, 'output': relu})\n"

static tare_subgraph_pattern *new_pattern(const char *code, bool ignore_literals) {
    const tare_pattern_options options = {.ignore_literals = ignore_literals};
    tare_subgraph_pattern *p = NULL;
    CHECK_DONE(tare_subgraph_pattern_create(&code, 1, &options, &p, job_error()));
    return p;
}

static size_t count_matches(const char *pattern, bool ignore_literals, const char *code) {
    tare_model *model = new_exported(NULL, code);
    tare_subgraph_pattern *p = new_pattern(pattern, ignore_literals);
    tare_subgraph_matches *m = NULL;
    CHECK_DONE(tare_subgraph_find(p, model, &m, job_error()));
    const size_t count = tare_subgraph_matches_count(m);
    tare_subgraph_matches_destroy(m);
    tare_subgraph_pattern_destroy(p);
    tare_model_destroy(model);
    return count;
}

static void names_and_edges_of_a_match(void **state) {
    (void)state;
    tare_model *model = new_exported(NULL, "def forward(self, x, w, b, v):\n"
                                           "    other = torch.ops.aten.conv2d.default(x, v, None)\n"
                                           "    conv = torch.ops.aten.conv2d.default(x, w, b)\n"
                                           "    relu_ = torch.ops.aten.relu_.default(conv)\n"
                                           "    relu = torch.ops.aten.relu.default(other)\n"
                                           "    return (relu, relu_, x)\n");
    const char *const forms[] = {CONV_RELU("relu(conv2d)"),
                                 CONV_RELU("relu(conv2d, inplace=True)")};
    tare_subgraph_pattern *p = NULL;
    tare_subgraph_matches *m = NULL;
    tare_edge edge;
    CHECK_DONE(tare_subgraph_pattern_create(forms, 2, NULL, &p, job_error()));
    CHECK_DONE(tare_subgraph_find(p, model, &m, job_error()));
    assert_int_equal(tare_subgraph_matches_count(m), 2);
    assert_int_equal(tare_subgraph_match_form(m, 0), 0);
    assert_int_equal(tare_subgraph_match_form(m, 1), 1);
    assert_string_equal(tare_node_name(tare_subgraph_match_node(m, 0, "conv")), "other");
    assert_null(tare_subgraph_match_node(m, 0, "bias")); // None stands there
    assert_null(tare_subgraph_match_node(m, 0, "nobody"));
    assert_string_equal(tare_node_name(tare_subgraph_match_node(m, 1, "bias")), "b");
    assert_string_equal(tare_node_name(tare_subgraph_match_node(m, 1, "output")), "relu_");
    // x is read by three nodes; the edge says which of them is meant.
    assert_true(tare_subgraph_match_edge(m, 1, "input", 0, &edge));
    assert_string_equal(tare_node_name(edge.from), "x");
    assert_string_equal(tare_node_name(edge.node), "conv");
    assert_false(tare_subgraph_match_edge(m, 1, "input", 1, &edge));
    assert_false(tare_subgraph_match_edge(m, 1, "output", 0, &edge));
    tare_subgraph_matches_destroy(m);
    tare_subgraph_pattern_destroy(p);
    tare_model_destroy(model);
}

static void inner_results_may_not_be_read_outside(void **state) {
    (void)state;
    assert_int_equal(count_matches(CONV_RELU("relu(conv2d)"), false,
                                   "def forward(self, x, w, b):\n"
                                   "    conv = torch.ops.aten.conv2d.default(x, w, b)\n"
                                   "    relu = torch.ops.aten.relu.default(conv)\n"
                                   "    return (relu, conv)\n"),
                     0);
}

static void literals_count_unless_ignored(void **state) {
    (void)state;
    static const char strided[] = "def forward(self, x, w, b):\n"
                                  "    conv = torch.ops.aten.conv2d.default(x, w, b, [2, 2])\n"
                                  "    relu = torch.ops.aten.relu.default(conv)\n"
                                  "    return relu\n";
    static const char plain[] =
        "def forward(self, x, w, b):\n"
        "    conv = torch.ops.aten.conv2d.default(x, w, b, [1, 1], [0, 0])\n"
        "    relu = torch.ops.aten.relu.default(conv)\n"
        "    return relu\n";
    assert_int_equal(count_matches(CONV_RELU("relu(conv2d)"), false, strided), 0);
    assert_int_equal(count_matches(CONV_RELU("relu(conv2d)"), true, strided), 1);
    assert_int_equal(count_matches(CONV_RELU("relu(conv2d)"), false, plain), 1); // the defaults
}

static void an_argument_that_was_left_out_is_its_default(void **state) {
    (void)state;
    assert_int_equal(count_matches(CONV_RELU("relu(conv2d)"), false,
                                   "def forward(self, x, w):\n"
                                   "    conv = torch.ops.aten.conv2d.default(x, w)\n"
                                   "    relu = torch.ops.aten.relu.default(conv)\n"
                                   "    return relu\n"),
                     1);
    assert_int_equal(count_matches("def forward(self, x, y):\n"
                                   "    add = torch.ops.aten.add.Tensor(x, y, alpha = 2)\n"
                                   "    return add\n",
                                   false,
                                   "def forward(self, x, y):\n"
                                   "    add = torch.ops.aten.add.Tensor(x, y)\n"
                                   "    return add\n"),
                     0);
}

#define CALL(line) "def forward(self, x):\n    y = torch.ops.aten." line "\n    return y\n"

static void every_overload_has_its_defaults(void **state) {
    (void)state;
    static const char softplus[] = CALL("softplus.default(x)"), mean[] = CALL("mean.dim(x, [1])");
    static const char unbiased[] = CALL("var.correction(x, [1])");
    assert_int_equal(count_matches(softplus, false, CALL("softplus.default(x, 1, 20)")), 1);
    assert_int_equal(count_matches(softplus, false, CALL("softplus.default(x, 2, 20)")), 0);
    assert_int_equal(count_matches(mean, false, CALL("mean.dim(x, [1], keepdim = False)")), 1);
    assert_int_equal(count_matches(mean, false, CALL("mean.dim(x, [1], keepdim = True)")), 0);
    assert_int_equal(
        count_matches(unbiased, false, CALL("var.correction(x, [1], keepdim = False)")), 1);
    assert_int_equal(count_matches(unbiased, false, CALL("var.correction(x, [1], correction = 1)")),
                     0);
}

static void the_order_of_batch_norms_arguments_is_atens(void **state) {
    (void)state;
    assert_int_equal(
        count_matches("def forward(self, x, m, v, g, b):\n"
                      "    bn = torch.nn.functional.batch_norm(x, m, v, g, b, training = True)\n"
                      "    return (bn, {'gamma': g, 'mean': m})\n",
                      false,
                      "def forward(self, x, g, b, m, v):\n"
                      "    bn = torch.ops.aten.batch_norm.default(x, g, b, m, v, True, 0.1, "
                      "1e-05, True)\n"
                      "    return bn\n"),
        1);
}

static void matches_share_no_nodes_unless_asked(void **state) {
    (void)state;
    static const char pattern[] = "def forward(self, x):\n"
                                  "    a = torch.ops.aten.relu.default(x)\n"
                                  "    b = torch.ops.aten.relu.default(a)\n"
                                  "    return b\n";
    static const char code[] = "def forward(self, x):\n"
                               "    a = torch.ops.aten.relu.default(x)\n"
                               "    b = torch.ops.aten.relu.default(a)\n"
                               "    c = torch.ops.aten.relu.default(b)\n"
                               "    return c\n";
    const char *const codes[] = {pattern};
    const tare_pattern_options options = {.keeps_overlapping = true};
    assert_int_equal(count_matches(pattern, false, code), 1);
    tare_model *model = new_exported(NULL, code);
    tare_subgraph_pattern *p = NULL;
    tare_subgraph_matches *m = NULL;
    CHECK_DONE(tare_subgraph_pattern_create(codes, 1, &options, &p, job_error()));
    CHECK_DONE(tare_subgraph_find(p, model, &m, job_error()));
    assert_int_equal(tare_subgraph_matches_count(m), 2);
    tare_subgraph_matches_destroy(m);
    tare_subgraph_pattern_destroy(p);
    tare_model_destroy(model);
}

static void a_match_that_would_wait_for_itself_is_none(void **state) {
    (void)state;
    static const char pattern[] = "def forward(self, x, y):\n"
                                  "    a = torch.ops.aten.relu.default(x)\n"
                                  "    b = torch.ops.aten.add.Tensor(a, y)\n"
                                  "    return (a, b)\n";
    // What is added comes from the relu, through something outside.
    assert_int_equal(count_matches(pattern, false,
                                   "def forward(self, x):\n"
                                   "    a = torch.ops.aten.relu.default(x)\n"
                                   "    s = torch.ops.aten.sigmoid.default(a)\n"
                                   "    b = torch.ops.aten.add.Tensor(a, s)\n"
                                   "    return b\n"),
                     0);
    assert_int_equal(count_matches(pattern, false,
                                   "def forward(self, x, y):\n"
                                   "    a = torch.ops.aten.relu.default(x)\n"
                                   "    s = torch.ops.aten.sigmoid.default(y)\n"
                                   "    b = torch.ops.aten.add.Tensor(a, s)\n"
                                   "    return b\n"),
                     1);
}

static void check_bad(const char *code, const char *words) {
    tare_subgraph_pattern *p = NULL;
    CHECK_REFUSED(tare_subgraph_pattern_create(&code, 1, NULL, &p, job_error()),
                  TARE_INVALID_ARGUMENT, words);
}

static void patterns_that_match_nothing_are_refused(void **state) {
    (void)state;
    check_bad("def forward(self, x):\n    return x\n", "empty pattern");
    check_bad("def forward(self, x):\n"
              "    a = torch.ops.aten.relu.default(x)\n"
              "    b = torch.ops.aten.relu.default(x)\n"
              "    return a\n",
              "dead code");
    check_bad("def forward(self, x):\n"
              "    a = torch.ops.aten.relu.default(x)\n"
              "    return ({'a': a},)\n",
              "at least two outputs");
    check_bad("def forward(self, x):\n"
              "    a = torch.nn.functional.relu(x, colour = 1)\n"
              "    return a\n",
              "no argument 'colour'");
}

static void memory_may_run_out(void **state) {
    (void)state;
    tare_model *model = new_exported(NULL, "def forward(self, x, w):\n"
                                           "    conv = torch.ops.aten.conv2d.default(x, w)\n"
                                           "    relu = torch.ops.aten.relu.default(conv)\n"
                                           "    return relu\n");
    const char *const codes[] = {CONV_RELU("relu(conv2d)")};
    tare_subgraph_pattern *p = NULL;
    tare_subgraph_matches *m = NULL;
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(status, status = tare_subgraph_pattern_create(codes, 1, NULL, &p, NULL),
                           tare_subgraph_pattern_destroy(p));
    CHECK_OK(tare_subgraph_pattern_create(codes, 1, NULL, &p, NULL));
    EVERY_ALLOCATION_FAILS(status, status = tare_subgraph_find(p, model, &m, NULL),
                           tare_subgraph_matches_destroy(m));
    tare_subgraph_pattern_destroy(p);
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_edges_of_a_match),
        cmocka_unit_test(inner_results_may_not_be_read_outside),
        cmocka_unit_test(literals_count_unless_ignored),
        cmocka_unit_test(an_argument_that_was_left_out_is_its_default),
        cmocka_unit_test(every_overload_has_its_defaults),
        cmocka_unit_test(the_order_of_batch_norms_arguments_is_atens),
        cmocka_unit_test(matches_share_no_nodes_unless_asked),
        cmocka_unit_test(a_match_that_would_wait_for_itself_is_none),
        cmocka_unit_test(patterns_that_match_nothing_are_refused),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
