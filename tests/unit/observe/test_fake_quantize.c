// SPDX-License-Identifier: Apache-2.0
// Printed texts and values were recorded from torch 2.15 on the same two batches.
#include "support/test.h"

#include "config/qconfig.h"
#include "core/text/text.h"
#include "observe/fake_quantize.h"
#include "observe/observer.h"
#include "ops/classes/module_call.h"
#include "ops/op.h"
#include "ops/text/print.h"
#include "replay/numerics.h"

// --- helpers ---

static tare_status make(const char *json, module **out, tare_error *err) {
    json_t *parsed = NULL;
    tare_observer_spec *spec = NULL;
    TARE_TRY(tare__json_parse(json, strlen(json), &parsed, err));
    const json_at at = tare__json_root(parsed);
    tare_status status = tare__observer_spec_from_json(&at, &spec, err);
    json_decref(parsed);
    TARE_TRY(status);
    status = tare__observer_spec_instantiate(NULL, spec, out, err);
    tare_observer_spec_release(spec);
    return status;
}

// By its name in torch.ao.quantization: "default_fake_quant".
static module *named(const char *name) {
    json_t *all = NULL;
    module *m = NULL;
    CHECK_OK(tare__embedded_json("qconfigs/observer_constructors.json", &all, NULL));
    char *json = json_dumps(json_object_get(all, name), 0);
    assert_non_null(json);
    CHECK_OK(make(json, &m, NULL));
    free(json);
    json_decref(all);
    return m;
}

static tare_status run(module *m, float by, float out[6], tare_error *err) {
    static const float values[] = {-1.5F, 0.25F, 3.0F, 0.5F, -0.75F, 2.0F};
    const int64_t shape[] = {2, 3};
    arena memory = {0};
    tare_tensor *x = NULL;
    TARE_TRY(tare_tensor_from_data(TARE_FLOAT32, 2, shape, values, &x, err));
    for (int i = 0; i < 6; i++) tare__f32(x)[i] *= by;
    const value arg = {.kind = VALUE_TENSOR, .as.tensor = x};
    op_call call = {
        .module = m, .own = m, .args = &arg, .arg_count = 1, .memory = &memory, .err = err};
    const tare_status status = tare__module_run(&call, false);
    if (status == TARE_OK) memcpy(out, tare__f32(call.result.as.tensor), 6 * sizeof *out);
    if (status == TARE_OK) tare__value_release_tensors(&call.result);
    tare_tensor_release(x);
    tare__arena_release(&memory);
    return status;
}

static void show(module *m, float by, const char *expected) {
    float y[6];
    text out = {0};
    CHECK_OK(run(m, by, y, NULL));
    for (int i = 0; i < 6; i++) tare__text_printf(&out, "%s%.4f", i > 0 ? " " : "", (double)y[i]);
    assert_string_equal(tare__text_chars(&out), expected);
    tare__text_release(&out);
}

static void check_print(const module *m, const char *expected) {
    text out = {0};
    CHECK_OK(tare__print_module(m, &out, NULL));
    assert_string_equal(tare__text_chars(&out), expected);
    tare__text_release(&out);
}

static void refuse(const char *json, const char *message) {
    module *m = NULL;
    tare_error *err = tare_error_create();
    assert_int_not_equal(make(json, &m, err), TARE_OK);
    assert_non_null(strstr(tare_error_message(err), message));
    tare_error_destroy(err);
}

// --- tests ---

static void count(void *user, const char *name, const char *difference) {
    int *passed = user;
    if (difference != NULL) fail_msg("%s: %s", name, difference);
    (*passed)++;
}

static void recorded_vectors_are_equal_to_the_bit(void **state) {
    (void)state;
    int passed = 0;
    CHECK_OK(numerics_run(&numerics_fake_quantizers, "tests/data/numerics", count, &passed, NULL));
    assert_int_equal(passed, 16);
}

#define ON8 "tensor([1], dtype=torch.uint8)"

