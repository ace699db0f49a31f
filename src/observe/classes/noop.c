// SPDX-License-Identifier: Apache-2.0
// Observes nothing and proposes no parameters; only carries the requested dtype.
#include "observe/classes/builtin.h"

static tare_status create(void *user, const tare_observer_args *args, void **state,
                          tare_observer_info *info, tare_error *err) {
    (void)user;
    (void)err;
    info->dtype = TARE_FLOAT16;
    tare_observer_args_dtype(args, "dtype", &info->dtype);
    *state = tare__no_state();
    return TARE_OK;
}

static const char *const arguments[] = {"dtype", NULL};
const tare_observer_class tare__noop_observer = {
    .struct_size = sizeof(tare_observer_class),
    .name = "NoopObserver",
    .arguments = arguments,
    .create = create,
    .destroy = tare__no_state_destroy,
    .clone = tare__no_state_clone,
};
