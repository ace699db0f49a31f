// SPDX-License-Identifier: Apache-2.0
// A moving average of each channel's extremes. It depends on the batches' order, hence no merge.
#include "quant/observers/builtin.h"
#include "quant/observers/range.h"

static const range_kind kind = {
    .name = "MovingAveragePerChannelMinMaxObserver", .is_per_channel = true, .is_averaging = true};

static tare_status create(void *user, const tare_observer_args *args, void **state,
                          tare_observer_info *info, tare_error *err) {
    (void)user;
    return tare__range_create(&kind, args, state, info, err);
}

static tare_status update(void *state, const tare_tensor *x, tare_error *err) {
    return tare__range_update(state, x, &tare__join_averages, err);
}

static const char *const arguments[] = {"averaging_constant", "ch_axis", UNIFORM_ARGUMENTS, NULL};
const tare_observer_class tare__moving_average_per_channel_observer = {
    .struct_size = sizeof(tare_observer_class),
    .name = "MovingAveragePerChannelMinMaxObserver",
    .arguments = arguments,
    .create = create,
    .destroy = tare__range_destroy,
    .clone = tare__range_clone,
    .update = update,
    .qparams = tare__range_qparams,
    .describe = tare__range_describe,
    .save = tare__range_save,
    .load = tare__range_load,
};