static void fake_quantize_follows_its_observer(void **state) {
    (void)state;
    module *m = named("default_fake_quant");
    check_print(m, "FakeQuantize(\n  fake_quant_enabled=" ON8 ", observer_enabled=" ON8
                   ", quant_min=0, quant_max=127, dtype=torch.quint8, "
                   "qscheme=torch.per_tensor_affine, ch_axis=-1, scale=tensor([1.]), "
                   "zero_point=tensor([0], dtype=torch.int32)\n  (activation_post_process): "
                   "MovingAverageMinMaxObserver(min_val=inf, max_val=-inf)\n)");
    show(m, 1, "-1.4882 0.2480 3.0118 0.4961 -0.7441 1.9843");
    show(m, 2, "-1.5031 0.5010 3.0419 1.0020 -1.5031 3.0419");
    check_print(m, "FakeQuantize(\n  fake_quant_enabled=" ON8 ", observer_enabled=" ON8
                   ", quant_min=0, quant_max=127, dtype=torch.quint8, "
                   "qscheme=torch.per_tensor_affine, ch_axis=-1, scale=tensor([0.0358]), "
                   "zero_point=tensor([42], dtype=torch.int32)\n  (activation_post_process): "
                   "MovingAverageMinMaxObserver(min_val=-1.5149999856948853, "
                   "max_val=3.0299999713897705)\n)");
    tare__module_release(m);
}

static void channels_have_a_scale_each(void **state) {
    (void)state;
    module *m = named("default_per_channel_weight_fake_quant");
    show(m, 1, "-1.5059 0.2588 2.9882 0.5020 -0.7529 1.9922");
    show(m, 2, "-2.9944 0.4991 3.0181 0.9981 -1.5051 2.0121");
    check_print(m, "FakeQuantize(\n  fake_quant_enabled=" ON8 ", observer_enabled=" ON8
                   ", quant_min=-128, quant_max=127, dtype=torch.qint8, "
                   "qscheme=torch.per_channel_symmetric, ch_axis=0, scale=tensor([0.0238, "
                   "0.0158]), zero_point=tensor([0, 0], dtype=torch.int32)\n  "
                   "(activation_post_process): MovingAveragePerChannelMinMaxObserver("
                   "min_val=tensor([-1.5150, -0.7575]), max_val=tensor([3.0300, 2.0200]))\n)");
    tare__module_release(m);
}

static void float_zero_points_are_kept(void **state) {
    (void)state;
    module *m = named("default_embedding_fake_quant_4bit");
    show(m, 1, "-1.5000 0.3000 3.0000 0.5333 -0.7500 2.0000");
    show(m, 2, "-3.0000 0.6000 6.0000 1.0667 -1.5000 4.0000");
    check_print(m, "FakeQuantize(\n  fake_quant_enabled=" ON8 ", observer_enabled=" ON8
                   ", quant_min=0, quant_max=15, dtype=torch.quint4x2, "
                   "qscheme=torch.per_channel_affine_float_qparams, ch_axis=0, "
                   "scale=tensor([0.6000, 0.3667]), zero_point=tensor([5.0000, 4.0909])\n  "
                   "(activation_post_process): MovingAveragePerChannelMinMaxObserver("
                   "min_val=tensor([-3.0000, -1.5000]), max_val=tensor([6., 4.]))\n)");
    tare__module_release(m);
}

static void fused_ones_choose_by_the_fused_operator(void **state) {
    (void)state;
    module *m = named("default_fused_per_channel_wt_fake_quant");
    const qparams *q = NULL;
    bool is_calibrated = false;
    show(m, 1, "-1.5118 0.2598 3.0000 0.5039 -0.7559 2.0000");
    show(m, 2, "-3.0061 0.5010 3.0300 1.0020 -1.4951 2.0200");
    check_print(m, "FusedMovingAvgObsFakeQuantize(\n  fake_quant_enabled=tensor([1]), "
                   "observer_enabled=tensor([1]), scale=tensor([0.0239, 0.0159]), "
                   "zero_point=tensor([0, 0], dtype=torch.int32), dtype=torch.qint8, "
                   "quant_min=-128, quant_max=127, qscheme=torch.per_channel_symmetric, "
                   "reduce_range=False\n  (activation_post_process): "
                   "MovingAveragePerChannelMinMaxObserver(min_val=tensor([-1.5150, -0.7575]), "
                   "max_val=tensor([3.0300, 2.0200]))\n)");
    // What convert takes is the observer's.
    CHECK_OK(tare__observer_qparams(m, &q, &is_calibrated, NULL));
    assert_true(is_calibrated);
    assert_true(q->scale[0] < 0.02377 && q->scale[0] > 0.02376);
    tare__qparams_release(q);
    tare__module_release(m);
}

