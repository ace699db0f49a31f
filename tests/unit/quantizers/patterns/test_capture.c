// SPDX-License-Identifier: Apache-2.0
// What code becomes as a pattern is what torch.export made of it: the one is found in the other.
// Data: tests/data/captures.json, recorded by tests/data/record_captures.py with PyTorch 2.15.
#include "core/json/json.h"
#include "support/exported.h"
#include "support/models.h"
#include "support/test.h"

enum { MOST = 8, MOST_RANK = 6 };
typedef struct example {
    tare_pattern_input inputs[MOST];
    int64_t shapes[MOST][MOST_RANK];
    size_t count;
} example;

static void read_inputs(const json_t *list, example *out) {
    *out = (example){.count = json_array_size(list)};
    assert_true(out->count <= MOST);
    for (size_t i = 0; i < out->count; i++) {
        const json_t *item = json_array_get(list, i), *shape = json_object_get(item, "shape");
        tare_pattern_input *input = &out->inputs[i];
        input->constant = json_string_value(json_object_get(item, "constant"));
        if (input->constant != NULL) continue;
        input->dtype = tare_dtype_from_name(json_string_value(json_object_get(item, "dtype")));
        input->rank = json_array_size(shape);
        input->shape = out->shapes[i];
        for (size_t d = 0; d < input->rank; d++)
            out->shapes[i][d] = json_integer_value(json_array_get(shape, d));
    }
}

static size_t count_matches(const char *pattern, const example *e, const char *code) {
    tare_model *model = new_exported(NULL, code);
    tare_subgraph_pattern *p = NULL;
    tare_subgraph_matches *m = NULL;
    const tare_pattern_example one = {.inputs = e->inputs, .input_count = e->count};
    const tare_pattern_options options = {
        .struct_size = sizeof options, .examples = &one, .example_count = 1};
    CHECK_DONE(tare_subgraph_pattern_create(&pattern, 1, &options, &p, job_error()));
    CHECK_DONE(tare_subgraph_find(p, model, &m, job_error()));
    const size_t count = tare_subgraph_matches_count(m);
    tare_subgraph_matches_destroy(m);
    tare_subgraph_pattern_destroy(p);
    tare_model_destroy(model);
    return count;
}

static void code_becomes_what_torch_exports(void **state) {
    (void)state;
    json_t *cases = NULL;
    size_t missed = 0;
    CHECK_DONE(tare__json_parse_file("tests/data/captures.json", &cases, job_error()));
    assert_true(json_array_size(cases) > 150);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *one = json_array_get(cases, i);
        const char *pattern = json_string_value(json_object_get(one, "pattern"));
        const char *exported = json_string_value(json_object_get(one, "exported"));
        example e;
        read_inputs(json_object_get(one, "example"), &e);
        if (count_matches(pattern, &e, exported) == 1) continue;
        print_message("not found:\n%sin\n%s", pattern, exported);
        missed++;
    }
    assert_int_equal(missed, 0);
    json_decref(cases);
}

// --- several examples ---

