// SPDX-License-Identifier: Apache-2.0
// Predicted times of steps: they follow the machine's peaks and the work, and every kind of step
// has one.
#include "support/test.h"

#include "runtime/tune/step_costs.h"

static const tare_machine_peak machine = {
    .int8_gops = 400, .float_gflops = 100, .l2_gbs = 100, .l3_gbs = 80, .memory_gbs = 30};

// A convolution of 64 channels on 56x56 pixels.
static tare_step convolution(bool is_quantized) {
    return (tare_step){.kind = is_quantized ? "quantized layer" : "layer",
                       .kernel = is_quantized ? "qu8_product__avx512vnni" : "brgconv:avx512_core",
                       .op = is_quantized ? "quantized.conv2d" : "conv2d",
                       .node_count = 1,
                       .output_ndim = 4,
                       .output_shape = {1, 64, 56, 56},
                       .input_bytes = 200704 * (is_quantized ? 1 : 4),
                       .output_bytes = 200704 * (is_quantized ? 1 : 4),
                       .weight_bytes = 36864 * (is_quantized ? 1 : 4),
                       .macs = 115605504,
                       .multiplies_codes = is_quantized};
}

static uint64_t predict(const tare_step *step) {
    return tare__step_predict_ns(&machine, step);
}

// The products alone take 578 us of bytes, and 2312 us of floats.
static void a_large_layer_takes_little_more_than_its_products(void **state) {
    const tare_step integers = convolution(true), floats = convolution(false);
    (void)state;
    assert_in_range(predict(&integers), 520000, 700000);
    assert_in_range(predict(&floats), 2080000, 2800000);
}

// Times are sums of numbers that a plan may have.
static void a_time_is_at_most_a_thousand_seconds(void **state) {
    tare_step step = convolution(true);
    (void)state;
    step.macs = INT64_MAX;
    step.output_ndim = 1;
    step.output_shape[0] = 1;
    assert_true(predict(&step) == 1000000000000u);
}

static void times_follow_the_peaks(void **state) {
    tare_step step = convolution(true);
    tare_machine_peak fast = machine;
    (void)state;
    const uint64_t usual = predict(&step);
    fast.int8_gops *= 4;
    const uint64_t faster = tare__step_predict_ns(&fast, &step);
    assert_in_range(faster, usual / 5, usual / 2);
    fast = machine;
    fast.float_gflops *= 4; // of the epilogue alone
    assert_in_range(tare__step_predict_ns(&fast, &step), usual / 2, usual - 1);
    step.macs *= 2;
    assert_in_range(predict(&step), usual * 3 / 2, usual * 2);
}

// Of a machine with tiles, which depthwise kernels and small products do not reach.
static void kernels_are_rated_by_the_peak_that_they_can_reach(void **state) {
    tare_step step = convolution(true);
    tare_machine_peak tiles = machine;
    double vectors[STEP_FEATURES], found[STEP_FEATURES];
    (void)state;
    tiles.int8_gops *= 8;
    tiles.int8_vector_gops = machine.int8_gops;
    tare__step_features(&machine, &step, vectors);
    tare__step_features(&tiles, &step, found);
    assert_memory_equal(vectors, found, sizeof found);
    step.kernel = "qu8_depthwise__avx512vnni";
    assert_true(tare__step_predict_ns(&tiles, &step) == predict(&step));
    step.kernel = "qu8_product__amxint8";
    tare__step_features(&tiles, &step, found);
    assert_true(found[4] == vectors[4] / 8);
    tiles.int8_vector_gops = 0; // nobody measured it
    step.kernel = "qu8_product__avx512vnni";
    tare__step_features(&tiles, &step, found);
    assert_true(found[4] == vectors[4] / 8);
}

// Channels are rounded up to 16.
static void few_channels_take_longer_than_their_products(void **state) {
    tare_step few = convolution(true), many = few;
    (void)state;
    few.output_shape[1] = 2;
    few.macs = many.macs / 32;
    assert_true(predict(&few) > predict(&many) / 32 + predict(&many) / 100);
}

// What constants are fitted to is what times are predicted from: of two steps of a row, times
// differ as features do.
static void features_tell_the_work(void **state) {
    const tare_step step = convolution(true);
    double features[STEP_FEATURES];
    (void)state;
    tare__step_features(&machine, &step, features);
    assert_true(features[0] == 1);
    assert_true(features[1] == (200704 + 200704 + 36864) / 100.0);
    assert_true(features[2] == 0); // half a megabyte is near
    assert_true(features[3] == 200704 / 100.0);
    assert_true(features[4] == 2.0 * 115605504 / 400);
    assert_true(features[5] == features[4]); // 64 channels of 576 products are whole
    assert_true(tare__step_cost_row(&step) <
                tare__step_cost_row(&(tare_step){.kind = "", .op = "", .kernel = ""}));
}

static void every_kind_has_a_time(void **state) {
    static const char *const kinds[] = {
#define STEP(name)         #name,
#define STEP_OF_CALL(name) #name,
#include "runtime/steps/steps.def"
#undef STEP
#undef STEP_OF_CALL
        "call", "reorder", "something else"};
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (int quantized = 0; quantized < 2; quantized++) {
            const tare_step small = {.kind = kinds[i],
                                     .kernel = "",
                                     .op = "",
                                     .output_ndim = 2,
                                     .output_shape = {4, 100},
                                     .input_bytes = 400,
                                     .output_bytes = 400,
                                     .multiplies_codes = quantized != 0};
            tare_step large = small;
            large.output_shape[1] = 100000;
            large.input_bytes = large.output_bytes = 400000;
            assert_in_range(predict(&small), 1, 100000);
            assert_true(predict(&large) > predict(&small));
        }
}

// A scalar, and a result without elements.
static void empty_results_are_no_trouble(void **state) {
    tare_step step = {
        .kind = "quantized layer", .kernel = "", .op = "", .macs = 10, .multiplies_codes = true};
    (void)state;
    assert_in_range(predict(&step), 1, 10000);
    step.output_ndim = 2;
    assert_in_range(predict(&step), 1, 10000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_layer_takes_little_more_than_its_products),
        cmocka_unit_test(a_time_is_at_most_a_thousand_seconds),
        cmocka_unit_test(times_follow_the_peaks),
        cmocka_unit_test(kernels_are_rated_by_the_peak_that_they_can_reach),
        cmocka_unit_test(few_channels_take_longer_than_their_products),
        cmocka_unit_test(features_tell_the_work),
        cmocka_unit_test(every_kind_has_a_time),
        cmocka_unit_test(empty_results_are_no_trouble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
