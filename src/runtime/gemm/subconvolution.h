// SPDX-License-Identifier: Apache-2.0
// A layer as ordinary convolutions, its subconvolutions (XNNPACK's word). A transposed one of
// stride s gives output pixels r, r + s, r + 2 s, .. with the same taps, which meet pixels of the
// input that follow each other: each r is a convolution of stride 1 with some of the kernel,
// reversed (the idea is that of sub-pixel convolutions, Shi et al., arXiv:1609.07009). Every other
// layer is one. Weights that do not fit int8 without their zero points are sums of up to three
// addends that do, each of which meets the input for itself.
#ifndef RUNTIME_GEMM_SUBCONVOLUTION_H
#define RUNTIME_GEMM_SUBCONVOLUTION_H

#include "runtime/gemm/conv_shape.h"

/// A layer divided into subconvolutions, for inputs of some shape.
typedef struct conv_split {
    conv_geometry g;
    size_t in[SPATIAL], out[SPATIAL];
    size_t addends;         // of weights
    bool has_zero_points;   // of weights
    size_t counts[SPATIAL]; // of subconvolutions
} conv_split;

/// The weights of a subconvolution as [outs][ins of a group][addends][taps]. Tap i of a dimension
/// is kernel element first + i * step; if reversed, first + (count - 1 - i) * step. Elements
/// outside the kernel are zeros.
typedef struct weight_taps {
    bool are_plain;   // all weights in their own order, without zero points: nothing has to be
                      // gathered
    bool is_reversed; // of a transposed layer, whose weights are [ins][outs of a group][..]
    size_t groups, outs, ins; // of all groups
    size_t kernel[SPATIAL];
    size_t first[SPATIAL], step[SPATIAL], count[SPATIAL];
    size_t addends;
} weight_taps;

typedef struct subconvolution {
    conv_windows windows;
    weight_taps taps;
    size_t out[SPATIAL]; // of the layer's output
    size_t origin[SPATIAL],
        apart[SPATIAL]; // position of its first pixel, and distance of its pixels
} subconvolution;

/// False if the layer does not fit x, or would have too many subconvolutions or too large windows.
bool tare__conv_split_of(const quantized_layer *layer, const tare_tensor *x, conv_split *out);
/// The same for floats; false if there would be too many subconvolutions.
bool tare__conv_split_of_floats(const conv_geometry *g, const int64_t in[SPATIAL],
                                const int64_t out[SPATIAL], conv_split *split);
size_t tare__subconvolution_count(const conv_split *s);
subconvolution tare__subconvolution_of(const conv_split *s, size_t index);
/// True if the subconvolution's pixels are not contiguous in the output.
static inline bool tare__subconvolution_is_scattered(const subconvolution *p) {
    return p->apart[D] != 1 || p->apart[H] != 1 || p->apart[W] != 1;
}
/// The index in the layer's output of one of its pixels, counted over all images.
size_t tare__subconvolution_pixel(const subconvolution *p, size_t pixel);

static inline size_t tare__weight_taps_count(const weight_taps *t) { // of a channel
    return t->ins / t->groups * t->addends * t->count[D] * t->count[H] * t->count[W];
}
/// Gathers the weights without zero points into [outs][tare__weight_taps_count].
void tare__weight_taps_gather(const weight_taps *t, const tare_tensor *weight, int8_t *to);
void tare__weight_taps_gather_floats(const weight_taps *t, const float *w, float *to);

#endif
