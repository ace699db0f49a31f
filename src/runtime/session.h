// SPDX-License-Identifier: Apache-2.0
// Sessions inside the library.
#ifndef RUNTIME_SESSION_H
#define RUNTIME_SESSION_H

#include "core/error.h"
#include "tare/session.h"

/// The plan that ran last; NULL: none, the interpreter runs.
const struct plan *tare__session_plan(const tare_session *session);

/// As tare_session_run, for what happens on the way: a prepared model's observers watch. The
/// outputs are dropped.
tare_status tare__session_feed(tare_session *session, const tare_tensor *const *inputs,
                               size_t input_count, tare_error *err);

#endif
