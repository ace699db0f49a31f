// SPDX-License-Identifier: Apache-2.0
// Tails: the last steps of a plan that runs sample by sample, where each sample is a vector by
// then. They meet each of their weights once per sample, so that reading these is what they cost;
// for all samples at once they read them once. The tail is a plan by itself: the end of one for all
// samples.
#ifndef RUNTIME_PLAN_TAIL_H
#define RUNTIME_PLAN_TAIL_H

#include "runtime/plan_build.h"

/// How many steps at the end of `one`, a plan for a sample, those at the end of `whole`, a plan for
/// all of them, do with the same bits and sooner; 0: there is no tail. Nothing is known of samples
/// but that they are independent.
size_t tare__plan_tail_steps(const plan *one, const plan *whole, int64_t samples);
/// Leaves `one` without so many last steps, and `whole`, which `one` takes over, with nothing else.
/// After a failure `one` can but be destroyed.
tare_status tare__plan_take_tail(plan *one, plan *whole, size_t steps, tare_error *err);

#endif
