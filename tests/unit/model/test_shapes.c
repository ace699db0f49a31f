// SPDX-License-Identifier: Apache-2.0
// Shapes before a run are those of a run.
#include <string.h>

#include "model/model.h"
#include "model/shapes.h"
#include "support/faults.h"
#include "support/models.h"
#include "support/test.h"
#include "tare/shapes.h"

static tare_shapes *inferred(const tare_model *m, const tare_input_shape *given, size_t count) {
    tare_shapes *s = NULL;
    CHECK_DONE(tare_shapes_infer(m, given, count, &s, job_error()));
    return s;
}

static void check_shape(const tare_tensor_info *found, const char *name, int ndim,
                        const int64_t *shape) {
    assert_string_equal(found->name, name);
    assert_int_equal(found->struct_size, sizeof *found);
    assert_int_equal(found->ndim, ndim);
    for (int d = 0; d < ndim; d++) assert_int_equal(found->shape[d], shape[d]);
}
#define CHECK_SHAPE(found, name, ...)                                                              \
    check_shape(&(found), (name), (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
                (const int64_t[]){__VA_ARGS__})

static void a_calibrated_model_knows_what_it_takes_and_gives(void **state) {
    (void)state;
    tare_model *m = digits_in_integers();
    tare_shapes *s = inferred(m, NULL, 0);
    tare_tensor_info info;
    assert_null(tare_shapes_unknown(s));
    assert_int_equal(tare_shapes_input_count(s), 1);
    assert_true(tare_shapes_input(s, 0, &info));
    CHECK_SHAPE(info, "x", -1, 1, 8, 8);
    assert_int_equal(info.dtype, TARE_FLOAT32);
    assert_true(info.is_example && !info.is_optional);
    assert_false(tare_shapes_input(s, 1, &info));
    assert_int_equal(tare_shapes_output_count(s), 1);
    assert_true(tare_shapes_output(s, 0, &info));
    CHECK_SHAPE(info, "output", -1, 10);
    assert_int_equal(info.dtype, TARE_FLOAT32);
    assert_false(tare_shapes_output(s, 1, &info));
    const tare_node *conv = tare_model_find_node(m, "conv1");
    assert_true(tare_shapes_node(s, conv, 0, &info));
    CHECK_SHAPE(info, "conv1", -1, 48, 8, 8);
    assert_int_equal(info.dtype, TARE_QUINT8);
    assert_int_equal(info.qscheme, TARE_PER_TENSOR_AFFINE);
    assert_true(info.scale > 0);
    assert_false(tare_shapes_node(s, conv, 1, &info));
    tare_shapes_destroy(s);
    tare_model_destroy(m);
}

static tare_model *two_heads(void) {
    module *root = new_tree();
    put_module(root, NULL, "fc", "torch.nn.Linear", "in_features=3, out_features=2");
    return new_model(NULL, root,
                     "def forward(self, x):\n    fc = self.fc(x)\n"
                     "    split = torch.split(fc, 1, 1)\n    getitem = split[0]\n"
                     "    return {'logits': fc, 'rest': (getitem, x)}\n");
}

static void given_shapes_lead_to_the_outputs(void **state) {
    (void)state;
    tare_model *m = two_heads();
    const int64_t open[] = {-1, 3}, fixed[] = {5, 3};
    tare_shapes *s = inferred(m, NULL, 0);
    tare_tensor_info info;
    CHECK_HOLDS(tare_shapes_unknown(s), "input 'x'");
    assert_int_equal(tare_shapes_output_count(s), 3);
    assert_true(tare_shapes_output(s, 2, &info));
    assert_string_equal(info.name, "rest.1");
    assert_int_equal(info.ndim, -1);
    tare_shapes_destroy(s);

    s = inferred(m, &(tare_input_shape){"x", 2, open}, 1);
    assert_null(tare_shapes_unknown(s));
    assert_true(tare_shapes_output(s, 0, &info));
    CHECK_SHAPE(info, "logits", -1, 2);
    assert_true(tare_shapes_output(s, 1, &info));
    CHECK_SHAPE(info, "rest.0", -1, 1);
    assert_true(tare_shapes_node(s, tare_model_find_node(m, "split"), 1, &info));
    CHECK_SHAPE(info, "split", -1, 1);
    tare_shapes_destroy(s);

    s = inferred(m, &(tare_input_shape){"x", 2, fixed}, 1);
    assert_true(tare_shapes_output(s, 0, &info));
    CHECK_SHAPE(info, "logits", 5, 2);
    tare_shapes_destroy(s);
    tare_model_destroy(m);
}

static void shapes_that_do_not_fit_are_said(void **state) {
    (void)state;
    tare_model *m = two_heads();
    const int64_t wrong[] = {-1, 4}, negative[] = {-2, 3};
    tare_shapes *s = NULL;
    tare_tensor_info info;
    CHECK_REFUSED(tare_shapes_infer(m, &(tare_input_shape){"y", 2, wrong}, 1, &s, job_error()),
                  TARE_NOT_FOUND, "'y'");
    CHECK_REFUSED(tare_shapes_infer(m, &(tare_input_shape){"x", 2, negative}, 1, &s, job_error()),
                  TARE_INVALID_ARGUMENT, "found -2");
    CHECK_REFUSED(tare_shapes_infer(m, &(tare_input_shape){"x", 9, wrong}, 1, &s, job_error()),
                  TARE_INVALID_ARGUMENT, "found 9");
    s = inferred(m, &(tare_input_shape){"x", 2, wrong}, 1); // which no run takes
    CHECK_HOLDS(tare_shapes_unknown(s), "fc");
    assert_true(tare_shapes_output(s, 0, &info));
    assert_int_equal(info.ndim, -1);
    assert_true(tare_shapes_node(s, tare_model_find_node(m, "x"), 0, &info)); // before the failure
    assert_false(tare_shapes_node(s, tare_model_find_node(m, "fc"), 0, &info));
    tare_shapes_destroy(s);
    tare_model_destroy(m);
}

static void a_graph_for_one_batch_is_known_for_that_one(void **state) {
    (void)state;
    module *root = new_tree();
    tare_model *m = new_model(NULL, root,
                              "def forward(self, x):\n    reshape = torch.reshape(x, (1, 6))\n"
                              "    return reshape\n");
    const int64_t open[] = {-1, 6};
    tare_shapes *s = inferred(m, &(tare_input_shape){"x", 2, open}, 1);
    tare_tensor_info info;
    CHECK_HOLDS(tare_shapes_unknown(s), "reshape");
    assert_true(tare_shapes_output(s, 0, &info));
    CHECK_SHAPE(info, "output", 1, 6);
    tare_shapes_destroy(s);
    tare_model_destroy(m);
}

static void outputs_of_onnx_files_keep_their_names(void **state) {
    (void)state;
#ifndef TARE_HAVE_ONNX
    skip();
#endif
    tare_model *m = NULL, *fused = NULL;
    tare_tensor_info info;
    CHECK_DONE(tare_model_read("data/digits/digits.onnx", NULL, &m, job_error()));
    CHECK_DONE(tare_fuse_fx(m, NULL, &fused, job_error()));
    tare_shapes *s = inferred(fused, NULL, 0);
    assert_true(tare_shapes_input(s, 0, &info));
    CHECK_SHAPE(info, "x", -1, 1, 8, 8);
    assert_false(info.is_example);
    assert_true(tare_shapes_output(s, 0, &info));
    CHECK_SHAPE(info, "43", -1, 10);
    tare_shapes_destroy(s);
    tare_model_destroy(fused);
    tare_model_destroy(m);
}

// A graph whose input is said to have two rows of three integers.
static tare_model *of_integers(const char *code) {
    module *root = new_tree();
    tare_model *m = new_model(NULL, root, code);
    graph *g = ((struct tare_model *)m)->root->graph;
    g->first->meta_json = tare__arena_strdup(
        &g->memory, "{\"val\": {\"dtype\": \"torch.int64\", \"shape\": [null, 3]}}");
    assert_non_null(g->first->meta_json);
    return m;
}

static void converted_graphs_keep_the_dtypes_of_integers(void **state) {
    (void)state;
    tare_model *m = of_integers("def forward(self, x):\n    add = x + 1\n"
                                "    return (add, x)\n");
    // Integers that are quantized.
    tare_model *made =
        of_integers("def forward(self, x):\n"
                    "    quantize_per_tensor = torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)\n"
                    "    dequantize = quantize_per_tensor.dequantize()\n    add = dequantize + 1\n"
                    "    return (add, x)\n");
    assert_int_not_equal(tare__verify_dtypes(made, m, job_error()), TARE_OK);
    CHECK_HOLDS(tare_error_message(job_error()), "node 'quantize_per_tensor'");
    CHECK_HOLDS(tare_error_message(job_error()), "int64");
    tare_error_clear(job_error());
    CHECK_DONE(tare__verify_dtypes(m, m, job_error()));
    // What does not run before it was converted is not looked at.
    CHECK_DONE(tare__verify_dtypes(m, made, job_error()));
    tare_model_destroy(made);
    // An output that became float.
    made = of_integers("def forward(self, x):\n    add = x + 1\n    float_1 = x.float()\n"
                       "    return (add, float_1)\n");
    assert_int_not_equal(tare__verify_dtypes(made, m, job_error()), TARE_OK);
    CHECK_HOLDS(tare_error_message(job_error()), "an output must stay torch.int64, found torch.float32");
    tare_error_clear(job_error());
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(status, status = tare__verify_dtypes(m, m, NULL), (void)0);
    tare_model_destroy(made);
    tare_model_destroy(m);
}

static void memory_may_end_at_any_place(void **state) {
    (void)state;
    tare_model *m = two_heads();
    const int64_t open[] = {-1, 3};
    const tare_input_shape given = {"x", 2, open};
    tare_shapes *s = NULL;
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(status, status = tare_shapes_infer(m, &given, 1, &s, NULL),
                           (tare_shapes_destroy(s), s = NULL));
    tare_model_destroy(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_calibrated_model_knows_what_it_takes_and_gives),
        cmocka_unit_test(given_shapes_lead_to_the_outputs),
        cmocka_unit_test(shapes_that_do_not_fit_are_said),
        cmocka_unit_test(outputs_of_onnx_files_keep_their_names),
        cmocka_unit_test(converted_graphs_keep_the_dtypes_of_integers),
        cmocka_unit_test(memory_may_end_at_any_place),
        cmocka_unit_test(a_graph_for_one_batch_is_known_for_that_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
