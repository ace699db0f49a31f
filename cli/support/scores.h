// SPDX-License-Identifier: Apache-2.0
// Outputs of a classifier: which class wins, and how often it is the right one.
#ifndef CLI_SCORES_H
#define CLI_SCORES_H

#include <stdbool.h>

#include "tare/tare.h"

/// True for float32 [samples][classes] with 2 classes or more.
bool is_scores(const tare_tensor *scores, int64_t sample_count);
/// The class of the highest score; the first of equals.
int64_t winning_class(const tare_tensor *scores, int64_t sample);
/// How many of the winners are the labels, one a sample; *out grows. A label that is none of the
/// classes is an error at `data`.
tare_status count_correct(const tare_tensor *scores, const tare_tensor *labels, const char *data,
                          int64_t *out, tare_error *err);

#endif
