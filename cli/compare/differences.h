// SPDX-License-Identifier: Apache-2.0
// Measures of the difference between two models' values.
#ifndef CLI_DIFFERENCES_H
#define CLI_DIFFERENCES_H

#include "support/json.h"
#include "tare/tare.h"

/// The difference of y from x, accumulated over tensors.
typedef struct difference {
    double signal, noise; // sums of x^2 and of (x - y)^2
    double largest_error;
} difference;

/// Adds two float32 tensors; false if their shapes differ.
bool difference_add(difference *d, const tare_tensor *x, const tare_tensor *y);
/// Of `count` floats: 1 where both are zero, 0 where one is.
double cosine_of(const float *x, const float *y, int64_t count);
/// 20 log10(|x| / |x - y|); infinite if there is no difference.
double signal_to_noise_db(const difference *d);
/// The difference in a row of torch's debugger, with the reference as x.
difference difference_of(const tare_debug_row *row);

/// A number for a column, printed with "%s": "equal" if infinite. In static storage.
const char *decibels_text(double db);

/// Prints the table of compare --layers: every value that both models have, as torch's debugger
/// does.
void print_values(const tare_debug_comparison *c, bool worst_first);
void write_values(const tare_debug_comparison *c, bool worst_first, json_out *json);

#endif
