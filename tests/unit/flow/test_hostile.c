// SPDX-License-Identifier: Apache-2.0
// What the flow does with input that is wrong, or right but unusual.
#include "support/test.h"

#include <math.h>

#include "model/model.h"
#include "support/models.h"

static tare_model *linear_model(void) {
    module *root = new_tree();
    put_module(root, NULL, "fc", "torch.nn.Linear", "in_features=3, out_features=2");
    return new_model(NULL, root, "def forward(self, x):\n    fc = self.fc(x)\n    return fc\n");
}

// A mapping whose weights are watched per channel along `axis`.
static tare_qconfig_mapping *per_channel_mapping(int64_t axis) {
    tare_observer_spec *activation = tare_observer_spec_create("MinMaxObserver");
    tare_observer_spec *weight = tare_observer_spec_create("PerChannelMinMaxObserver");
    tare_observer_spec_set_dtype(weight, "dtype", TARE_QINT8);
    tare_observer_spec_set_qscheme(weight, "qscheme", TARE_PER_CHANNEL_SYMMETRIC);
    tare_observer_spec_set_int(weight, "ch_axis", axis);
    tare_qconfig *q = tare_qconfig_create(activation, weight);
    tare_qconfig_mapping *mapping = tare_qconfig_mapping_create();
    assert_non_null(q);
    tare_qconfig_mapping_set_global(mapping, q);
    tare_qconfig_release(q);
    tare_observer_spec_release(activation);
    tare_observer_spec_release(weight);
    return mapping;
}

static void inputs_that_calibrate_nothing_are_refused_unseen(void **state) {
    (void)state;
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *model = linear_model(), *p = prepared(model, NULL, mapping);
    const char *fresh = printed(p);
    tare_tensor *x = NEW_INPUT(2, 3);
    ((float *)tare_tensor_mutable_data(x))[5] = NAN;
    const tare_tensor *inputs[] = {x, x}, *none[] = {NULL};
    CHECK_REFUSED(tare_calibrate(p, inputs, 1, job_error()), TARE_INVALID_ARGUMENT,
                  "input 'x' is NaN at [1, 2]");
    CHECK_REFUSED(tare_calibrate(p, inputs, 2, job_error()), TARE_INVALID_ARGUMENT,
                  "takes 1 inputs, found 2");
    CHECK_REFUSED(tare_calibrate(p, none, 1, job_error()), TARE_INVALID_ARGUMENT, "'x' is NULL");
    CHECK_REFUSED(tare_calibrate(NULL, inputs, 1, job_error()), TARE_INVALID_ARGUMENT,
                  "expected a prepared model");
    CHECK_REFUSED(tare_calibrate(model, inputs, 1, job_error()), TARE_INVALID_ARGUMENT,
                  "expected a prepared model");
    assert_string_equal(fresh, printed(p));
    tare_tensor_release(x);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
}

// The weights are numbers, but what the layer gives overflows, and its output's observer says so.
static void results_without_end_give_no_parameters(void **state) {
    (void)state;
    tare_qconfig_mapping *mapping = per_channel_mapping(0);
    tare_model *model = linear_model(), *out = NULL;
    tare_tensor *x = NEW_INPUT(1, 3);
    float *weight = tare__module_find_tensor(model->root, "fc.weight")->data;
    for (int i = 0; i < 3; i++) {
        weight[i] = 3e38F;
        ((float *)tare_tensor_mutable_data(x))[i] = 2;
    }
    const tare_tensor *inputs[] = {x};
    tare_model *p = prepared(model, NULL, mapping);
    CHECK_DONE(tare_calibrate(p, inputs, 1, job_error()));
    CHECK_REFUSED(tare_convert_fx(p, NULL, &out, job_error()), TARE_INVALID_ARGUMENT,
                  "proposed the scale inf");
    assert_null(out);
    tare_tensor_release(x);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
}

static void no_backend_is_the_native_one(void **state) {
    (void)state;
    tare_backend_config *native = builtin_backend("native");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *model = linear_model();
    tare_model *named = prepared(model, native, mapping), *unnamed = prepared(model, NULL, mapping);
    CALIBRATED(named, 4, 3);
    CALIBRATED(unnamed, 4, 3);
    assert_string_equal(printed(named), printed(unnamed));
    tare_model *named_end = lowered(named, native), *unnamed_end = lowered(unnamed, NULL),
               *p = NULL;
    assert_string_equal(printed(named_end), printed(unnamed_end));
    CHECK_HOLDS(printed(unnamed_end), "QuantizedLinear");
    CHECK_DONE(tare_convert_fx(unnamed, NULL, &p, job_error())); // no options: the defaults
    assert_string_equal(printed(unnamed_end), printed(p));
    tare_model_destroy(p);
    tare_model_destroy(named_end);
    tare_model_destroy(unnamed_end);
    tare_model_destroy(named);
    tare_model_destroy(unnamed);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(native);
}

