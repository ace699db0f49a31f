// SPDX-License-Identifier: Apache-2.0
// Replicas of a plan that runs sample by sample: one per thread, each with its own memory. Threads
// then run whole samples concurrently and wait for each other once per batch instead of at every
// step. Steps, packed weights and constants are shared.
// Private to runtime/plan.
#ifndef RUNTIME_PLAN_REPLICAS_H
#define RUNTIME_PLAN_REPLICAS_H

#include "runtime/plan/build.h"

/// True if every step may have a replica, as far as the kinds of steps tell.
bool tare__plan_may_have_replicas(const plan *p);
/// How many of `samples` samples replicas of this plan would run; 0: none.
int64_t tare__plan_replicas_of(const plan *p, int64_t samples);
/// Adds replicas if the session has threads for them, the batch is large enough and every step has
/// one. Otherwise the plan is unchanged.
tare_status tare__plan_add_replicas(plan *p, tare_error *err);
void tare__plan_drop_replicas(plan *p); // no effect without replicas
/// The number of replicas; 0: none.
size_t tare__plan_replica_count(const plan *p);
/// Replica `index`, for profiles.
plan *tare__plan_replica(const plan *p, size_t index);
/// How many samples the replicas run, the first ones. All threads together run the rest, one by
/// one.
int64_t tare__plan_replica_samples(const plan *p);
/// Runs the replicas' samples.
tare_status tare__plan_run_replicas(plan *p, const tare_tensor *const *inputs,
                                    tare_tensor *const *outputs, tare_error *err);

#endif
