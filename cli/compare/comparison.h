// SPDX-License-Identifier: Apache-2.0
// Two models on the same data: how far the values and the outputs of the second are from those of
// the first.
#ifndef CLI_COMPARISON_H
#define CLI_COMPARISON_H

#include "compare/differences.h"
#include "support/json.h"

typedef struct comparison_settings {
    const char *data;
    int64_t batch, limit, threads; // limit 0: all samples
    bool has_ranges;               // keep the ranges of the float model's values
    bool by_handles;               // match values by debug handles where both models have them
} comparison_settings;

typedef struct comparison {
    comparison_settings settings;
    const tare_model *float_model, *quantized_model; // lent
    tare_debug_comparison *values;
    difference output; // of all outputs
    tare_verdict verdict;
    double cosine_sum; // of samples' outputs
    int64_t cosine_count;
    tare_error *err; // lent
} comparison;

/// Runs both models on the data. Fails where they are not related, or in the wrong order.
tare_status comparison_run(comparison *c);
void comparison_release(comparison *c);
/// What tare compare --json prints, into an open object.
void comparison_write(const comparison *c, json_out *json);

/// Both models see the same tensors; often the quantized one alone says how they are made. NULL:
/// none says it.
tare_status common_preprocess(const tare_model *x, const tare_model *y,
                              const tare_preprocess **out);

#endif
