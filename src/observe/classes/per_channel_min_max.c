// SPDX-License-Identifier: Apache-2.0
// The minimum and maximum of each channel.
#include "observe/classes/builtin.h"
#include "observe/classes/range.h"

static const range_kind kind = {.name = "PerChannelMinMaxObserver",
                                .is_per_channel = true,
                                .is_averaging = false,
                                .join = &tare__join_extremes};
static const char *const arguments[] = {"ch_axis", UNIFORM_ARGUMENTS, NULL};
const tare_observer_class tare__per_channel_min_max_observer = {
    RANGE_OBSERVER,        .name = "PerChannelMinMaxObserver", .arguments = arguments,
    .user = (void *)&kind, .merge = tare__range_merge,         .is_idempotent = true,
};
