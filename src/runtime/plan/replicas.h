// SPDX-License-Identifier: Apache-2.0
// Replicas of a plan that runs sample by sample: one for each thread, with memory of its own, so
// that threads run whole samples beside each other and wait for one another once in a batch rather
// than at every step. Steps, packed weights and constants are the plan's. Private to runtime/plan.
#ifndef RUNTIME_PLAN_REPLICAS_H
#define RUNTIME_PLAN_REPLICAS_H

#include "runtime/plan/build.h"

/// Can every step run beside itself, as far as classes tell?
bool tare__plan_may_have_replicas(const plan *p);
/// How many of so many samples replicas of this plan for one would run; 0: there would be none.
int64_t tare__plan_replicas_of(const plan *p, int64_t samples);
/// Gives the plan replicas where its session has threads for them, the batch is large enough and
/// every step can run beside itself; else it stays as it is.
tare_status tare__plan_add_replicas(plan *p, tare_error *err);
void tare__plan_drop_replicas(plan *p); // of a plan without: nothing happens
/// How many there are; 0: none.
size_t tare__plan_replica_count(const plan *p);
/// The index-th, for profiles.
plan *tare__plan_replica(const plan *p, size_t index);
/// How many of the plan's samples replicas run, the first ones. The others are left to all threads
/// together.
int64_t tare__plan_replica_samples(const plan *p);
/// Runs those samples.
tare_status tare__plan_run_replicas(plan *p, const tare_tensor *const *inputs,
                                    tare_tensor *const *outputs, tare_error *err);

#endif
