// SPDX-License-Identifier: Apache-2.0
// Metrics of the user: a command that reads predictions and prints a number.
#ifndef CLI_METRIC_H
#define CLI_METRIC_H

#include "support/gather.h"

/// Predictions of two models on the same samples. Zero-initialized: none.
typedef struct predictions {
    gathered floats, quantized, labels;
} predictions;

/// A tare_prediction_watcher whose user is a `predictions`.
tare_status keep_predictions(void *user, const tare_tensor *const *floats,
                             const tare_tensor *const *quantized, size_t count,
                             const tare_batch *batch, tare_error *err);
void predictions_release(predictions *p);

/// The metric of both models; greater is better. has_values: it was measured.
typedef struct metric {
    bool has_values;
    double of_float, of_quantized;
} metric;

/// Runs `program FILE.npz` in the shell for each model. The file contains the outputs by name
/// ("output", or "output.0", ..), and `labels` if the data has labels. The metric is the last word
/// that the command prints. program NULL: no effect.
tare_status measure_metric(const char *program, const predictions *p, metric *out, tare_error *err);

#endif
