// SPDX-License-Identifier: Apache-2.0
// Weight observers that choose the range with the least squared error, for the whole weight, each
// channel, or each group (weight_range.h). A weight is observed as a whole, so one update
// determines its ranges.
#include "observe/classes/builtin.h"
#include "observe/classes/range.h"

static const range_kind per_tensor = {
    .name = "tare.MSEObserver", .is_least_error = true, .join = &tare__join_extremes};
static const range_kind per_channel = {.name = "tare.PerChannelMSEObserver",
                                       .is_per_channel = true,
                                       .is_least_error = true,
                                       .join = &tare__join_extremes};
static const range_kind per_group = {.name = "tare.PerGroupMSEObserver",
                                     .is_per_channel = true,
                                     .is_per_group = true,
                                     .is_least_error = true,
                                     .join = &tare__join_extremes};
static const char *const tensor_arguments[] = {UNIFORM_ARGUMENTS, NULL};
static const char *const channel_arguments[] = {"ch_axis", UNIFORM_ARGUMENTS, NULL};
static const char *const group_arguments[] = {"group_size", UNIFORM_ARGUMENTS, NULL};

const tare_observer_class tare__mse_observer = {
    RANGE_OBSERVER,
    .name = "tare.MSEObserver",
    .arguments = tensor_arguments,
    .user = (void *)&per_tensor,
    .is_idempotent = true,
};
const tare_observer_class tare__per_channel_mse_observer = {
    RANGE_OBSERVER,
    .name = "tare.PerChannelMSEObserver",
    .arguments = channel_arguments,
    .user = (void *)&per_channel,
    .is_idempotent = true,
};
const tare_observer_class tare__per_group_mse_observer = {
    RANGE_OBSERVER,
    .name = "tare.PerGroupMSEObserver",
    .arguments = group_arguments,
    .user = (void *)&per_group,
    .is_idempotent = true,
};
