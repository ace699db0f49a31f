// SPDX-License-Identifier: Apache-2.0
// Internal interface of sessions.
#ifndef RUNTIME_SESSION_SESSION_H
#define RUNTIME_SESSION_SESSION_H

#include "core/error.h"
#include "tare/session.h"

/// As tare_session_create, for runs that change the model itself, as calibration does: observers'
/// statistics, running statistics, in-place writes. Nothing else may use the model meanwhile.
tare_status tare__session_create_feeding(tare_model *model, const tare_session_options *options,
                                         tare_session **out, tare_error *err);
/// Begins a call of a session. Returns false if another call is in progress or the session is NULL.
/// Must be paired with tare__session_leave.
bool tare__session_enter(const tare_session *session);
void tare__session_leave(const tare_session *session);
/// The plan that ran last; NULL: none, the interpreter ran.
const struct plan *tare__session_plan(const tare_session *session);
/// The newest plan of the index-th graph inside, in the order in which they first ran; NULL past
/// the end. *path: PATH of the names PATH/NODE of its nodes.
const struct plan *tare__session_nested_plan(const tare_session *session, size_t index,
                                             const char **path);

/// Lets the watcher see the nodes of the graphs that operators of control flow run, too, as
/// PATH/NODE.
void tare__session_see_inside(tare_session *session);

/// Makes the plan for inputs of these shapes, if the model can have one, without running it.
tare_status tare__session_make_plan(tare_session *session, const tare_tensor *const *inputs,
                                    size_t input_count, tare_error *err);

/// The model that it runs.
const tare_model *tare__session_model(const tare_session *session);
/// As tare_session_run; also sets *count if the outputs do not fit into the capacity.
tare_status tare__session_run_counted(tare_session *session, const tare_tensor *const *inputs,
                                      size_t input_count, tare_tensor **outputs, size_t capacity,
                                      size_t *count, tare_error *err);

/// As tare_session_run, for its side effects: observers of a prepared model record values. The
/// outputs are discarded.
tare_status tare__session_feed(tare_session *session, const tare_tensor *const *inputs,
                               size_t input_count, tare_error *err);

#endif
