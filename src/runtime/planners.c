// SPDX-License-Identifier: Apache-2.0
// The operators that have a step of their own.
#include "runtime/plan_steps.h"

const planner_row tare__planners[] = {
    {"conv1d", tare__plan_layer},
    {"conv2d", tare__plan_layer},
    {"conv3d", tare__plan_layer},
    {"linear", tare__plan_layer},
    {NULL, NULL},
};
