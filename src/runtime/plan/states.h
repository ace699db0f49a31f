// SPDX-License-Identifier: Apache-2.0
// Tensors of the model that a run writes over, as a decoder does to its cache of keys and values.
// They are the session's own: a run reads them where they are, as inputs, and what it makes of them
// goes there, written in place where nobody needs the old elements any more.
#ifndef RUNTIME_PLAN_STATES_H
#define RUNTIME_PLAN_STATES_H

#include "runtime/plan/values.h"

/// Makes the states of the setting known, before the graph is traced.
tare_status tare__plan_add_states(plan_builder *b);
/// Hooks of the interpreter that traces the graph, with the builder as `user`: what stands for a
/// state, and that one is written. A write to any other tensor of the model cannot be planned.
tare_tensor *tare__plan_stand_in(void *user, const char *path);
tare_status tare__plan_note_write(void *user, const node *n, tare_tensor *now, tare_error *err);
/// The last values of states are results of the plan, too: after the trace, and behind the last
/// step.
tare_status tare__plan_use_states(plan_builder *b);
tare_status tare__plan_emit_states(plan_builder *b);
/// The buffers that are copied into states are kept until the end of the run.
void tare__plan_keep_states(plan *p);
/// May value v be written over `input`, which is what a state was, because it is what it becomes?
bool tare__plan_is_next_state(const plan_builder *b, size_t v, size_t input);

/// Before and after the steps of a run. Takes tensors that the session shares with its model, or
/// has handed out, from it: it gets copies of its own.
tare_status tare__plan_take_states(plan *p, tare_error *err);
void tare__plan_leave_states(const plan *p);

#endif
