// SPDX-License-Identifier: Apache-2.0
// The minimum and maximum of each group along the last dimension, and the parameters of torchao's
// choose_qparams_affine for its granularities PerGroup and PerRow (torchao 0.18). The schemes are
// its mapping types SYMMETRIC and ASYMMETRIC.
#include "observe/classes/builtin.h"
#include "observe/classes/range.h"

static const range_kind kind = {.name = "tare.PerGroupMinMaxObserver",
                                .is_per_channel = true,
                                .is_per_group = true,
                                .is_averaging = false,
                                .join = &tare__join_extremes};
static const char *const arguments[] = {"group_size", UNIFORM_ARGUMENTS, NULL};
const tare_observer_class tare__per_group_min_max_observer = {
    RANGE_OBSERVER,
    .name = "tare.PerGroupMinMaxObserver",
    .arguments = arguments,
    .user = (void *)&kind,
    .merge = tare__range_merge,
    .is_idempotent = true,
};
