// SPDX-License-Identifier: Apache-2.0
// The table of steps' costs, and the time that follows from a row.
#include "runtime/tune/step_costs.h"

#include <string.h>

// What a row asks of a step: that it multiplies integers, or floats.
typedef enum cost_input { ANY, QUANTIZED, FLOATS } cost_input;

typedef struct step_cost {
    const char *kind, *kernel; // of the step: its kind ("": any); its first operator, or a part of
                               // its kernel's name
    cost_input input;
    double constants[STEP_FEATURES];
} step_cost;

static const step_cost rows[] = {
#define STEP_COST(kind, kernel, input, ...) {#kind, #kernel, input, {__VA_ARGS__}},
#include "runtime/tune/step_costs.def"
#undef STEP_COST
};

enum {
    ROWS = sizeof rows / sizeof *rows,
    NEAR_BYTES = 1 << 19,
    CHANNELS = 16,
    PRODUCTS = 4,
    OPERATIONS_OF_MAC = 2,
};
static const char of_tiles[] = "__amxint8"; // in the names of kernels that multiply tiles
static const double most_ns = 1e12;         // sums of a plan's steps are far below 2^63

static bool is_of(const step_cost *row, const tare_step *step) {
    return (row->kind[0] == '\0' || strcmp(row->kind, step->kind) == 0) &&
           (strstr(step->kernel, row->kernel) != NULL || strcmp(step->op, row->kernel) == 0) &&
           (row->input == ANY || (row->input == QUANTIZED) == step->multiplies_codes);
}

// The last row takes every step.
size_t tare__step_cost_row(const tare_step *step) {
    size_t i = 0;
    while (i + 1 < ROWS && !is_of(&rows[i], step)) i++;
    return i;
}

int64_t tare__step_elements(const tare_step *step) {
    int64_t count = 1;
    for (int d = 0; d < step->output_ndim; d++) count *= step->output_shape[d];
    return count;
}

static double rounded_up(int64_t x, int64_t to) {
    const int64_t count = x / to + (x % to != 0);
    return (double)count * (double)to;
}

static double padded_macs(const tare_step *step, int64_t outputs) {
    const int d = step->output_ndim > 2 ? 1 : step->output_ndim - 1;
    const int64_t channels = d >= 0 ? step->output_shape[d] : 1;
    if (step->macs <= 0 || outputs <= 0 || channels <= 0) return 0;
    const int64_t products = step->macs / outputs > 0 ? step->macs / outputs : 1;
    return (double)outputs / (double)channels * rounded_up(channels, CHANNELS) *
           rounded_up(products, PRODUCTS);
}

// The peak of the instructions that a step's kernel multiplies with.
static double rate_of(const tare_machine_peak *machine, const tare_step *step) {
    if (!step->multiplies_codes) return machine->float_gflops;
    const bool by_tiles = strstr(step->kernel, of_tiles) != NULL;
    return by_tiles || machine->int8_vector_gops == 0 ? machine->int8_gops
                                                      : machine->int8_vector_gops;
}

void tare__step_features(const tare_machine_peak *machine, const tare_step *step,
                         double out[STEP_FEATURES]) {
    const int64_t outputs = tare__step_elements(step);
    const double bytes = (double)(step->input_bytes + step->output_bytes + step->weight_bytes);
    const double nodes = step->node_count > 1 ? (double)step->node_count : 1;
    const double rate = rate_of(machine, step);
    const double far_bytes = bytes > NEAR_BYTES ? bytes - NEAR_BYTES : 0;
    const double features[STEP_FEATURES] = {
        1,
        bytes / machine->l2_gbs,
        far_bytes / machine->l2_gbs,
        (double)outputs * nodes / machine->float_gflops,
        OPERATIONS_OF_MAC * (double)step->macs / rate,
        OPERATIONS_OF_MAC * padded_macs(step, outputs) / rate,
    };
    memcpy(out, features, sizeof features);
}

uint64_t tare__step_predict_ns(const tare_machine_peak *machine, const tare_step *step) {
    const double *constants = rows[tare__step_cost_row(step)].constants;
    double features[STEP_FEATURES], ns = 0;
    tare__step_features(machine, step, features);
    for (size_t i = 0; i < STEP_FEATURES; i++) ns += constants[i] * features[i];
    return ns < most_ns ? (uint64_t)ns : (uint64_t)most_ns;
}
