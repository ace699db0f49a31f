// SPDX-License-Identifier: Apache-2.0
// The operators that have a step of their own.
#include "runtime/plan_steps.h"

const planner_row tare__planners[] = {
    {"conv1d", tare__plan_layer},
    {"conv2d", tare__plan_layer},
    {"conv3d", tare__plan_layer},
    {"linear", tare__plan_layer},
    {"max_pool1d", tare__plan_pool},
    {"max_pool2d", tare__plan_pool},
    {"max_pool3d", tare__plan_pool},
    {"avg_pool1d", tare__plan_pool},
    {"avg_pool2d", tare__plan_pool},
    {"avg_pool3d", tare__plan_pool},
    {"adaptive_avg_pool1d", tare__plan_pool},
    {"adaptive_avg_pool2d", tare__plan_pool},
    {"adaptive_avg_pool3d", tare__plan_pool},
    {"adaptive_max_pool2d", tare__plan_pool},
    {"mean", tare__plan_mean},
    {"cat", tare__plan_cat},
    {"layer_norm", tare__plan_layer_norm},
    {"softmax", tare__plan_softmax},
    {"scaled_dot_product_attention", tare__plan_attention},
    {NULL, NULL},
};
