// SPDX-License-Identifier: Apache-2.0
// A moving average of each channel's minima and maxima. It depends on the order of the batches, so
// it cannot be merged.
#include "observe/classes/builtin.h"
#include "observe/classes/range.h"

static const range_kind kind = {.name = "MovingAveragePerChannelMinMaxObserver",
                                .is_per_channel = true,
                                .is_averaging = true,
                                .join = &tare__join_averages};
static const char *const arguments[] = {"averaging_constant", "ch_axis", UNIFORM_ARGUMENTS, NULL};
const tare_observer_class tare__moving_average_per_channel_observer = {
    RANGE_OBSERVER,
    .name = "MovingAveragePerChannelMinMaxObserver",
    .arguments = arguments,
    .user = (void *)&kind,
};
