// SPDX-License-Identifier: Apache-2.0
// The list of all kinds of steps.
#include "runtime/steps/steps.h"

#include <stddef.h>

const step_class *const tare__step_classes[] = {
#define STEP(name) &tare__##name##_step,
#include "runtime/steps/steps.def"
#undef STEP
    NULL,
};
