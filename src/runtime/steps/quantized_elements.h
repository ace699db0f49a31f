// SPDX-License-Identifier: Apache-2.0
// Private to runtime/steps.
#ifndef RUNTIME_STEPS_QUANTIZED_ELEMENTS_H
#define RUNTIME_STEPS_QUANTIZED_ELEMENTS_H

#include "runtime/plan/values.h"

/// A step that quantizes or dequantizes `x` to `y`, in the layout at hand. n NULL: the step behind
/// it says for which node.
tare_status tare__plan_convert(plan_builder *b, size_t x, size_t y, const node *n);

#endif
