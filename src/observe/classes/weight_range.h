// SPDX-License-Identifier: Apache-2.0
// The range of a weight, or of a channel or group of one, whose quantized values have the least
// squared error.
// Private to observe/classes.
#ifndef OBSERVE_CLASSES_WEIGHT_RANGE_H
#define OBSERVE_CLASSES_WEIGHT_RANGE_H

#include "observe/classes/uniform.h"

/// Values that are on a grid of `u` already (GPTQ and AdaRound leave such ones) get that grid, so
/// that quantizing changes nothing. For other values, [*min, *max], the extremes of values[count],
/// is scaled by several factors, and the best range replaces it. The range may become wider where
/// the scheme would cut off the greatest value. Ranges that are not finite stay. Deterministic.
void tare__search_weight_range(const uniform *u, const float *values, int64_t count, float *min,
                               float *max);

#endif
