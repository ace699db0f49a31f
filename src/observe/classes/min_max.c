// SPDX-License-Identifier: Apache-2.0
// The minimum and maximum of all values.
#include "observe/classes/builtin.h"
#include "observe/classes/range.h"

static const range_kind kind = {.name = "MinMaxObserver",
                                .is_per_channel = false,
                                .is_averaging = false,
                                .join = &tare__join_extremes};
static const char *const arguments[] = {UNIFORM_ARGUMENTS, NULL};
const tare_observer_class tare__min_max_observer = {
    RANGE_OBSERVER,        .name = "MinMaxObserver",   .arguments = arguments,
    .user = (void *)&kind, .merge = tare__range_merge, .ignores_order = true,
    .is_idempotent = true,
};
