// SPDX-License-Identifier: Apache-2.0
// Sizes of a planned convolution.
#include "runtime/kernels/conv_shape.h"

#include <string.h>

tare_status tare__conv_shape_of(const conv_geometry *g, const tare_tensor *x, conv_shape *out,
                                tare_error *err) {
    int64_t sizes[5], result[SPATIAL];
    if (!tare__conv_sizes(g, x, sizes) || !tare__conv_output_size(g, sizes + 2, result))
        return tare__fail(err, TARE_INTERNAL,
                          "a convolution was planned for an input that does not fit");
    *out = (conv_shape){
        .height = (size_t)sizes[2 + H],
        .width = (size_t)sizes[2 + W],
        .out_height = (size_t)result[H],
        .out_width = (size_t)result[W],
        .above = (size_t)g->pad_before[H],
        .before = (size_t)g->pad_before[W],
        .staged_height = (size_t)(sizes[2 + H] + g->pad_before[H] + g->pad_after[H]),
        .staged_width = (size_t)(sizes[2 + W] + g->pad_before[W] + g->pad_after[W]),
    };
    return TARE_OK;
}

void tare__stage_plane(const conv_shape *s, const uint8_t *plane, uint8_t flip, uint8_t border,
                       uint8_t *to) {
    if (tare__conv_shape_is_padded(s)) memset(to, border, s->staged_height * s->staged_width);
    to += s->above * s->staged_width + s->before;
    for (size_t h = 0; h < s->height; h++, plane += s->width, to += s->staged_width) {
        memcpy(to, plane, s->width);
        for (size_t w = 0; flip != 0 && w < s->width; w++) to[w] ^= flip;
    }
}
