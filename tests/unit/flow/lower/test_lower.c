// SPDX-License-Identifier: Apache-2.0
// Models that come quantized are lowered as they are, whoever quantized them.
#include "support/models.h"
#include "support/temp.h"
#include "support/test.h"

// As a file of somebody's: nothing but nodes says that it is quantized.
static tare_model *from_file(module *root, const char *code) {
    tare_model *m = new_model(NULL, root, code), *again = NULL;
    CHECK_DONE(tare_model_write(m, temp_path("m.safetensors"), job_error()));
    CHECK_DONE(tare_model_read(temp_path("m.safetensors"), NULL, &again, job_error()));
    tare_model_destroy(m);
    return again;
}

static tare_model *lowered_as_it_is(const tare_model *reference) {
    tare_model *lowered = NULL;
    CHECK_DONE(tare_lower(reference, NULL, &lowered, job_error()));
    assert_int_equal(tare_model_get_stage(lowered), TARE_STAGE_LOWERED);
    return lowered;
}

static void check_same_result(const tare_model *a, const tare_model *b, const tare_tensor *input) {
    tare_tensor *wanted = result_of(a, &input, 1), *found = result_of(b, &input, 1);
    check_same_tensor(wanted, found);
    tare_tensor_release(wanted);
    tare_tensor_release(found);
}

// d and e have other dtypes, and the relu is a module.
static const char sum[] = "def forward(self, x):\n"
                          "    q = torch.quantize_per_tensor(x, 0.05, 3, torch.qint8)\n"
                          "    d = q.dequantize()\n"
                          "    s = torch.quantize_per_tensor(x, 0.02, 7, torch.quint8)\n"
                          "    e = s.dequantize()\n"
                          "    y = d + e\n"
                          "    relu = self.relu(y)\n"
                          "    r = torch.quantize_per_tensor(relu, 0.06, 0, torch.quint8)\n"
                          "    z = r.dequantize()\n"
                          "    return z";

static module *tree_with_relu(void) {
    module *root = new_tree();
    put_module(root, NULL, "relu", "torch.nn.ReLU", "");
    return root;
}

static void quantize_nodes_of_a_file_become_integers(void **state) {
    (void)state;
    tare_model *m = from_file(tree_with_relu(), sum);
    assert_int_equal(tare_model_get_stage(m), TARE_STAGE_REFERENCE);
    tare_model *q = lowered_as_it_is(m);
    CHECK_HOLDS(printed(q), "torch.quantize_per_tensor(x, 0.05, 131, torch.quint8)");
    CHECK_HOLDS(printed(q), "torch.ops.quantized.add_relu(");
    tare_coverage c = {.struct_size = sizeof c};
    CHECK_DONE(tare_model_coverage(q, &c, job_error()));
    assert_int_equal(c.op_count, 2); // conversions are no operators of the network
    assert_int_equal(c.quantized_op_count, 2);
    tare_tensor *x = NEW_INPUT(3, 50);
    check_same_result(m, q, x);
    tare_tensor_release(x);
    tare_model_destroy(q);
    tare_model_destroy(m);
}

static void what_holds_quantize_nodes_is_not_prepared(void **state) {
    (void)state;
    tare_model *m = from_file(tree_with_relu(), sum), *out = NULL;
    tare_qconfig_mapping *mapping = default_mapping("x86");
    const tare_prepare_options options = {.qconfig_mapping = mapping};
    assert_int_equal(tare_prepare_fx(m, &options, &out, NULL), TARE_INVALID_ARGUMENT);
    assert_int_equal(tare_fuse_fx(m, NULL, &out, NULL), TARE_INVALID_ARGUMENT);
    tare_qconfig_mapping_destroy(mapping);
    tare_model_destroy(m);
}

static void reference_models_of_the_flow_become_what_the_flow_makes(void **state) {
    (void)state;
    tare_model *m = read_example("conv_relu"), *again = NULL;
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *p = prepared(m, backend, mapping);
    CALIBRATED(p, 1, 3, 8, 10);
    tare_model *wanted = lowered(p, backend), *reference = referenced(p, backend);
    CHECK_DONE(tare_model_write(reference, temp_path("r.safetensors"), job_error()));
    CHECK_DONE(tare_model_read(temp_path("r.safetensors"), NULL, &again, job_error()));
    tare_model *found = lowered_as_it_is(again);
    CHECK_HOLDS(printed(wanted), printed(found));
    tare_tensor *x = NEW_INPUT(1, 3, 8, 10);
    check_same_result(wanted, found, x);
    tare_tensor_release(x);
    tare_model *const models[] = {m, p, wanted, reference, again, found};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) tare_model_destroy(models[i]);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

#define ATEN "torch.ops.aten."

static void arithmetic_on_integers_is_known_and_refused(void **state) {
    (void)state;
    tare_model *m = from_file(new_tree(), "def forward(self, x):\n"
                                          "    d = " ATEN "div.Tensor(x, 0.05)\n"
                                          "    r = " ATEN "round.default(d)\n"
                                          "    i = " ATEN "to.dtype(r, torch.int32)\n"
                                          "    a = " ATEN "add.Tensor(i, 3)\n"
                                          "    c = " ATEN "clamp.default(a, -128, 127)\n"
                                          "    q = " ATEN "to.dtype(c, torch.int8)\n"
                                          "    return q");
    tare_model *out = NULL;
    assert_int_equal(tare_model_get_stage(m), TARE_STAGE_REFERENCE);
    CHECK_REFUSED(tare_lower(m, NULL, &out, job_error()), TARE_UNSUPPORTED,
                  "node 'q': the program is in reference representation");
    tare_model_destroy(m);
}

static void models_of_other_stages_are_refused(void **state) {
    (void)state;
    tare_model *m = read_example("conv_relu"), *out = NULL;
    CHECK_REFUSED(tare_lower(m, NULL, &out, job_error()), TARE_INVALID_ARGUMENT,
                  "expected a model that holds quantize and dequantize");
    assert_int_equal(tare_lower(NULL, NULL, &out, NULL), TARE_INVALID_ARGUMENT);
    tare_model_destroy(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantize_nodes_of_a_file_become_integers),
        cmocka_unit_test(what_holds_quantize_nodes_is_not_prepared),
        cmocka_unit_test(reference_models_of_the_flow_become_what_the_flow_makes),
        cmocka_unit_test(arithmetic_on_integers_is_known_and_refused),
        cmocka_unit_test(models_of_other_stages_are_refused),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
