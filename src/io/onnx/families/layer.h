// SPDX-License-Identifier: Apache-2.0
// Writing convolutions and linear layers, shared by float and integer rules.
// Private to io/onnx/families.
#ifndef IO_ONNX_FAMILIES_LAYER_H
#define IO_ONNX_FAMILIES_LAYER_H

#include "io/onnx/write/write.h"

/// The parameters of a convolution. A transposed one has its weight as [I][O/groups][..].
typedef struct conv_shape {
    int dims;
    bool is_transposed, is_unbatched;
    int64_t groups, kernel[3], stride[3], dilation[3];
    int64_t pad_before[3], pad_after[3], output_padding[3];
    const char *padding_mode; // torch's; NULL: zeros
} conv_shape;

/// Writes a convolution. bias "": none.
const char *tare__out_conv(onnx_out *o, const conv_shape *c, const char *x, const char *w,
                           const char *bias);
/// Writes x [..][I], of `ndim` dimensions, times w [O][I]. wt: w as [I][O]; NULL: computed from w.
const char *tare__out_linear(onnx_out *o, int ndim, const char *x, const char *w, const char *wt,
                             const char *bias);
/// Writes w [O][I] as [I][O]. If w is dequantized, its integers are transposed, so that
/// DequantizeLinear directly precedes the product.
const char *tare__out_transposed_weight(onnx_out *o, const char *w);

#endif
