// SPDX-License-Identifier: Apache-2.0
// The operators that have a step of their own.
#include <string.h>

#include "ops/quantized_layer.h"
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

static bool has_codes(const tare_tensor *t) {
    return t->q != NULL && tare__is_byte_quantized(t);
}

// Modules are called with their input alone.
const tare_tensor *tare__plan_code_input(const plan_record *r) {
    const tare_tensor *bound = r->call.param_count > 0 ? tare__fast_input(&r->call, 0) : NULL;
    if (bound != NULL || r->call.module == NULL || r->call.arg_count == 0) return bound;
    return r->call.args[0].kind == VALUE_TENSOR ? r->call.args[0].as.tensor : NULL;
}

chain_planner tare__plan_code_planner(const plan_builder *b, const plan_record *r) {
    const tare_tensor *x = tare__plan_code_input(r);
    if (r->result == NOTHING || r->is_observer || r->is_view) return NULL;
    if (tare__plan_is_code_layer(r)) return tare__plan_code_layer;
    const char *op = tare__record_op(r);
    if (strcmp(op, "cat") == 0 || strcmp(op, "quantized.cat") == 0) return tare__plan_code_cat;
    if (x == NULL || (!has_codes(x) && !has_codes(b->values[r->result].tensor))) return NULL;
    return strstr(tare__record_op(r), "pool") != NULL ? tare__plan_code_pool : tare__plan_codes;
}
