// SPDX-License-Identifier: Apache-2.0
#include "support/models.h"
#include "support/test.h"

static tare_qspec *spec_of(tare_dtype dtype, tare_qscheme scheme) {
    tare_observer_spec *observer = tare_observer_spec_create("MinMaxObserver");
    const tare_qspec_fields f = {
        .struct_size = sizeof f, .dtype = dtype, .observer = observer, .qscheme = scheme};
    tare_qspec *spec = NULL;
    CHECK_DONE(tare_qspec_create(&f, &spec, job_error()));
    tare_observer_spec_release(observer);
    return spec;
}

static void settings_are_read_with_torchaos_checks(void **state) {
    (void)state;
    tare_qspec *affine = spec_of(TARE_INT8, TARE_PER_TENSOR_AFFINE);
    tare_qspec *channel = spec_of(TARE_INT8, TARE_PER_CHANNEL_SYMMETRIC);
    tare_qspec *found = affine;
    tare_quantization_config config = {.struct_size = sizeof config,
                                       .input_activation = affine,
                                       .output_activation = channel,
                                       .weight = channel,
                                       .bias = affine};
    CHECK_DONE(tare_input_act_qspec(NULL, &found, job_error()));
    assert_null(found);
    CHECK_DONE(tare_input_act_qspec(&config, &found, job_error()));
    assert_ptr_equal(found, affine);
    CHECK_REFUSED(tare_output_act_qspec(&config, &found, job_error()), TARE_INVALID_ARGUMENT,
                  "output activation must be per_tensor_affine");
    CHECK_DONE(tare_weight_qspec(&config, &found, job_error()));
    assert_ptr_equal(found, channel);
    CHECK_REFUSED(tare_bias_qspec(&config, &found, job_error()), TARE_INVALID_ARGUMENT,
                  "Only float dtype for bias is supported for bias right now");
    config.weight = affine;
    CHECK_REFUSED(tare_weight_qspec(&config, &found, job_error()), TARE_INVALID_ARGUMENT,
                  "Unsupported quantization_spec");
    tare_qspec_release(affine);
    tare_qspec_release(channel);
}

static tare_status say(void *self, tare_model *model, tare_error *err) {
    (void)model;
    (void)err;
    *(int *)self += 1;
    return TARE_OK;
}

static tare_status refuse(void *self, const tare_model *model, tare_error *err) {
    (void)model;
    *(int *)self += 10;
    return tare__fail(err, TARE_INVALID_ARGUMENT, "no");
}

static void gone(void *self) {
    *(int *)self += 100;
}

static void a_quantizer_annotates_and_validates(void **state) {
    (void)state;
    int calls = 0;
    const tare_quantizer_class class = {.struct_size = sizeof class,
                                        .name = "Mine",
                                        .annotate = say,
                                        .validate = refuse,
                                        .destroy = gone};
    tare_quantizer *q = NULL;
    tare_model *m = new_model(NULL, new_tree(), "def forward(self, x):\n    return x\n");
    CHECK_DONE(tare_quantizer_create(&class, &calls, &q, job_error()));
    CHECK_DONE(tare_quantizer_transform(q, m, job_error()));
    CHECK_REFUSED(tare_quantizer_annotate(q, m, job_error()), TARE_INVALID_ARGUMENT, "Mine");
    tare_quantizer_destroy(q);
    assert_int_equal(calls, 111);
    tare_model_destroy(m);
    const tare_quantizer_class empty = {.struct_size = sizeof empty, .name = "Empty"};
    CHECK_REFUSED(tare_quantizer_create(&empty, NULL, &q, job_error()), TARE_INVALID_ARGUMENT,
                  "annotate");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_are_read_with_torchaos_checks),
        cmocka_unit_test(a_quantizer_annotates_and_validates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
