// SPDX-License-Identifier: Apache-2.0
// Runs two models on the same data, and measures how much values and outputs of the second differ
// from the first's.
#ifndef CLI_COMPARISON_H
#define CLI_COMPARISON_H

#include "compare/differences.h"
#include "support/json.h"

typedef struct comparison_settings {
    const char *data;
    int64_t batch, limit, threads; // limit: samples; 0: all
    bool has_ranges;               // record the ranges of the float model's values
    bool by_handles;               // match values by debug handles if both models have them
} comparison_settings;

typedef struct comparison {
    comparison_settings settings;
    const tare_model *float_model, *quantized_model; // lent
    tare_debug_comparison *values;
    difference output; // of all outputs
    tare_verdict verdict;
    double cosine_sum; // sum over samples of the outputs' cosine
    int64_t cosine_count;
    tare_error *err; // lent
} comparison;

/// Runs both models on the data. Fails if the models are not related, or are in the wrong order.
tare_status comparison_run(comparison *c);
void comparison_release(comparison *c);
/// Writes the output of tare compare --json into an open object.
void comparison_write(const comparison *c, json_out *json);

/// The preprocessing that one of the models declares (often only the quantized one does), as both
/// read the same inputs. NULL: neither does.
tare_status common_preprocess(const tare_model *x, const tare_model *y,
                              const tare_preprocess **out);

#endif
