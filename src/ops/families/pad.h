// SPDX-License-Identifier: Apache-2.0
// Padding of tensors.
// Private to ops/families.
#ifndef OPS_FAMILIES_PAD_H
#define OPS_FAMILIES_PAD_H

#include "core/tensor/tensor.h"

typedef enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_REPLICATE, PAD_CIRCULAR } pad_mode;

/// "constant" (or "zeros"), "reflect", "replicate", "circular"; false for any other name.
bool tare__pad_mode_from_name(const char *name, pad_mode *out);
/// The source index of index i - before in a line of `size`; -1: a constant stands there. reflect
/// needs before and after < size, circular <= size.
int64_t tare__pad_source(pad_mode mode, int64_t i, int64_t size);
/// Fills y (x's dtype, with data, before[d] + x.shape[d] + after[d] wide) from x. Negative amounts
/// crop.
void tare__pad_into(const tare_tensor *x, pad_mode mode, const int64_t *before, double constant,
                    tare_tensor *y);

#endif
