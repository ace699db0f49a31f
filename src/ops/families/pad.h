// SPDX-License-Identifier: Apache-2.0
// Padding of tensors.
// Private to ops/families.
#ifndef OPS_FAMILIES_PAD_H
#define OPS_FAMILIES_PAD_H

#include "ops/layer_call.h"

/// "constant" (or "zeros"), "reflect", "replicate", "circular"; false for any other name.
bool tare__pad_mode_from_name(const char *name, pad_mode *out);
/// Fills y (x's dtype, with data, before[d] + x.shape[d] + after[d] wide) from x.
void tare__pad_into(const pad_call *p, tare_tensor *y);

#endif
