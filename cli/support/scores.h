// SPDX-License-Identifier: Apache-2.0
// The outputs of a classifier: the predicted class, and the number of correct predictions.
#ifndef CLI_SCORES_H
#define CLI_SCORES_H

#include <stdbool.h>

#include "tare/tare.h"

/// True for float32 [samples][classes] with 2 classes or more.
bool is_scores(const tare_tensor *scores, int64_t sample_count);
/// The class with the highest score; the first of equal ones.
int64_t winning_class(const tare_tensor *scores, int64_t sample);
/// Counts the samples whose predicted class is the label; adds to *out. A label that is no class is
/// an error at `data`.
tare_status count_correct(const tare_tensor *scores, const tare_tensor *labels, const char *data,
                          int64_t *out, tare_error *err);

#endif
