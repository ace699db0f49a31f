// SPDX-License-Identifier: Apache-2.0
// The range with the least squared quantization error for a weight, or for a channel or group of
// it.
// Private to observe/classes.
#ifndef OBSERVE_CLASSES_WEIGHT_RANGE_H
#define OBSERVE_CLASSES_WEIGHT_RANGE_H

#include "observe/classes/uniform.h"

/// Replaces [*min, *max], the extremes of values[count], by a better range. If all values are on a
/// quantization grid of `u` already, as GPTQ and AdaRound leave them, the range is that of the
/// grid, so that quantizing changes nothing. Otherwise several scaled ranges are tried. The range
/// may become wider where the scheme would clip the greatest value. Ranges that are not finite are
/// left unchanged. Deterministic.
void tare__search_weight_range(const uniform *u, const float *values, int64_t count, float *min,
                               float *max);

#endif
