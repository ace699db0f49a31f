// SPDX-License-Identifier: Apache-2.0
// Input-weight equalization: scales a layer's input channels, and its weight columns by the
// inverse, so that both use their integer range.
// Private to flow/fx.
#ifndef FLOW_FX_EQUALIZE_H
#define FLOW_FX_EQUALIZE_H

#include "flow/fx/convert.h"

/// True for linear layers and convolutions, as modules (also fused with a ReLU) or functions.
bool tare__can_equalize(const tare_model *model, const node *n);
/// True if `arg` is the weight of a call whose weight has this index (-1: by keyword only).
bool tare__is_equalized_weight(int64_t weight_index, const node *n, const node *arg);

/// Step of convert: scales weights, the ranges of observers, and, if no preceding layer can do it,
/// the input; removes the observers of equalization. Source: torch.ao.quantization.fx._equalize
/// (PyTorch 2.15).
tare_status tare__convert_equalize(convert_pass *c);

#endif
