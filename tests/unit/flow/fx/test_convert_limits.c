// SPDX-License-Identifier: Apache-2.0
// What a backend may demand beyond torch: schemes, axes, zero points, powers of two, greatest
// scales.
#include <math.h>
#include <string.h>

#include "support/models.h"
#include "support/nodes.h"
#include "support/test.h"

#define NN "torch.nn."

static tare_model *one_linear(void) {
    module *root = new_tree();
    put_module(root, NULL, "fc", NN "Linear", "in_features=3, out_features=2");
    return new_model(NULL, root, "def forward(self, x):\n    fc = self.fc(x)\n    return fc\n");
}

static tare_dtype_config int8_dtypes(void) {
    tare_dtype_config d = tare_dtype_config_init();
    d.input.dtype = d.output.dtype = TARE_QUINT8;
    d.weight.dtype = TARE_QINT8;
    d.bias = TARE_FLOAT32;
    return d;
}

// A one-linear model through prepare and calibration under these dtypes and torch's default qconfig
// for fbgemm: per-channel symmetric weights, histograms with affine parameters.
typedef struct job {
    tare_model *model, *prepared, *converted;
    tare_backend_config *backend;
    tare_qconfig_mapping *mapping;
    tare_status status;
} job;

static job convert_under(const tare_dtype_config *d, bool is_lenient) {
    job j = {.model = one_linear(),
             .backend = tare_backend_config_create("limited"),
             .mapping = default_mapping("fbgemm")};
    tare_pattern_config *p = tare_backend_config_add(j.backend, NN "Linear", NULL, NULL);
    tare_pattern_config_add_dtype_config(p, d);
    tare_pattern_config_set_root_module(p, NN "Linear");
    tare_pattern_config_set_reference_quantized_module(p, "torch.ao.nn.quantized.reference.Linear");
    j.prepared = prepared(j.model, j.backend, j.mapping);
    if (strstr(printed(j.prepared), "activation_post_process") != NULL) {
        CALIBRATED(j.prepared, 4, 3);
        j.status = tare_convert_to_reference_fx(
            j.prepared, &(tare_convert_options){.backend = j.backend, .is_lenient = is_lenient},
            &j.converted, job_error());
    }
    return j;
}

static void drop(job *j) {
    tare_model_destroy(j->converted);
    tare_model_destroy(j->prepared);
    tare_model_destroy(j->model);
    tare_backend_config_destroy(j->backend);
    tare_qconfig_mapping_destroy(j->mapping);
}

static double number(const job *j, const char *path) {
    const tare_tensor *t = tare__module_find_tensor(j->converted->root, path);
    assert_non_null(t);
    return tare__tensor_get(t, 0);
}

static bool is_power_of_two(double scale) {
    int exponent = 0;
    return frexp(scale, &exponent) == 0.5;
}

static void scales_become_powers_of_two(void **state) {
    (void)state;
    tare_dtype_config d = int8_dtypes();
    job plain = convert_under(&d, false);
    d.input.set = d.weight.set = TARE_SET_POWER_OF_TWO;
    d.input.scale_power_of_two = d.weight.scale_power_of_two = true;
    job j = convert_under(&d, false);
    CHECK_DONE(j.status);
    const double was = number(&plain, "fc_input_scale_0"), is = number(&j, "fc_input_scale_0");
    assert_false(is_power_of_two(was));
    assert_true(is_power_of_two(is));
    assert_true(is >= was && is < 2 * was);
    assert_true(is_power_of_two(number(&j, "fc.weight_scale")));
    // The output was not asked for.
    assert_true(number(&j, "fc_scale_0") == number(&plain, "fc_scale_0"));
    // What was the least value is still the least, to half a step.
    const double least_was = -number(&plain, "fc_input_zero_point_0") * was;
    const double least_is = -number(&j, "fc_input_zero_point_0") * is;
    assert_true(fabs(least_was - least_is) <= is / 2);
    CHECK_HOLDS(decided(j.converted, "x"), "scale raised: 1 of 1 scales raised to powers of two");
    drop(&plain);
    drop(&j);
}

static void bounds_are_checked_when_the_values_are_known(void **state) {
    (void)state;
    tare_dtype_config d = int8_dtypes();
    d.output.set = TARE_SET_SCALE_MAX;
    d.output.scale_max_upper_bound = 1e-6;
    job j = convert_under(&d, false);
    assert_int_equal(j.status, TARE_INVALID_ARGUMENT);
    CHECK_HOLDS(tare_error_message(job_error()), "node 'fc': the scale ");
    CHECK_HOLDS(tare_error_message(job_error()), "is greater than the backend's greatest (1e-06)");
    CHECK_HOLDS(tare_error_hint(job_error()), "leave 'fc' float");
    assert_null(j.converted);
    drop(&j);
    j = convert_under(&d, true);
    CHECK_DONE(j.status);
    CHECK_HOLDS(explained(j.converted, "fc"), "is greater than the backend's greatest");
    drop(&j);

    d.output.set = 0;
    d.input.set = TARE_SET_ZERO_POINT_MAX;
    d.input.zero_point_upper_bound = 0;
    j = convert_under(&d, false);
    CHECK_REFUSED(j.status, TARE_INVALID_ARGUMENT, "is above the backend's greatest (0), for 'fc'");
    drop(&j);
    d.input.zero_point_upper_bound = 255;
    j = convert_under(&d, false);
    CHECK_DONE(j.status);
    drop(&j);
}

