// SPDX-License-Identifier: Apache-2.0
// Weights in the order of the product kernels (product.h): packed once, and shared by all plans and
// sessions that read the same tensor.
#ifndef RUNTIME_KERNELS_PRODUCT_WEIGHTS_H
#define RUNTIME_KERNELS_PRODUCT_WEIGHTS_H

#include "core/derived.h"

/// How weights [groups * outs][ins][height][width] become taps of codes. A tap is a pixel of the
/// window, with all its channels, or a row of pixels, each with its channels.
typedef struct product_form {
    size_t groups, outs, ins; // channels of a group
    size_t height, width;     // of the window; 1 for linear layers
    bool by_rows;
} product_form;

size_t tare__product_taps(const product_form *f);
size_t tare__product_codes(const product_form *f); // of a tap
size_t tare__product_depth(const product_form *f); // words of four codes, of all taps
/// The blocks of channels of a group, which a kernel computes at a time, and those of a block.
size_t tare__product_block_count(const product_form *f);
size_t tare__product_block_channels(const product_form *f, size_t block);

typedef struct product_weights {
    derived base;
    const uint32_t *words; // [groups][group_words], 64-byte aligned
    size_t group_words;
    const int32_t *sums; // [groups * outs] of the weights, modulo 2^32
} product_weights;

/// The packed weights of a tensor of int8 codes with data. Mapped weights leave memory when they
/// are packed. The caller releases *out.
tare_status tare__product_weights_get(const tare_tensor *weight, const product_form *f,
                                      product_weights **out, tare_error *err);
void tare__product_weights_release(product_weights *w); // NULL is fine

#endif
