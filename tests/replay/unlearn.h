// SPDX-License-Identifier: Apache-2.0
// Float models of training cases were written after they had run once or more, so that their batch
// norms know the inputs already when the replay begins.
#ifndef REPLAY_UNLEARN_H
#define REPLAY_UNLEARN_H

#include "ir/value.h"
#include "replay/case.h"

/// How many runs the model may have learned from: the least count of batches that a batch norm in
/// training tracked; 0 if there is none.
int64_t unlearn_limit(const tare_model *model);
/// Takes `runs` runs on the inputs out of the running statistics.
tare_status unlearn(const recorded_case *c, tare_model *model, const value *inputs, size_t count,
                    int64_t runs, tare_error *err);
/// Does a program write its own buffers, so that every run finds another state?
bool writes_buffers(const tare_model *model);
/// The same for buffers that a program writes itself: the run that was recorded is taken out. Does
/// nothing for programs that write none.
tare_status unlearn_writes(const recorded_case *c, tare_model *model, const value *inputs,
                           size_t count, tare_error *err);

#endif