#define INPUTS(...) ((const tare_pattern_input[]){__VA_ARGS__})
#define TENSOR(...)                                                                                \
    {                                                                                              \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .shape = (int64_t[]) {         \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define EXAMPLE(list)                                                                              \
    { .inputs = (list), .input_count = sizeof(list) / sizeof *(list) }

static tare_subgraph_pattern *new_pattern(const char *code, const tare_pattern_example *examples,
                                          size_t count) {
    const tare_pattern_options options = {
        .struct_size = sizeof options, .examples = examples, .example_count = count};
    tare_subgraph_pattern *p = NULL;
    CHECK_DONE(tare_subgraph_pattern_create(&code, 1, &options, &p, job_error()));
    return p;
}

// The form that finds something in the code; -1: none does.
static int form_in(const tare_subgraph_pattern *p, const char *code) {
    tare_model *model = new_exported(NULL, code);
    tare_subgraph_matches *m = NULL;
    CHECK_DONE(tare_subgraph_find(p, model, &m, job_error()));
    const int form = tare_subgraph_matches_count(m) > 0 ? (int)tare_subgraph_match_form(m, 0) : -1;
    tare_subgraph_matches_destroy(m);
    tare_model_destroy(model);
    return form;
}

#define CALL(line) "def forward(self, x):\n    y = " line "\n    return y\n"

static void every_example_gives_a_form(void **state) {
    (void)state;
    static const char code[] = CALL("torch.nn.functional.interpolate(x, scale_factor = 2.0)");
    const tare_pattern_example examples[] = {
        EXAMPLE(INPUTS(TENSOR(1, 2, 4))), EXAMPLE(INPUTS(TENSOR(1, 2, 4, 4))),
        EXAMPLE(INPUTS(TENSOR(3, 2, 8, 8))), EXAMPLE(INPUTS(TENSOR(1, 2, 4, 4, 4)))};
    tare_subgraph_pattern *p = new_pattern(code, examples, 4);
#define UPSAMPLE(d, scales) CALL("torch.ops.aten.upsample_nearest" d ".vec(x, None, [" scales "])")
    assert_int_equal(form_in(p, UPSAMPLE("1d", "2.0")), 0);
    assert_int_equal(form_in(p, UPSAMPLE("2d", "2.0, 2.0")), 1);
    // The third example's form is the second's again.
    assert_int_equal(form_in(p, UPSAMPLE("3d", "2.0, 2.0, 2.0")), 2);
    assert_int_equal(form_in(p, UPSAMPLE("2d", "3.0, 3.0")), -1);
    tare_subgraph_pattern_destroy(p);
}

static void constants_of_examples_are_no_parameters(void **state) {
    (void)state;
    static const char code[] = "def forward(self, x, training):\n"
                               "    y = torch.nn.functional.dropout(x, 0.5, training)\n"
                               "    return (y, {'training': training})\n";
    const tare_pattern_example examples[] = {EXAMPLE(INPUTS(TENSOR(2), {.constant = "True"})),
                                             EXAMPLE(INPUTS(TENSOR(2), {.constant = "False"}))};
    tare_subgraph_pattern *p = new_pattern(code, examples, 2);
    assert_int_equal(form_in(p, CALL("torch.ops.aten.dropout.default(x, 0.5, True)")), 0);
    assert_int_equal(form_in(p, CALL("torch.ops.aten.dropout.default(x, 0.5, False)")), 1);
    tare_subgraph_pattern_destroy(p);
}

#define SIZED                                                                                      \
    "def forward(self, x):\n    shape = x.shape\n    size = shape[0]\n    y = x.view(size, -1)\n"  \
    "    return (y, {'size': size})\n"
#define SYMBOLIC                                                                                   \
    "def forward(self, x):\n    size = torch.ops.aten.sym_size.int(x, 0)\n"                        \
    "    y = torch.ops.aten.view.default(x, [size, -1])\n    return y\n"
#define FIXED(size) CALL("torch.ops.aten.view.default(x, [" size ", -1])")

static void sizes_are_the_examples_unless_symbolic(void **state) {
    (void)state;
    const tare_pattern_example fixed[] = {EXAMPLE(INPUTS(TENSOR(2, 3, 4)))};
    const tare_pattern_example symbolic[] = {EXAMPLE(INPUTS(TENSOR(-1, 3, 4)))};
    tare_subgraph_pattern *p = new_pattern(SIZED, fixed, 1), *q = new_pattern(SIZED, symbolic, 1),
                          *r = new_pattern(SIZED, NULL, 0);
    assert_int_equal(form_in(p, FIXED("2")), 0);
    assert_int_equal(form_in(p, FIXED("3")), -1);
    assert_int_equal(form_in(p, SYMBOLIC), -1);
    assert_int_equal(form_in(q, FIXED("3")), 0);
    assert_int_equal(form_in(q, SYMBOLIC), 0);
    assert_int_equal(form_in(r, SYMBOLIC), 0);
    tare_subgraph_pattern_destroy(p);
    tare_subgraph_pattern_destroy(q);
    tare_subgraph_pattern_destroy(r);
}

static void literals_of_a_match_are_told(void **state) {
    (void)state;
    tare_model *model = new_exported(NULL, CALL("torch.ops.aten.view.default(x, [2, 6])"));
    tare_subgraph_pattern *p = new_pattern(SIZED, NULL, 0);
    tare_subgraph_matches *m = NULL;
    tare_argument a;
    CHECK_DONE(tare_subgraph_find(p, model, &m, job_error()));
    assert_int_equal(tare_subgraph_matches_count(m), 0); // 6 is not -1
    tare_subgraph_matches_destroy(m);
    tare_model_destroy(model);
    model = new_exported(NULL, FIXED("7"));
    CHECK_DONE(tare_subgraph_find(p, model, &m, job_error()));
    assert_true(tare_subgraph_match_argument(m, 0, "size", &a));
    assert_int_equal(a.kind, TARE_ARGUMENT_INT);
    assert_int_equal(a.integer, 7);
    assert_false(tare_subgraph_match_argument(m, 0, "nobody", &a));
    assert_null(tare_subgraph_match_node(m, 0, "size"));
    tare_subgraph_matches_destroy(m);
    tare_subgraph_pattern_destroy(p);
    tare_model_destroy(model);
}

// --- what cannot be captured ---

static void check_bad(const char *code, const tare_pattern_example *examples, size_t count,
                      const char *words) {
    const tare_pattern_options options = {
        .struct_size = sizeof options, .examples = examples, .example_count = count};
    tare_subgraph_pattern *p = NULL;
    CHECK_REFUSED(tare_subgraph_pattern_create(&code, 1, &options, &p, job_error()),
                  TARE_INVALID_ARGUMENT, words);
}

static void what_cannot_be_captured_is_named(void **state) {
    (void)state;
    const tare_pattern_example vector[] = {EXAMPLE(INPUTS(TENSOR(2)))};
    const tare_pattern_example two[] = {EXAMPLE(INPUTS(TENSOR(2), TENSOR(2)))};
    const tare_pattern_example odd[] = {EXAMPLE(INPUTS({.constant = "x"}))};
    const tare_pattern_example deep[] = {EXAMPLE(INPUTS(TENSOR(-9)))};
    check_bad(CALL("torch.nn.functional.interpolate(x, scale_factor = 2.0)"), NULL, 0,
              "depends on its input's rank");
    check_bad(CALL("torch.nn.functional.normalize(x, dim = 1)"), NULL, 0,
              "a pattern cannot call torch.nn.functional.normalize");
    check_bad(CALL("x.frobnicate()"), NULL, 0, "a pattern cannot call frobnicate");
    check_bad(CALL("torch.softmax(x)"), NULL, 0, "a pattern cannot give torch.softmax these");
    check_bad(CALL("torch.relu(x)"), two, 1, "the example has 2 inputs, the pattern 1 parameters");
    check_bad(CALL("torch.relu(x)"), odd, 1, "example 0");
    check_bad(CALL("torch.relu(x)"), deep, 1, "-1 to -4 for a symbolic one, found -9");
    check_bad(CALL("x.transpose(0, 1)"), vector, 1, "example 0");
    check_bad(CALL("x[[0, 1]]"), NULL, 0, "numbers, slices and None");
}

static void memory_may_run_out(void **state) {
    (void)state;
    const tare_pattern_example examples[] = {EXAMPLE(INPUTS(TENSOR(-1, 3, 4))),
                                             EXAMPLE(INPUTS(TENSOR(2, 3, 4)))};
    const tare_pattern_options options = {
        .struct_size = sizeof options, .examples = examples, .example_count = 2};
    const char *const codes[] = {SIZED, CALL("1 / x"), CALL("x[(None, slice(1, None, None))]")};
    tare_subgraph_pattern *p = NULL;
    tare_status status = TARE_OK;
    CHECK_DONE(tare_subgraph_pattern_create(codes, 3, &options, &p, job_error()));
    tare_subgraph_pattern_destroy(p);
    EVERY_ALLOCATION_FAILS(status,
                           status = tare_subgraph_pattern_create(codes, 3, &options, &p, NULL),
                           (tare_subgraph_pattern_destroy(p), p = NULL));
    EVERY_ALLOCATION_FAILS(status, status = tare_subgraph_pattern_ready("conv2d_bn_relu", &p, NULL),
                           (tare_subgraph_pattern_destroy(p), p = NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_becomes_what_torch_exports),
        cmocka_unit_test(every_example_gives_a_form),
        cmocka_unit_test(constants_of_examples_are_no_parameters),
        cmocka_unit_test(sizes_are_the_examples_unless_symbolic),
        cmocka_unit_test(literals_of_a_match_are_told),
        cmocka_unit_test(what_cannot_be_captured_is_named),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
