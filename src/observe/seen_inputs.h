// SPDX-License-Identifier: Apache-2.0
// What calibration saw of a model's inputs: enough to tell that data are of another scale than
// those that come later, constant, or one sample many times. It is not kept in files.
#ifndef OBSERVE_SEEN_INPUTS_H
#define OBSERVE_SEEN_INPUTS_H

#include <stdbool.h>

#include "core/error.h"
#include "tare/tensor.h"

typedef struct seen_input {
    const char *name;       // the placeholder's; owned
    double low, high;       // of all finite float32 values; low > high: there are none
    float *peaks;           // largest magnitude of each sample; 0 where it is not float32
    size_t count, capacity; // samples
    uint64_t first;         // hash of the samples, while all are equal
    bool differs;           // not all samples are equal
    bool has_other;         // infinities or NaNs
} seen_input;

typedef struct seen_inputs {
    seen_input *items;
    size_t count, capacity;
    double seconds;  // that the calibration took
    bool is_partial; // the observers have data that is not noted here: nothing is said about any
} seen_inputs;

/// Adds samples of the input `name`: if dimension 0 has the size batch_size, it counts them. Notes
/// that are partial stay as they are.
tare_status tare__seen_add(seen_inputs *s, const char *name, const tare_tensor *x,
                           int64_t batch_size, tare_error *err);
const seen_input *tare__seen_find(const seen_inputs *s, const char *name); // NULL: not known
/// There are several samples, and each is the first one again.
bool tare__seen_one_sample(const seen_inputs *s);
/// There are several samples, and all their elements are one number.
bool tare__seen_one_value(const seen_input *s);
/// The median of the samples' peaks.
tare_status tare__seen_median(const seen_input *s, double *out, tare_error *err);
/// Is the magnitude between the samples' least and largest peaks?
bool tare__seen_spans(const seen_input *s, double magnitude);
tare_status tare__seen_copy(seen_inputs *to, const seen_inputs *from, tare_error *err);
void tare__seen_release(seen_inputs *s);

#endif
