// SPDX-License-Identifier: Apache-2.0
// Sessions with plans beside those of references.
#ifndef SUPPORT_PLAN_CHECKS_H
#define SUPPORT_PLAN_CHECKS_H

#include "core/tensor.h"
#include "tare/tare.h"

/// On one thread.
tare_session *session_of(const tare_model *model, bool reference);
/// Every output of both sessions, twice: the second run finds memory that was used before. what:
/// for messages.
void check_equal_runs(tare_session *planned, tare_session *reference, const tare_tensor *x,
                      const char *what);
void check_model(tare_model *model, const tare_tensor *x, const char *what);

#endif
