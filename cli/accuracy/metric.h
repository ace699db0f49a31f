// SPDX-License-Identifier: Apache-2.0
// The user's own metric: a command that reads predictions and prints a number.
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

/// A metric of both models; a greater one is better. has_values: it was measured.
typedef struct metric {
    bool has_values;
    double of_float, of_quantized;
} metric;

/// Runs `program FILE.npz` by the shell for each model. The file has the outputs by name ("output",
/// or "output.0", ..), and `labels` if the data has labels; the command prints the number, as the
/// last word of what it prints. program NULL: nothing happens.
tare_status measure_metric(const char *program, const predictions *p, metric *out, tare_error *err);

#endif
