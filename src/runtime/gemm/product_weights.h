// SPDX-License-Identifier: Apache-2.0
// Weights in the order of the product kernels (product.h): packed once, and shared by all plans and
// sessions that read the same tensor.
#ifndef RUNTIME_GEMM_PRODUCT_WEIGHTS_H
#define RUNTIME_GEMM_PRODUCT_WEIGHTS_H

#include "ops/quantized/layer.h"
#include "runtime/gemm/packed_weights.h"
#include "runtime/gemm/subconvolution.h"

/// What a tap is of a window.
typedef enum product_tap {
    TAP_IS_PIXEL,  // with all its channels
    TAP_IS_ROW,    // of pixels, each with its channels
    TAP_IS_WINDOW, // all its columns, each with its rows' pixels
} product_tap;

/// How weights [groups * outs][ins][height][width] become taps of quantized values.
typedef struct product_form {
    size_t groups, outs, ins; // channels of a group
    size_t height, width;     // of the window; 1 for linear layers; height: the rows of all planes
    product_tap tap;
} product_form;

/// A linear layer's, or a convolution's that is not transposed. Taps are rows where their pixels
/// follow each other (dilation 1) and so take fewer words, and windows where these take so few that
/// it pays to put their quantized values beside each other.
product_form tare__product_form_of(const quantized_layer *layer);
/// A subconvolution's.
product_form tare__product_form_of_subconvolution(const subconvolution *sub);
size_t tare__product_taps(const product_form *f);
size_t tare__product_tap_size(const product_form *f); // of a tap
size_t tare__product_depth(const product_form *f);    // words of four quantized values, of all taps
/// The blocks of channels of a group, which a kernel computes at a time, and those of a block.
size_t tare__product_block_count(const product_form *f);
size_t tare__product_block_channels(const product_form *f, size_t block);

/// Packed words lie as [groups][group words], those of a group as blocks; sums as [groups * outs].
size_t tare__product_group_words(const product_form *f);

/// How files tell forms apart: by the numbers of the key.
derived_key tare__product_key(const tare_tensor *weight, const product_form *f);
/// The form that such a key has of this weight; false where it is none.
bool tare__product_form_of_key(const derived_key *key, const tare_tensor *weight,
                               product_form *out);
/// A copy of packed weights as files hold them and offer them again. The caller releases *out.
tare_status tare__product_weights_bytes(const packed_weights *w, const product_form *f,
                                        tare_tensor **out, tare_error *err);

/// The packed weights of a tensor of int8 quantized values with data. Mapped weights leave memory
/// when they are packed. The caller releases *out.
tare_status tare__product_weights_get(const tare_tensor *weight, const product_form *f,
                                      packed_weights **out, tare_error *err);
/// The same of a subconvolution's weights, which need not be plain.
tare_status tare__product_weights_of_subconvolution(const tare_tensor *weight,
                                                    const product_form *f, const weight_taps *taps,
                                                    packed_weights **out, tare_error *err);

#endif
