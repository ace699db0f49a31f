// SPDX-License-Identifier: Apache-2.0
// Steps that move a value, inserted before the step that reads it (plan/values.c).
#ifndef RUNTIME_STEPS_REORDER_H
#define RUNTIME_STEPS_REORDER_H

#include "runtime/plan/values.h"

/// Converts a tensor from the other layout to `to`.
extern const step_class tare__reorder_step;
tare_status tare__reorder_state(plan_builder *b, const tare_tensor *t, plan_layout to, size_t from,
                                size_t buffer, void **out);

/// Copies quantized pixels with gaps between them to contiguous memory.
extern const step_class tare__gather_step;
tare_status tare__gather_state(plan_builder *b, const tare_tensor *t, size_t from, size_t buffer,
                               void **out);

#endif
