// SPDX-License-Identifier: Apache-2.0
// Linear layers whose weights have scales per group: from a mapping's name to the layer that runs.
#include <math.h>

#include "ops/quantized/grouped.h"
#include "support/exported.h"
#include "support/models.h"
#include "support/temp.h"
#include "support/test.h"

static tare_model *network(void) {
    module *root = new_tree();
    put_module(root, NULL, "a", "torch.nn.Linear", "in_features=64, out_features=12");
    put_module(root, NULL, "b", "torch.nn.Linear", "in_features=12, out_features=5");
    put_module(root, NULL, "c", "torch.nn.Linear", "in_features=64, out_features=7, bias=False");
    return new_model(NULL, root,
                     "def forward(self, x):\n    a = self.a(x)\n"
                     "    relu = torch.nn.functional.relu(a)\n    b = self.b(relu)\n"
                     "    c = self.c(x)\n    cat = torch.cat([b, c], 1)\n    return cat");
}

static tare_model *converted(const tare_model *model, const char *mapping, bool lowers) {
    tare_backend_config *backend = builtin_backend("tare");
    tare_qconfig_mapping *m = default_mapping(mapping);
    tare_model *made = prepared(model, backend, m);
    tare_model *out = lowers ? lowered(made, backend) : referenced(made, backend);
    tare_model_destroy(made);
    tare_qconfig_mapping_destroy(m);
    tare_backend_config_destroy(backend);
    return out;
}

static void check_near(const tare_tensor *a, const tare_tensor *b) {
    assert_true(tare__same_shape(a, b));
    for (int64_t i = 0; i < a->count; i++)
        assert_true(fabsf(tare__f32(a)[i] - tare__f32(b)[i]) <=
                    2e-6F * (1 + fabsf(tare__f32(b)[i])));
}

static void layers_compute_what_their_reference_says(void **state) {
    (void)state;
    static const char *const mappings[] = {
        "int8_weight_only", "int4_weight_only_g32", "int4_weight_only_g64",
        "int8_dynamic_activation_int8_weight", "int8_dynamic_activation_int4_weight_g32"};
    tare_model *model = network();
    tare_tensor *x = NEW_INPUT(3, 64);
    const tare_tensor *const inputs[] = {x};
    for (size_t i = 0; i < sizeof mappings / sizeof *mappings; i++) {
        tare_model *reference = converted(model, mappings[i], false);
        tare_model *integers = converted(model, mappings[i], true);
        tare_tensor *expected = result_of(reference, inputs, 1),
                    *y = result_of(integers, inputs, 1);
        CHECK_HOLDS(printed(integers), "(c): GroupedLinear(in_features=64, out_features=7");
        check_near(y, expected);
        tare_tensor_release(expected);
        tare_tensor_release(y);
        tare_model_destroy(reference);
        tare_model_destroy(integers);
    }
    tare_tensor_release(x);
    tare_model_destroy(model);
}

static void the_record_says_what_became_of_each_layer(void **state) {
    (void)state;
    tare_model *model = network(), *made = converted(model, "int4_weight_only_g32", true);
    tare_coverage c = {.struct_size = sizeof c};
    CHECK_HOLDS(printed(made),
                "(a): GroupedLinearReLU(in_features=64, out_features=12, bits=4, group_size=32, "
                "weight_zero_point=True, bias=True)");
    CHECK_HOLDS(decided(made, "a"), "4-bit weights in groups of 32, its input stays float");
    // Rows of 12 have no groups of 32.
    CHECK_HOLDS(printed(made), "(b): Linear(in_features=12, out_features=5, bias=True)");
    CHECK_HOLDS(explained(made, "b"), "its rows of 12 weights do not divide into groups of 32");
    CHECK_DONE(tare_model_coverage(made, &c, job_error()));
    assert_int_equal(c.quantized_op_count, 0); // products of floats
    assert_true(c.quantized_weight_bytes > c.weight_bytes / 2);
    tare_model_destroy(made);
    made = converted(model, "int8_dynamic_activation_int4_weight_g32", true);
    CHECK_HOLDS(printed(made), "weight_zero_point=False, activation_dtype=torch.int8");
    CHECK_DONE(tare_model_coverage(made, &c, job_error()));
    assert_int_equal(c.quantized_op_count, 3); // a with its relu, c
    tare_model_destroy(made);
    tare_model_destroy(model);
}

// Codes lie two in a byte, the first in the low half; signed ones are moved by 8.
static void values_are_packed(void **state) {
    (void)state;
    tare_model *model = network(),
               *made = converted(model, "int8_dynamic_activation_int4_weight_g32", true);
    grouped_weights w;
    const module *layer = tare__module_child(made->root, "c"),
                 *real = tare__module_child(model->root, "c");
    const tare_tensor *weight = tare__module_tensor(real, "weight");
    CHECK_DONE(tare__grouped_read(layer, &w, job_error()));
    assert_int_equal(w.quantized->shape[1], 32);
    assert_int_equal(w.groups, 2);
    for (int64_t o = 0; o < w.outs; o++)
        for (int64_t k = 0; k < w.ins; k++) {
            const float scale = tare__f32(w.scale)[o * w.groups + k / 32];
            const float code = rintf(tare__f32(weight)[o * w.ins + k] * (1.0F / scale)) + 8;
            assert_int_equal(tare__grouped_value(&w, o, k), (int)fmaxf(0, fminf(15, code)));
        }
    tare_model_destroy(made);
    tare_model_destroy(model);
}

