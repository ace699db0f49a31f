// SPDX-License-Identifier: Apache-2.0
// Checks that weights can be quantized.
// Private to flow.
#ifndef FLOW_SOUND_WEIGHTS_H
#define FLOW_SOUND_WEIGHTS_H

#include "core/error.h"

struct tare_model;

/// Refuses a prepared model if a tensor that convert will quantize contains NaN: parameters of
/// modules that are quantized with their weight, tensors of the graph that have an observer, and
/// other parameters of the same operators. Infinities are refused in parameters only: a mask of
/// -inf is a constant, not a weight. TARE_INVALID_ARGUMENT with node, tensor and element.
tare_status tare__refuse_unsound_weights(const struct tare_model *prepared, tare_error *err);

#endif
