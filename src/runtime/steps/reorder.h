// SPDX-License-Identifier: Apache-2.0
// Moves of a value, which the plan makes in front of the step that reads it (plan/values.c).
#ifndef RUNTIME_STEPS_REORDER_H
#define RUNTIME_STEPS_REORDER_H

#include "runtime/plan/values.h"

/// Moves a tensor from the other layout to `to`.
extern const step_class tare__reorder_step;
tare_status tare__reorder_state(plan_builder *b, const tare_tensor *t, plan_layout to, size_t from,
                                size_t buffer, void **out);

/// Copies quantized values whose pixels lie apart to where they follow each other.
extern const step_class tare__gather_step;
tare_status tare__gather_state(plan_builder *b, const tare_tensor *t, size_t from, size_t buffer,
                               void **out);

#endif