static void models_with_groups_survive_files(void **state) {
    (void)state;
    tare_model *model = network(), *read = NULL;
    tare_tensor *x = NEW_INPUT(2, 64);
    const tare_tensor *const inputs[] = {x};
    for (int lowers = 0; lowers < 2; lowers++) {
        tare_model *made = converted(model, "int4_weight_only_g32", lowers != 0);
        const char *path = temp_path("groups.safetensors");
        CHECK_DONE(tare_model_write(made, path, job_error()));
        CHECK_DONE(tare_model_read(path, NULL, &read, job_error()));
        tare_tensor *expected = result_of(made, inputs, 1), *y = result_of(read, inputs, 1);
        check_same_tensor(y, expected);
        tare_tensor_release(expected);
        tare_tensor_release(y);
        tare_model_destroy(read);
        tare_model_destroy(made);
    }
    tare_tensor_release(x);
    tare_model_destroy(model);
}

static void check_broken(const char *name, tare_tensor *t, const char *config, int64_t number,
                         const char *words) {
    tare_model *model = network(), *made = converted(model, "int4_weight_only_g32", true);
    module *layer = tare__module_child(made->root, "a");
    const value v = tare__int(number);
    CHECK_DONE(tare__grouped_linear_check(layer, job_error()));
    if (name != NULL) CHECK_DONE(tare__module_set_tensor(layer, name, t, false, job_error()));
    if (config != NULL) CHECK_DONE(tare__module_set_config(layer, config, &v, job_error()));
    CHECK_REFUSED(tare__grouped_linear_check(layer, job_error()), TARE_INVALID_ARGUMENT, words);
    tare_tensor_release(t);
    tare_model_destroy(made);
    tare_model_destroy(model);
}

static tare_tensor *filled(tare_dtype dtype, int64_t rows, int64_t columns, double number) {
    const int64_t shape[] = {rows, columns};
    tare_tensor *t = NULL;
    CHECK_DONE(tare_tensor_create(dtype, 2, shape, &t, job_error()));
    for (int64_t i = 0; i < t->count; i++) tare__tensor_set(t, i, number);
    return t;
}

static void broken_layers_are_refused(void **state) {
    (void)state;
    check_broken(NULL, NULL, "bits", 3, "expected 4 or 8 as 'bits'");
    check_broken(NULL, NULL, "group_size", 0, "'group_size'");
    check_broken(NULL, NULL, "group_size", 24, "'group_size'");
    check_broken(NULL, NULL, "group_size", 16, "'weight_scale'");
    check_broken("weight", filled(TARE_INT8, 12, 32, 1), NULL, 0, "'weight'");
    check_broken("weight_scale", filled(TARE_FLOAT32, 12, 3, 1), NULL, 0, "'weight_scale'");
    check_broken("weight_scale", filled(TARE_FLOAT32, 12, 2, INFINITY), NULL, 0, "is inf");
    check_broken("weight_zero_point", filled(TARE_UINT8, 12, 2, 16), NULL, 0, "values end at 15");
    check_broken("weight_zero_point", filled(TARE_INT8, 12, 2, 1), NULL, 0, "'weight_zero_point'");
    check_broken("bias", filled(TARE_FLOAT32, 12, 1, 1), NULL, 0, "'bias'");
}

static tare_status whole_flow(const tare_model *model, const char *mapping) {
    tare_backend_config *backend = NULL;
    tare_qconfig_mapping *m = NULL;
    tare_model *made = NULL, *out = NULL;
    tare_status status = tare_backend_config_builtin("tare", &backend, NULL);
    if (status == TARE_OK) status = tare_qconfig_mapping_default(mapping, false, -1, &m, NULL);
    const tare_prepare_options options = {.backend = backend, .qconfig_mapping = m};
    const tare_convert_options how = {.backend = backend};
    if (status == TARE_OK) status = tare_prepare_fx(model, &options, &made, NULL);
    if (status == TARE_OK) status = tare_convert_fx(made, &how, &out, NULL);
    tare_model_destroy(out);
    tare_model_destroy(made);
    tare_qconfig_mapping_destroy(m);
    tare_backend_config_destroy(backend);
    return status;
}

static void a_failed_allocation_is_an_error_and_no_leak(void **state) {
    (void)state;
    tare_model *model = network();
    tare_status status = TARE_OK;
    SOME_ALLOCATIONS_FAIL(
        37, status, status = whole_flow(model, "int8_dynamic_activation_int4_weight_g32"), (void)0);
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_compute_what_their_reference_says),
        cmocka_unit_test(the_record_says_what_became_of_each_layer),
        cmocka_unit_test(values_are_packed),
        cmocka_unit_test(models_with_groups_survive_files),
        cmocka_unit_test(broken_layers_are_refused),
        cmocka_unit_test(a_failed_allocation_is_an_error_and_no_leak),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
