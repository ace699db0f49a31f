// SPDX-License-Identifier: Apache-2.0
// Weights in the order of the product kernels (product.h): packed once, and shared by all plans and
// sessions that read the same tensor.
#ifndef RUNTIME_GEMM_PRODUCT_WEIGHTS_H
#define RUNTIME_GEMM_PRODUCT_WEIGHTS_H

#include "ops/quantized/layer.h"
#include "runtime/gemm/packed_weights.h"
#include "runtime/gemm/subconvolution.h"

/// The part of a window that is one tap.
typedef enum product_tap {
    TAP_IS_PIXEL,  // a pixel with all its channels
    TAP_IS_ROW,    // a row of pixels with their channels
    TAP_IS_WINDOW, // the whole window: its columns, each with the pixels of its rows
} product_tap;

/// How weights [groups * outs][ins][height][width] become taps of quantized values.
typedef struct product_form {
    size_t groups, outs, ins; // channels of a group
    size_t height, width;     // of the window; 1 for linear layers; height: rows over all planes
    product_tap tap;
} product_form;

/// For a linear layer, or a convolution that is not transposed. Taps are rows if the pixels of a
/// row are contiguous (dilation 1) and this takes fewer words; taps are windows if this takes so
/// few words that copying the windows pays.
product_form tare__product_form_of(const quantized_layer *layer);
/// For a subconvolution.
product_form tare__product_form_of_subconvolution(const subconvolution *sub);
size_t tare__product_taps(const product_form *f);
size_t tare__product_tap_size(const product_form *f); // of a tap
size_t tare__product_depth(const product_form *f); // words of four quantized values, over all taps
/// The number of blocks of channels in a group (a kernel computes one at a time), and the channels
/// of a block.
size_t tare__product_block_count(const product_form *f);
size_t tare__product_block_channels(const product_form *f, size_t block);

/// Packed words are [groups][words of a group], the latter as blocks; sums are [groups * outs].
size_t tare__product_group_words(const product_form *f);

/// The key by which files distinguish forms.
derived_key tare__product_key(const tare_tensor *weight, const product_form *f);
/// The form of a key for this weight; false if there is none.
bool tare__product_form_of_key(const derived_key *key, const tare_tensor *weight,
                               product_form *out);
/// A copy of packed weights as files store and offer them. The caller releases *out.
tare_status tare__product_weights_bytes(const packed_weights *w, const product_form *f,
                                        tare_tensor **out, tare_error *err);

/// The packed weights of an int8 tensor with data. If they are packed, the pages of a mapped tensor
/// are released. The caller releases *out.
tare_status tare__product_weights_get(const tare_tensor *weight, const product_form *f,
                                      packed_weights **out, tare_error *err);
/// The same for the weights of a subconvolution, which need not be plain.
tare_status tare__product_weights_of_subconvolution(const tare_tensor *weight,
                                                    const product_form *f, const weight_taps *taps,
                                                    packed_weights **out, tare_error *err);

#endif
