// SPDX-License-Identifier: Apache-2.0
// Input-weight equalization: a layer's input channels are scaled and its weight columns scaled
// back, so that both use their range of integers.
// Private to flow/fx.
#ifndef FLOW_FX_EQUALIZE_H
#define FLOW_FX_EQUALIZE_H

#include "flow/fx/convert.h"

/// Linear layers and convolutions, also fused with a ReLU, also as functions.
bool tare__can_equalize(const tare_model *model, const node *n);
/// Is `arg` the weight of a call whose weight stands at this index (-1: by keyword only)?
bool tare__is_equalized_weight(int64_t weight_index, const node *n, const node *arg);

/// Step of convert: scales weights, the ranges of observers and, where no layer before can do it,
/// the input itself; the observers of equalization go. Source: torch.ao.quantization.fx._equalize
/// (PyTorch 2.15).
tare_status tare__convert_equalize(convert_pass *c);

#endif
