// SPDX-License-Identifier: Apache-2.0
// Minimum and maximum of tensors and their channels.
#include "observe/classes/extremes.h"

#include <math.h>

#include "observe/classes/scan.h"

void tare__extremes(const float *values, int64_t count, float *min, float *max) {
    tare__scan_extremes(&tare__scan_alone, values, count, min, max);
}

// For channels in the innermost dimension: one row of all channels at a time.
static void update_row(const float *row, int64_t channels, float *min, float *max) {
    for (int64_t c = 0; c < channels; c++) {
        min[c] = tare__least(min[c], row[c]);
        max[c] = tare__most(max[c], row[c]);
    }
}

void tare__extremes_per_channel(const tare_tensor *x, int axis, float *min, float *max) {
    const int64_t channels = x->shape[axis];
    const float *values = tare__f32(x);
    int64_t inner = 1;
    for (int d = axis + 1; d < x->ndim; d++) inner *= x->shape[d];
    const int64_t outer = x->count / (inner * channels);
    for (int64_t c = 0; c < channels; c++) {
        min[c] = INFINITY;
        max[c] = -INFINITY;
    }
    for (int64_t o = 0; o < outer; o++, values += inner * channels) {
        if (inner == 1) update_row(values, channels, min, max);
        for (int64_t c = 0; c < channels && inner > 1; c++) {
            float low = 0, high = 0;
            tare__extremes(values + c * inner, inner, &low, &high);
            min[c] = tare__least(min[c], low);
            max[c] = tare__most(max[c], high);
        }
    }
}
