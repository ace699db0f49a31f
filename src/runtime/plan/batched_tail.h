// SPDX-License-Identifier: Apache-2.0
// Batched tails: the last steps of a plan that runs sample by sample, where each sample is a vector
// by then. They meet each of their weights once per sample, so that reading these is what they
// cost; for all samples at once they read them once. The tail is a plan by itself: the end of one
// for all samples. Private to runtime/plan.
#ifndef RUNTIME_PLAN_BATCHED_TAIL_H
#define RUNTIME_PLAN_BATCHED_TAIL_H

#include "runtime/plan/build.h"

/// The last steps of a plan for one sample, and of one for all of them, which do the same.
typedef struct tail_steps {
    size_t one, whole;
} tail_steps;

/// How many steps at the end of `one` those at the end of `whole` do with the same bits and sooner;
/// 0 and 0: there is no tail. Nothing is known of samples but that they are independent.
tail_steps tare__plan_find_tail(const plan *one, const plan *whole, int64_t samples);
/// Leaves `one` without these last steps, and `whole`, which `one` takes over, with nothing else.
/// After a failure `one` can but be destroyed.
tare_status tare__plan_take_tail(plan *one, plan *whole, tail_steps tail, tare_error *err);

#endif
