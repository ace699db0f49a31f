// SPDX-License-Identifier: Apache-2.0
// Padding of tensors.
// Private to ops/families.
#ifndef OPS_FAMILIES_PAD_H
#define OPS_FAMILIES_PAD_H

#include "ops/layer_call.h"

/// Finds the mode "constant" (or "zeros"), "reflect", "replicate" or "circular"; false for any
/// other name.
bool tare__pad_mode_from_name(const char *name, pad_mode *out);
/// Fills y from x. y has data, x's dtype and the sizes before[d] + x.shape[d] + after[d].
void tare__pad_into(const pad_call *p, tare_tensor *y);

#endif
