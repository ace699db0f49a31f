// SPDX-License-Identifier: Apache-2.0
// Weights in the order of the depthwise kernels (depthwise.h): packed once, and shared by all plans
// and sessions that read the same tensor with kernels of the same width.
#ifndef RUNTIME_GEMM_DEPTHWISE_WEIGHTS_H
#define RUNTIME_GEMM_DEPTHWISE_WEIGHTS_H

#include "runtime/gemm/packed_weights.h"
#include "runtime/gemm/subconvolution.h"
#include "runtime/kernels/depthwise.h"

/// How weights [channels][taps][columns] are packed into words of columns.
typedef struct depthwise_form {
    const depthwise_kernel *kernel;
    size_t channels, block, blocks; // channels of a block
    size_t pixels;  // beside each other, whose channels follow each other in `channels`; usually 1
    size_t columns; // of a window
    size_t taps, words; // of a column: rows over all planes and addends; the same in words
    size_t rows;        // output rows that are computed together
} depthwise_form;

/// Uses the windows' columns, rows, planes, addends, strides and steps.
depthwise_form tare__depthwise_form_of(const depthwise_kernel *kernel, const conv_windows *w,
                                       size_t channels);
/// True for one output channel per input channel and windows that the kernels support.
bool tare__depthwise_fits(const weight_taps *t, const conv_windows *w);
/// Words of a block.
size_t tare__depthwise_block_words(const depthwise_form *f);
/// The channels of a block, and their number of quads.
size_t tare__depthwise_block_channels(const depthwise_form *f, size_t block);
size_t tare__depthwise_block_quads(const depthwise_form *f, size_t block);

/// Packed words are [blocks][rows][columns][words][lanes], in the order of a block; sums are
/// [channels].

/// The form of as many pixels at once, with the weights of each.
depthwise_form tare__depthwise_form_repeat(const depthwise_form *f, size_t pixels);

/// The key by which files, which have forms of one pixel only, distinguish forms.
derived_key tare__depthwise_key(const tare_tensor *weight, const depthwise_form *f);
/// The form of a key for this weight; false if there is none.
bool tare__depthwise_form_of_key(const derived_key *key, const tare_tensor *weight,
                                 depthwise_form *out);
/// A copy as files store it. The caller releases *out.
tare_status tare__depthwise_weights_bytes(const packed_weights *w, const depthwise_form *f,
                                          tare_tensor **out, tare_error *err);

/// The packed weights of an int8 tensor with data, with the taps of `taps`. Plain weights are
/// shared. The caller releases *out.
tare_status tare__depthwise_weights_get(const tare_tensor *weight, const depthwise_form *f,
                                        const weight_taps *taps, packed_weights **out,
                                        tare_error *err);

#endif
