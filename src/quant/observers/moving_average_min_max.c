// SPDX-License-Identifier: Apache-2.0
// A moving average of the batches' least and greatest values. It depends on their order, hence no
// merge.
#include "quant/observers/builtin.h"
#include "quant/observers/range.h"

static const range_kind kind = {
    .name = "MovingAverageMinMaxObserver", .is_per_channel = false, .is_averaging = true};

static tare_status create(void *user, const tare_observer_args *args, void **state,
                          tare_observer_info *info, tare_error *err) {
    (void)user;
    return tare__range_create(&kind, args, state, info, err);
}

static tare_status update(void *state, const tare_tensor *x, tare_error *err) {
    return tare__range_update(state, x, &tare__join_averages, err);
}

static const char *const arguments[] = {"averaging_constant", UNIFORM_ARGUMENTS, NULL};
const tare_observer_class tare__moving_average_min_max_observer = {
    .struct_size = sizeof(tare_observer_class),
    .name = "MovingAverageMinMaxObserver",
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
