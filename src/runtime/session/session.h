// SPDX-License-Identifier: Apache-2.0
// Sessions inside the library.
#ifndef RUNTIME_SESSION_SESSION_H
#define RUNTIME_SESSION_SESSION_H

#include "core/error.h"
#include "tare/session.h"

/// As tare_session_create, for runs that are to change the model itself, as calibration does:
/// observers' statistics, running statistics, what is written in place. Nobody else uses it then.
tare_status tare__session_create_feeding(tare_model *model, const tare_session_options *options,
                                         tare_session **out, tare_error *err);
/// Begins a call of a session; false: another one is inside, or there is no session. Whoever
/// entered leaves.
bool tare__session_enter(const tare_session *session);
void tare__session_leave(const tare_session *session);
/// The plan that ran last; NULL: none, the interpreter runs.
const struct plan *tare__session_plan(const tare_session *session);

/// The model that it runs.
const tare_model *tare__session_model(const tare_session *session);
/// As tare_session_run; *count is also set where there is too little room for so many outputs.
tare_status tare__session_run_counted(tare_session *session, const tare_tensor *const *inputs,
                                      size_t input_count, tare_tensor **outputs, size_t capacity,
                                      size_t *count, tare_error *err);

/// As tare_session_run, for what happens on the way: a prepared model's observers watch. The
/// outputs are dropped.
tare_status tare__session_feed(tare_session *session, const tare_tensor *const *inputs,
                               size_t input_count, tare_error *err);

#endif
