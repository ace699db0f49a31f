// SPDX-License-Identifier: Apache-2.0
// Fake quantizers as operators. Programs of torch.export contain no modules: a model prepared for
// QAT is exported with torch.ops.aten.fused_moving_avg_obs_fake_quant, whose statistics are mutable
// buffers, and is read back with the trained statistics.
// Private to model.
#ifndef MODEL_OPERATOR_OBSERVERS_H
#define MODEL_OPERATOR_OBSERVERS_H

#include "model/model.h"

/// Replaces calls of fake quantizers by operators, in a module tree that the caller owns. Errors
/// name the first observer that has no operator.
tare_status tare__operators_from_observers(module *root, tare_error *err);

/// The reverse: converts a model with such operators to a prepared model with observers. Does
/// nothing for a model without them. Errors: fake quantize operators that do not observe, or that
/// do not correspond to a module of torch.
tare_status tare__observers_from_operators(tare_model *model, tare_error *err);

#endif
