// SPDX-License-Identifier: Apache-2.0
// Times and descriptions of a plan's steps. Without a profile, a run only checks one pointer.
#ifndef RUNTIME_PLAN_PROFILE_H
#define RUNTIME_PLAN_PROFILE_H

#include "runtime/plan/build.h"
#include "tare/session.h"

/// Starts timing every run; discards earlier times.
tare_status tare__plan_start_profile(plan *p, tare_error *err);
void tare__plan_stop_profile(plan *p); // no effect if the plan is not timed
/// Starts or stops timing all plans up to the first NULL, or to `most` of them.
tare_status tare__plans_profile(plan *const *plans, size_t most, bool on, tare_error *err);
/// Called at the start of a run, and at its end without failure. No effect if the plan is not
/// timed.
void tare__plan_begin_timed(plan *p);
void tare__plan_end_timed(plan *p);
/// Runs the steps of a plan with a profile for one sample.
tare_status tare__plan_run_timed(const plan_run_state *run);

/// As the public functions for sessions of the same names.
bool tare__plan_step(const plan *p, size_t index, tare_step *out);
void tare__plan_memory(const plan *p, tare_plan_memory *out);
bool tare__plan_place(const plan *p, size_t index, tare_plan_place *out);

#endif
