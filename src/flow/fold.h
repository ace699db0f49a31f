// SPDX-License-Identifier: Apache-2.0
// Folding a batch norm into the weighted module before it.
#ifndef FLOW_FOLD_H
#define FLOW_FOLD_H

#include "core/error.h"
#include "ir/module.h"

/// A layer's weight and bias, and the parameters of the batch norm behind it.
typedef struct norm_fold_values {
    const char *layer, *norm;         // classes or operators, for errors
    const tare_tensor *weight, *bias; // bias NULL: none
    const tare_tensor *mean, *var;    // running statistics
    const tare_tensor *gamma, *beta;  // NULL: ones, zeros
    double eps;
    int64_t groups;                // of a transposed convolution; 0: one
    bool is_transposed, is_linear; // what the layer is; neither: a convolution
} norm_fold_values;

/// New tensors; there always is a bias. float32, left to right: r = 1 / sqrt(var + eps);
///   conv:   W'[o] = W[o] * (gamma[o] * r[o]),  b' = ((b - mean) * r) * gamma + beta
///   linear: s = gamma * r,  W'[o] = W[o] * s[o],  b' = (b - mean) * s + beta
/// A transposed conv scales dimension 1 of its weight, which holds the channels of one group. A missing bias is 0, a missing gamma 1, a
/// missing beta 0. Source: torch.nn.utils.fusion (PyTorch 2.15).
tare_status tare__fold_norm_values(const norm_fold_values *values, tare_tensor **weight,
                                   tare_tensor **bias, tare_error *err);

/// The same for modules: a copy of `weighted` (conv, transposed conv or linear) with `bn` folded
/// in.
tare_status tare__fold_batch_norm(const module *weighted, const module *bn, module **out,
                                  tare_error *err);

#endif
