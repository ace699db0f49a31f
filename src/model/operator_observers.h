// SPDX-License-Identifier: Apache-2.0
// Fake quantizers as operators. Programs of torch.export contain no modules: a model prepared for
// training is exported with torch.ops.aten.fused_moving_avg_obs_fake_quant, whose statistics are
// buffers that it writes, and is read back with the trained statistics.
// Private to model.
#ifndef MODEL_OPERATOR_OBSERVERS_H
#define MODEL_OPERATOR_OBSERVERS_H

#include "model/model.h"

/// In a module tree of one's own, calls of fake quantizers become operators. Errors name the first
/// observer that has no operator.
tare_status tare__operators_from_observers(module *root, tare_error *err);

/// The same back: a model of such operators is a prepared one with observers in it. Nothing happens
/// to a model without any. An error: fake quantization by operators that observe nothing or that
/// are none of torch's modules.
tare_status tare__observers_from_operators(tare_model *model, tare_error *err);

#endif