static tare_model *converted_along(const tare_model *model, int64_t axis) {
    tare_qconfig_mapping *mapping = per_channel_mapping(axis);
    tare_model *p = prepared(model, NULL, mapping);
    CALIBRATED(p, 4, 3);
    tare_model *out = referenced(p, NULL);
    tare_model_destroy(p);
    tare_qconfig_mapping_destroy(mapping);
    return out;
}

static void a_negative_channel_axis_counts_from_the_last(void **state) {
    (void)state;
    tare_model *model = linear_model();
    tare_model *front = converted_along(model, 0), *back = converted_along(model, -2);
    static const char *const names[] = {"fc.weight_scale", "fc.weight_zero_point",
                                        "fc.weight_axis"};
    for (size_t i = 0; i < 3; i++)
        check_same_tensor(tare__module_find_tensor(front->root, names[i]),
                          tare__module_find_tensor(back->root, names[i]));
    assert_int_equal(tare__tensor_get(tare__module_find_tensor(back->root, "fc.weight_axis"), 0),
                     0);
    tare_model_destroy(front);
    tare_model_destroy(back);
    tare_model_destroy(model);
}

static void engines_are_known_numbers(void **state) {
    (void)state;
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *model = linear_model(), *p = prepared(model, NULL, mapping), *out = NULL;
    CALIBRATED(p, 4, 3);
    const tare_convert_options options = {.engine = (tare_engine)77};
    CHECK_REFUSED(tare_convert_fx(p, &options, &out, job_error()), TARE_INVALID_ARGUMENT,
                  "77 is no engine");
    assert_string_equal(tare_engine_name((tare_engine)77), "");
    assert_string_equal(tare_engine_name((tare_engine)-1), "");
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
}

// Each number is twice the one before, so that walking both operands would take 2^64 steps.
static void sums_of_sizes_are_looked_at_once(void **state) {
    (void)state;
    char code[4096] = "def forward(self, x):\n    a0 = x.size(0)\n";
    size_t length = strlen(code);
    for (int i = 1; i <= 64; i++)
        length += (size_t)snprintf(code + length, sizeof code - length, "    a%d = a%d + a%d\n", i,
                                   i - 1, i - 1);
    snprintf(code + length, sizeof code - length, "    fc = self.fc(x)\n    return (fc, a64)\n");
    module *root = new_tree();
    put_module(root, NULL, "fc", "torch.nn.Linear", "in_features=3, out_features=2");
    tare_model *model = new_model(NULL, root, code);
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *p = prepared(model, NULL, mapping);
    CHECK_HOLDS(printed(p), "activation_post_process_1");
    CHECK_LACKS(printed(p), "activation_post_process_2"); // sums of numbers are not observed
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
}

// A method's name may be any text in a file.
static void strange_method_names_are_only_unknown(void **state) {
    (void)state;
    tare_model *model = linear_model();
    graph *g = model->root->graph;
    node *fc = tare__graph_find(g, "fc"), *made = NULL;
    const value args[] = {tare__node_value(fc), tare__node_value(g->first)};
    const node_spec spec = {
        .op = NODE_CALL_METHOD, .target = "|masked_fill", .args = args, .arg_count = 2};
    CHECK_DONE(tare__graph_insert(g, &spec, tare__graph_output(g), &made, job_error()));
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *p = prepared(model, NULL, mapping);
    CHECK_HOLDS(decided(p, made->name), "no pattern for it");
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
}

static void arrays_need_names_of_their_own(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(1);
    const tare_tensor *tensors[] = {x, x}, *missing[] = {x, NULL};
    const char *const same[] = {"a", "a"}, *const names[] = {"a", "b"};
    CHECK_REFUSED(tare_arrays_write("never.npz", same, tensors, 2, job_error()),
                  TARE_INVALID_ARGUMENT, "two arrays are called 'a'");
    CHECK_REFUSED(tare_arrays_write("never.npz", names, missing, 2, job_error()),
                  TARE_INVALID_ARGUMENT, "array 1 has no tensor");
    tare_tensor_release(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs_that_calibrate_nothing_are_refused_unseen),
        cmocka_unit_test(results_without_end_give_no_parameters),
        cmocka_unit_test(no_backend_is_the_native_one),
        cmocka_unit_test(a_negative_channel_axis_counts_from_the_last),
        cmocka_unit_test(engines_are_known_numbers),
        cmocka_unit_test(sums_of_sizes_are_looked_at_once),
        cmocka_unit_test(strange_method_names_are_only_unknown),
        cmocka_unit_test(arrays_need_names_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
