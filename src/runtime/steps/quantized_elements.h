// SPDX-License-Identifier: Apache-2.0
// Private to runtime/steps.
#ifndef RUNTIME_STEPS_QUANTIZED_ELEMENTS_H
#define RUNTIME_STEPS_QUANTIZED_ELEMENTS_H

#include "runtime/plan/values.h"

/// Adds a step that quantizes or dequantizes `x` to `y`, in the layout of x. n NULL: the following
/// step names the node.
tare_status tare__plan_convert(plan_builder *b, size_t x, size_t y, const node *n);

#endif
