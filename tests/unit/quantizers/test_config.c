// SPDX-License-Identifier: Apache-2.0
// Quantization configs with torchao's checks, and quantizers of a caller's callbacks.
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
                  "Unsupported quantization_spec QuantizationSpec(dtype=torch.int8, "
                  "observer_or_fake_quant_ctr=<class "
                  "'torchao.quantization.pt2e.observer.MinMaxObserver'>, quant_min=None, "
                  "quant_max=None, qscheme=torch.per_tensor_affine, ch_axis=None, "
                  "is_dynamic=False) for weight");
    tare_qspec_release(affine);
    tare_qspec_release(channel);
}

// What torchao 0.18 says of them.
static void refused_weights_are_printed_as_torch_does(void **state) {
    (void)state;
    tare_observer_spec *inner = tare_observer_spec_create("MovingAverageMinMaxObserver"),
                       *outer = tare_observer_spec_create("FakeQuantize");
    tare_observer_spec_set_int(inner, "averaging_constant", 1);
    tare_observer_spec_set_double(outer, "eps", 0x1p-12);
    tare_observer_spec_set_observer(outer, "observer", inner);
    tare_qspec_fields f = {.struct_size = sizeof f,
                           .dtype = TARE_INT8,
                           .observer = outer,
                           .has_quant_min = true,
                           .quant_min = -127,
                           .has_quant_max = true,
                           .quant_max = 127,
                           .qscheme = TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS,
                           .has_channel_axis = true,
                           .channel_axis = 1,
                           .is_dynamic = true};
    tare_quantization_config config = {.struct_size = sizeof config};
    tare_qspec *found = NULL;
    CHECK_DONE(tare_qspec_create(&f, &config.weight, job_error()));
    CHECK_REFUSED(
        tare_weight_qspec(&config, &found, job_error()), TARE_INVALID_ARGUMENT,
        "Unsupported quantization_spec QuantizationSpec(dtype=torch.int8, "
        "observer_or_fake_quant_ctr=functools.partial(<class "
        "'torchao.quantization.pt2e.fake_quantize.FakeQuantize'>, eps=0.000244140625, "
        "observer=functools.partial(<class "
        "'torchao.quantization.pt2e.observer.MovingAverageMinMaxObserver'>, "
        "averaging_constant=1){}){}, quant_min=-127, quant_max=127, "
        "qscheme=torch.per_channel_affine_float_qparams, ch_axis=1, is_dynamic=True) for weight");
    tare_qspec_release(config.weight);
    f.observer = NULL;
    f.is_dynamic = f.has_channel_axis = false;
    f.channel_axis = 0;
    f.scale = 0.5;
    f.qscheme = TARE_PER_TENSOR_AFFINE;
    CHECK_DONE(tare_qspec_create_fixed(&f, &config.weight, job_error()));
    CHECK_REFUSED(tare_weight_qspec(&config, &found, job_error()), TARE_INVALID_ARGUMENT,
                  "FixedQParamsQuantizationSpec(dtype=torch.int8, scale=0.5, zero_point=0, "
                  "quant_min=-127, quant_max=127, qscheme=torch.per_tensor_affine, "
                  "is_dynamic=False) for weight");
    tare_qspec_release(config.weight);
    tare_observer_spec_release(inner);
    tare_observer_spec_release(outer);
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
        cmocka_unit_test(refused_weights_are_printed_as_torch_does),
        cmocka_unit_test(a_quantizer_annotates_and_validates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