static void fixed_ones_clip(void **state) {
    (void)state;
    module *m = named("default_fixed_qparams_range_neg1to1_fake_quant");
    show(m, 2, "-1.0000 0.5000 0.9922 0.9922 -1.0000 0.9922");
    check_print(m, "FixedQParamsFakeQuantize(\n  fake_quant_enabled=" ON8 ", observer_enabled=" ON8
                   ", scale=tensor([0.0078]), "
                   "zero_point=tensor([128], dtype=torch.int32), dtype=torch.quint8, "
                   "quant_min=0, quant_max=255, qscheme=torch.per_tensor_affine\n  "
                   "(activation_post_process): FixedQParamsObserver()\n)");
    assert_true(tare__observer_info(m)->has_fixed_qparams);
    tare__module_release(m);
}

static void learnable_ones_follow_the_observer_first(void **state) {
    (void)state;
    module *m = NULL;
    CHECK_OK(make("{\"class\": \"_LearnableFakeQuantize\", \"kwargs\": {\"observer\": {\"class\": "
                  "\"MovingAverageMinMaxObserver\"}}}",
                  &m, NULL));
    show(m, 1, "-1.5000 0.2471 3.0000 0.4941 -0.7412 1.9941");
    show(m, 2, "-1.5150 0.4991 3.0300 0.9981 -1.4972 3.0300");
    check_print(m, "_LearnableFakeQuantize(\n  (activation_post_process): "
                   "MovingAverageMinMaxObserver(min_val=-1.5149999856948853, "
                   "max_val=3.0299999713897705)\n)");
    assert_string_equal(m->tensors[0].name, "fake_quant_enabled");
    assert_true(tare__module_named_tensor(m, "scale")->is_parameter);
    tare__module_release(m);
}

static void switches_stop_observing_and_rounding(void **state) {
    (void)state;
    module *m = named("default_fused_act_fake_quant");
    CHECK_OK(tare__fake_quantize_switch(m, "observer_enabled", false, NULL));
    show(m, 1, "0.0000 0.2000 3.0000 0.5000 0.0000 2.0000"); // of a range that nobody saw
    CHECK_OK(tare__fake_quantize_switch(m, "fake_quant_enabled", false, NULL));
    show(m, 1, "-1.5000 0.2500 3.0000 0.5000 -0.7500 2.0000");
    check_print(m, "FusedMovingAvgObsFakeQuantize(\n  fake_quant_enabled=tensor([0]), "
                   "observer_enabled=tensor([0]), scale=tensor([0.1000]), "
                   "zero_point=tensor([0], dtype=torch.int32), dtype=torch.quint8, "
                   "quant_min=0, quant_max=255, qscheme=torch.per_tensor_affine, "
                   "reduce_range=False\n  (activation_post_process): "
                   "MovingAverageMinMaxObserver(min_val=inf, max_val=-inf)\n)");
    tare__module_release(m);
    m = named("default_fake_quant");
    show(m, 1, "-1.4882 0.2480 3.0118 0.4961 -0.7441 1.9843");
    CHECK_OK(tare__fake_quantize_switch(m, "observer_enabled", false, NULL));
    show(m, 0.5F, "-0.7441 0.1417 1.4882 0.2480 -0.3898 0.9921");
    tare__module_release(m);
}

