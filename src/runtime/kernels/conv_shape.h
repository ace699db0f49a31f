// SPDX-License-Identifier: Apache-2.0
// The sizes that a planned convolution works with, and the padded copy of a plane.
#ifndef RUNTIME_KERNELS_CONV_SHAPE_H
#define RUNTIME_KERNELS_CONV_SHAPE_H

#include "ops/quantized_layer.h"

enum { H = 1, W = 2 }; // indices into conv_geometry's arrays

typedef struct conv_shape {
    size_t height, width;               // of the input
    size_t out_height, out_width;       // of the output
    size_t above, before;               // the border in front
    size_t staged_height, staged_width; // of the input with its border
} conv_shape;

/// Of a convolution in at most two dimensions over x. TARE_INTERNAL if x does not fit.
tare_status tare__conv_shape_of(const conv_geometry *g, const tare_tensor *x, conv_shape *out,
                                tare_error *err);
static inline bool tare__conv_shape_is_padded(const conv_shape *s) {
    return s->staged_height != s->height || s->staged_width != s->width;
}
/// A plane of codes ^ flip, with its border of `border`, to [staged_height][staged_width].
void tare__stage_plane(const conv_shape *s, const uint8_t *plane, uint8_t flip, uint8_t border,
                       uint8_t *to);

#endif
