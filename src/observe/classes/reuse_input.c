// SPDX-License-Identifier: Apache-2.0
// Requests that an operator's output share the observer of its input (for reshape and similar).
#include "observe/classes/builtin.h"

static tare_status create(void *user, const tare_observer_args *args, void **state,
                          tare_observer_info *info, tare_error *err) {
    (void)user;
    (void)args;
    (void)err;
    info->dtype = TARE_QUINT8;
    info->reuses_input = true;
    *state = tare__no_state();
    return TARE_OK;
}

static const char *const arguments[] = {NULL};
const tare_observer_class tare__reuse_input_observer = {
    .struct_size = sizeof(tare_observer_class),
    .name = "ReuseInputObserver",
    .arguments = arguments,
    .create = create,
    .destroy = tare__no_state_destroy,
    .clone = tare__no_state_clone,
};