static void torch_s_refusals_have_torch_s_words(void **state) {
    (void)state;
#define FAKE(name, kwargs) "{\"class\": \"" name "\", \"kwargs\": {" kwargs "}}"
    refuse(FAKE("FakeQuantize", "\"quant_min\": 3, \"quant_max\": 1"),
           "quant_min must be less than or equal to quant_max");
    refuse(FAKE("FakeQuantize", "\"quant_min\": -3, \"quant_max\": 1"), "quant_min out of bound");
    refuse(FAKE("FakeQuantize", "\"quant_min\": 0, \"quant_max\": 256"), "quant_max out of bound");
    refuse(FAKE("FusedMovingAvgObsFakeQuantize", "\"observer\": {\"class\": \"MinMaxObserver\"}"),
           "Fused observer+fake_quant module only works with MovingAverageMinMaxObserver");
    refuse(FAKE("FixedQParamsFakeQuantize", "\"observer\": {\"class\": \"MinMaxObserver\"}"),
           "FixedQParamsFakeQuantize's observer must be a FixedQParamsObserver");
    refuse(FAKE("_LearnableFakeQuantize",
                "\"observer\": {\"class\": \"MinMaxObserver\"}, \"quant_min\": 3, "
                "\"quant_max\": 3"),
           "quant_min must be strictly less than quant_max.");
    refuse(FAKE("_LearnableFakeQuantize",
                "\"observer\": {\"class\": \"MinMaxObserver\"}, \"channel_len\": 0"),
           "Channel size must be a positive integer.");
    refuse(FAKE("_LearnableFakeQuantize", "\"quant_min\": 0"), "needs the argument observer");
    refuse(FAKE("FakeQuantize", "\"observer\": {\"class\": \"FakeQuantize\"}"),
           "the observer of a FakeQuantize cannot be a FakeQuantize");
    refuse(FAKE("FakeQuantize", "\"averaging_konstant\": 1"),
           "FakeQuantize has no argument 'averaging_konstant'");
    refuse(FAKE("FakeQuantize", "\"observer\": {\"class\": \"MinMaxObserver\"}, "
                                "\"averaging_constant\": 1"),
           "MinMaxObserver has no argument 'averaging_constant'");
    refuse(FAKE("FakeQuantize", "\"quant_min\": 0.5, \"quant_max\": 1"),
           "argument 'quant_min' must be an int, found a float");
}

static void scales_that_do_not_fit_are_refused(void **state) {
    (void)state;
    float y[6];
    const double two[] = {0.1, 0.2}, zeros[] = {0, 0};
    tare_error *err = tare_error_create();
    module *m = named("default_fake_quant");
    CHECK_OK(tare__fake_quantize_switch(m, "observer_enabled", false, NULL));
    CHECK_OK(tare__fake_quantize_set(m, 2, two, zeros, NULL));
    assert_int_equal(run(m, 1, y, err), TARE_INVALID_ARGUMENT);
    assert_string_equal(tare_error_message(err),
                        "expected 1 scales and zero points, found 2 and 2");
    tare__module_release(m);
    tare_error_destroy(err);
}

static tare_status whole_life(const char *json) {
    module *m = NULL, *clone = NULL;
    const qparams *q = NULL;
    bool is_calibrated = false;
    float y[6];
    TARE_TRY(make(json, &m, NULL));
    tare_status status = run(m, 1, y, NULL);
    if (status == TARE_OK) status = tare__module_clone(m, &clone, NULL);
    if (status == TARE_OK) status = run(clone, 2, y, NULL);
    if (status == TARE_OK)
        status = tare__fake_quantize_switch(clone, "fake_quant_enabled", false, NULL);
    if (status == TARE_OK) status = tare__observer_qparams(clone, &q, &is_calibrated, NULL);
    tare__qparams_release(q);
    tare__module_release(clone);
    tare__module_release(m);
    return status;
}

static void a_failed_allocation_is_an_error_and_no_leak(void **state) {
    (void)state;
    static const char *const cases[] = {
        FAKE("FakeQuantize", "\"averaging_constant\": 1"),
        FAKE("FusedMovingAvgObsFakeQuantize",
             "\"observer\": {\"class\": \"MovingAveragePerChannelMinMaxObserver\"}, \"qscheme\": "
             "\"torch.per_channel_affine\""),
        FAKE("FixedQParamsFakeQuantize",
             "\"observer\": {\"class\": \"FixedQParamsObserver\", \"kwargs\": {\"scale\": 0.5, "
             "\"zero_point\": 3}}"),
        FAKE("_LearnableFakeQuantize", "\"observer\": {\"class\": \"MinMaxObserver\"}, "
                                       "\"channel_len\": 1"),
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tare_status status = TARE_OK;
        EVERY_ALLOCATION_FAILS(status, status = whole_life(cases[i]), (void)0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_vectors_are_equal_to_the_bit),
        cmocka_unit_test(fake_quantize_follows_its_observer),
        cmocka_unit_test(channels_have_a_scale_each),
        cmocka_unit_test(float_zero_points_are_kept),
        cmocka_unit_test(fused_ones_choose_by_the_fused_operator),
        cmocka_unit_test(fixed_ones_clip),
        cmocka_unit_test(learnable_ones_follow_the_observer_first),
        cmocka_unit_test(switches_stop_observing_and_rounding),
        cmocka_unit_test(torch_s_refusals_have_torch_s_words),
        cmocka_unit_test(scales_that_do_not_fit_are_refused),
        cmocka_unit_test(a_failed_allocation_is_an_error_and_no_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