static void schemes_are_checked_where_they_are_chosen(void **state) {
    (void)state;
    tare_dtype_config d = int8_dtypes();
    d.input.set = TARE_SET_QSCHEMES;
    d.input.allowed_qschemes = TARE_QSCHEME_BIT(TARE_PER_TENSOR_SYMMETRIC);
    job j = convert_under(&d, false);
    CHECK_HOLDS(decided(j.prepared, "fc"),
                "left float: the backend wants the activation to be torch.per_tensor_symmetric, "
                "the qconfig's is torch.per_tensor_affine");
    drop(&j);

    d = int8_dtypes();
    d.weight.set = TARE_SET_QSCHEMES;
    d.weight.allowed_qschemes = TARE_QSCHEME_BIT(TARE_PER_TENSOR_SYMMETRIC);
    j = convert_under(&d, false);
    CHECK_REFUSED(j.status, TARE_INVALID_ARGUMENT,
                  "the backend does not allow the scheme torch.per_channel_symmetric");
    drop(&j);
    d.weight.set = TARE_SET_CHANNEL_AXIS;
    d.weight.channel_axis = 1;
    j = convert_under(&d, false);
    CHECK_REFUSED(j.status, TARE_INVALID_ARGUMENT,
                  "channels are along axis 0, the backend wants 1");
    drop(&j);
    d.weight.channel_axis = 0;
    j = convert_under(&d, false);
    CHECK_DONE(j.status);
    drop(&j);
}

static void the_fields_come_back_from_json(void **state) {
    (void)state;
    tare_dtype_config d = int8_dtypes();
    d.weight.set = TARE_SET_QSCHEMES | TARE_SET_CHANNEL_AXIS | TARE_SET_ZERO_POINT_MIN |
                   TARE_SET_ZERO_POINT_MAX | TARE_SET_POWER_OF_TWO;
    d.weight.allowed_qschemes =
        TARE_QSCHEME_BIT(TARE_PER_CHANNEL_SYMMETRIC) | TARE_QSCHEME_BIT(TARE_PER_TENSOR_SYMMETRIC);
    d.weight.zero_point_lower_bound = -1;
    d.weight.zero_point_upper_bound = 1;
    d.weight.scale_power_of_two = true;
    tare_backend_config *b = tare_backend_config_create("b"), *again = NULL;
    tare_pattern_config_add_dtype_config(tare_backend_config_add(b, NN "Linear", NULL, NULL), &d);
    char *json = NULL, *json_again = NULL;
    CHECK_DONE(tare_backend_config_to_json(b, &json, job_error()));
    CHECK_HOLDS(json, "\"allowed_qschemes\": [\n       \"torch.per_tensor_symmetric\",\n"
                      "       \"torch.per_channel_symmetric\"\n      ],\n"
                      "      \"channel_axis\": 0,\n      \"zero_point_lower_bound\": -1,\n"
                      "      \"zero_point_upper_bound\": 1,\n      \"scale_power_of_two\": true\n");
    CHECK_DONE(tare_backend_config_from_json(json, strlen(json), &again, job_error()));
    CHECK_DONE(tare_backend_config_to_json(again, &json_again, job_error()));
    assert_string_equal(json, json_again);
    tare_string_free(json);
    tare_string_free(json_again);
    tare_backend_config_destroy(b);
    tare_backend_config_destroy(again);
    static const char bad[] =
        "{\"configs\": [{\"pattern\": \"torch.nn.Linear\", \"dtype_configs\": [{\"weight_dtype\": "
        "{\"dtype\": \"torch.qint8\", \"allowed_qschemes\": [\"torch.per_tenser_affine\"]}}]}]}";
    assert_int_equal(tare_backend_config_from_json(bad, sizeof bad - 1, &b, job_error()),
                     TARE_MALFORMED_FILE);
    CHECK_HOLDS(tare_error_message(job_error()), "unknown qscheme 'torch.per_tenser_affine'");
    CHECK_HOLDS(tare_error_hint(job_error()), "torch.per_tensor_affine");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scales_become_powers_of_two),
        cmocka_unit_test(bounds_are_checked_when_the_values_are_known),
        cmocka_unit_test(schemes_are_checked_where_they_are_chosen),
        cmocka_unit_test(the_fields_come_back_from_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
