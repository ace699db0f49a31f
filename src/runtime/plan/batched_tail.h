// SPDX-License-Identifier: Apache-2.0
// Batched tails: the last steps of a plan that runs sample by sample, where each sample has become
// a vector, or a small image beside its weights. Such steps use each weight a few times per sample,
// so they are limited by reading the weights. Run for all samples at once, they read the weights
// once. The tail is a plan of its own: the end of the plan for all samples. Private to
// runtime/plan.
#ifndef RUNTIME_PLAN_BATCHED_TAIL_H
#define RUNTIME_PLAN_BATCHED_TAIL_H

#include "runtime/plan/build.h"

/// The number of equivalent last steps in the plan for one sample and in the plan for all samples.
typedef struct tail_steps {
    size_t one, whole;
} tail_steps;

/// Finds the last steps of `one` that the last steps of `whole` compute faster and with the same
/// bits. 0 and 0: there is no tail. Assumes only that samples are independent.
tail_steps tare__plan_find_tail(const plan *one, const plan *whole, int64_t samples);
/// Removes these last steps from `one` and all others from `whole`, which `one` takes over. After a
/// failure `one` can only be destroyed.
tare_status tare__plan_take_tail(plan *one, plan *whole, tail_steps tail, tare_error *err);

#endif
