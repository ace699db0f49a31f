// SPDX-License-Identifier: Apache-2.0
// The list of all kinds of steps.
#include "runtime/steps/steps.h"

#include <stddef.h>

#define STEP(name)         &tare__##name##_step,
#define STEP_OF_CALL(name) STEP(name)
const step_class *const tare__step_classes[] = {
#include "runtime/steps/steps.def"
    NULL,
};
#undef STEP

#define STEP(name)
#undef STEP_OF_CALL
#define STEP_OF_CALL(name) &tare__##name##_step,
const step_class *const tare__call_step_classes[] = {
#include "runtime/steps/steps.def"
    NULL,
};
