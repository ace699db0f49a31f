// SPDX-License-Identifier: Apache-2.0
// Least and greatest values: independent lanes, so that compilers vectorize without reordering
// floats.
#include "quant/observers/extremes.h"

#include <math.h>

enum { LANES = 16 };

typedef struct lanes {
    float min[LANES], max[LANES];
    uint32_t nan[LANES]; // comparisons drop NaN, so it is noted beside them
} lanes;

static void update_lanes(lanes *l, const float *values) {
    for (int k = 0; k < LANES; k++) {
        const float v = values[k];
        l->min[k] = v < l->min[k] ? v : l->min[k];
        l->max[k] = v > l->max[k] ? v : l->max[k];
        l->nan[k] |= v != v;
    }
}

void tare__extremes(const float *values, int64_t count, float *min, float *max) {
    lanes l;
    for (int k = 0; k < LANES; k++) {
        l.min[k] = INFINITY;
        l.max[k] = -INFINITY;
        l.nan[k] = 0;
    }
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) update_lanes(&l, values + i);
    *min = INFINITY;
    *max = -INFINITY;
    for (; i < count; i++) {
        *min = tare__least(*min, values[i]);
        *max = tare__most(*max, values[i]);
    }
    for (int k = 0; k < LANES; k++) {
        *min = tare__least(*min, l.nan[k] ? NAN : l.min[k]);
        *max = tare__most(*max, l.nan[k] ? NAN : l.max[k]);
    }
}

// Channels innermost: one row of all channels at a time.
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
