// SPDX-License-Identifier: Apache-2.0
// Weights that can be quantized.
// Private to flow.
#ifndef FLOW_SOUND_WEIGHTS_H
#define FLOW_SOUND_WEIGHTS_H

#include "core/error.h"

struct tare_model;

/// Refuses a prepared model where what convert is going to quantize is not all numbers: parameters
/// of modules that are quantized with their weight, and what the observers of a graph's own tensors
/// look at, with the other parameters that the same operator reads. NaNs are refused everywhere
/// there, infinities in parameters: a mask of -inf is a constant, which no layer quantizes as its
/// weight. TARE_INVALID_ARGUMENT with the node, the tensor and the element.
tare_status tare__refuse_unsound_weights(const struct tare_model *prepared, tare_error *err);

#endif
