// SPDX-License-Identifier: Apache-2.0
// Convolutions and linear layers, for rules of float and of integer ones.
// Private to io/onnx/families.
#ifndef IO_ONNX_FAMILIES_LAYER_H
#define IO_ONNX_FAMILIES_LAYER_H

#include "io/onnx/write/write.h"

/// A convolution's window. Transposed ones have their weight as [I][O/groups][..].
typedef struct conv_shape {
    int dims;
    bool is_transposed, is_unbatched;
    int64_t groups, kernel[3], stride[3], dilation[3];
    int64_t pad_before[3], pad_after[3], output_padding[3];
    const char *padding_mode; // torch's; NULL: zeros
} conv_shape;

/// bias "": none.
const char *tare__out_conv(onnx_out *o, const conv_shape *c, const char *x, const char *w,
                           const char *bias);
/// x [..][I] of `ndim` dimensions times w [O][I]; wt is the same as [I][O], NULL: made of w.
const char *tare__out_linear(onnx_out *o, int ndim, const char *x, const char *w, const char *wt,
                             const char *bias);
/// w [O][I] as [I][O]. Where w was dequantized its integers are transposed instead, so that the
/// DequantizeLinear stands before the product.
const char *tare__out_transposed_weight(onnx_out *o, const char *w);

#endif
