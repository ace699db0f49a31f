// SPDX-License-Identifier: Apache-2.0
// Times of a plan's steps, and their descriptions. A plan without a profile pays one check of a
// pointer per run.
#ifndef RUNTIME_PLAN_PROFILE_H
#define RUNTIME_PLAN_PROFILE_H

#include "runtime/plan/build.h"
#include "tare/session.h"

/// From here on every run times its steps; what was known of runs before is forgotten.
tare_status tare__plan_start_profile(plan *p, tare_error *err);
void tare__plan_stop_profile(plan *p); // of one that is not timed: nothing happens
/// A run begins, or has come to its end without failure. A plan that is not timed: nothing happens.
void tare__plan_begin_timed(plan *p);
void tare__plan_end_timed(plan *p);
/// Runs the steps of a plan with a profile, for one sample.
tare_status tare__plan_run_timed(const plan_run_state *run);

/// As the public functions of their names say it of a session.
bool tare__plan_step(const plan *p, size_t index, tare_step *out);
void tare__plan_memory(const plan *p, tare_plan_memory *out);
bool tare__plan_place(const plan *p, size_t index, tare_plan_place *out);

#endif
