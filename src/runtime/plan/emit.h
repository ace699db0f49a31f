// SPDX-License-Identifier: Apache-2.0
// The two halves of planning.
// Private to runtime/plan.
#ifndef RUNTIME_PLAN_EMIT_H
#define RUNTIME_PLAN_EMIT_H

#include "runtime/plan/values.h"

/// Runs the graph's shape rules on meta tensors like the inputs. Fills values, records and the
/// plan's inputs and outputs (plan/trace.c).
tare_status tare__plan_trace(plan_builder *b, const tare_tensor *const *inputs, size_t count);
/// The same for one call, which was shaped for the meta tensors `inputs`.
tare_status tare__plan_trace_call(plan_builder *b, const node *n, const op_call *call,
                                  const tare_tensor *const *inputs, size_t count);
/// True for a shaped call of a reference module.
bool tare__plan_is_reference(const op_call *call, op_compute compute);
/// Replaces it by a call of its function with the dequantized weights and the same result
/// (plan/reference.c).
tare_status tare__plan_reference_call(plan_builder *b, const op_call *call, op_call *out);
/// Turns chains of records into steps (plan/emit.c).
tare_status tare__plan_emit(plan_builder *b);

#endif
