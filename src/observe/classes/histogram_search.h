// SPDX-License-Identifier: Apache-2.0
// The subrange of a histogram's range with the least squared error after quantization.
// Private to observe/classes.
#ifndef OBSERVE_CLASSES_HISTOGRAM_SEARCH_H
#define OBSERVE_CLASSES_HISTOGRAM_SEARCH_H

#include <stdint.h>

#include "core/error.h"

typedef struct histogram_view {
    const float *counts; // [bins]
    int64_t bins;
    float min, max; // of the values counted
    double levels;  // of the dtype, regardless of quant_min and quant_max: 256 for eight bits
} histogram_view;

/// torch's HistogramObserver._non_linear_param_search: removes quantiles step by step, at the end
/// where a step skips more bins, until the error grows. Source: torch/ao/quantization/observer.py
/// (PyTorch 2.15).
tare_status tare__histogram_search(const histogram_view *h, float *out_min, float *out_max,
                                   tare_error *err);

/// The sum of a contiguous float32 vector in the order of additions of torch's CPU kernel: four
/// rows of eight lanes in a cascade of four levels.
float tare__torch_sum(const float *values, int64_t count);

#endif
