// SPDX-License-Identifier: Apache-2.0
// A moving average of the batches' minima and maxima. It depends on the order of the batches, so it
// cannot be merged.
#include "observe/classes/builtin.h"
#include "observe/classes/range.h"

static const range_kind kind = {.name = "MovingAverageMinMaxObserver",
                                .is_per_channel = false,
                                .is_averaging = true,
                                .join = &tare__join_averages};
static const char *const arguments[] = {"averaging_constant", UNIFORM_ARGUMENTS, NULL};
const tare_observer_class tare__moving_average_min_max_observer = {
    RANGE_OBSERVER,         .name = "MovingAverageMinMaxObserver",
    .arguments = arguments, .user = (void *)&kind,
    .ignores_order = true,
};
