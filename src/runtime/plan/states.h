// SPDX-License-Identifier: Apache-2.0
// Tensors of the model that a run modifies, such as a decoder's cache of keys and values. The
// session has its own copies: a run reads them in place, like inputs, and stores the new values
// there. They are written in place if the old elements are not needed any more.
#ifndef RUNTIME_PLAN_STATES_H
#define RUNTIME_PLAN_STATES_H

#include "runtime/plan/values.h"

/// Adds the states of the setting, before the graph is traced.
tare_status tare__plan_add_states(plan_builder *b);
/// Hooks for the interpreter that traces the graph, with the builder as `user`: the tensor that
/// represents a state, and a write to a state. A write to another tensor of the model cannot be
/// planned.
tare_tensor *tare__plan_stand_in(void *user, const char *path);
tare_status tare__plan_note_write(void *user, const node *n, tare_tensor *now, tare_error *err);
/// Makes the last values of states results of the plan: after the trace, read after the last step.
tare_status tare__plan_use_states(plan_builder *b);
tare_status tare__plan_emit_states(plan_builder *b);
/// Keeps the buffers that are copied to states until the end of the run.
void tare__plan_keep_states(plan *p);
/// True if value v may be written over `input`, because v is the next value of the state that
/// `input` holds.
bool tare__plan_is_next_state(const plan_builder *b, size_t v, size_t input);

/// Before and after the steps of a run. Replaces tensors that the session shares with the model, or
/// has returned, by its own copies.
tare_status tare__plan_take_states(plan *p, tare_error *err);
void tare__plan_leave_states(const plan *p);

#endif
