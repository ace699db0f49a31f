// SPDX-License-Identifier: Apache-2.0
// The operators that have a step of their own.
#include <string.h>

#include "ops/quantized/layer.h"
#include "runtime/plan/steps.h"

// Elementwise operators need no row.
typedef struct planner_row {
    const char *op;
    chain_planner plan, codes; // on floats, on byte codes; NULL: there is none
} planner_row;

static const planner_row rows[] = {
    {"conv1d", tare__plan_layer, NULL},
    {"conv2d", tare__plan_layer, NULL},
    {"conv3d", tare__plan_layer, NULL},
    {"conv_transpose1d", tare__plan_layer, NULL},
    {"conv_transpose2d", tare__plan_layer, NULL},
    {"conv_transpose3d", tare__plan_layer, NULL},
    {"linear", tare__plan_layer, NULL},
    {"max_pool1d", tare__plan_pool, tare__plan_code_pool},
    {"max_pool2d", tare__plan_pool, tare__plan_code_pool},
    {"max_pool3d", tare__plan_pool, tare__plan_code_pool},
    {"avg_pool1d", tare__plan_pool, tare__plan_code_pool},
    {"avg_pool2d", tare__plan_pool, tare__plan_code_pool},
    {"avg_pool3d", tare__plan_pool, tare__plan_code_pool},
    {"adaptive_avg_pool1d", tare__plan_pool, tare__plan_code_pool},
    {"adaptive_avg_pool2d", tare__plan_pool, tare__plan_code_pool},
    {"adaptive_avg_pool3d", tare__plan_pool, tare__plan_code_pool},
    {"adaptive_max_pool2d", tare__plan_pool, tare__plan_code_pool},
    {"mean", tare__plan_mean, tare__plan_code_mean},
    {"cat", tare__plan_cat, tare__plan_code_cat},
    {"batch_norm", tare__plan_batch_norm, tare__plan_code_batch_norm},
    {"quantized.batch_norm2d", NULL, tare__plan_code_batch_norm},
    {"quantized.batch_norm2d_relu", NULL, tare__plan_code_batch_norm},
    {"quantized.batch_norm3d", NULL, tare__plan_code_batch_norm},
    {"quantized.batch_norm3d_relu", NULL, tare__plan_code_batch_norm},
    {"embedding", NULL, tare__plan_embedding},
    {"embedding_bag", NULL, tare__plan_embedding_bag},
    {"interpolate", tare__plan_resize, tare__plan_code_resize},
    {"layer_norm", tare__plan_layer_norm, NULL},
    {"rms_norm", tare__plan_rms_norm, NULL},
    {"group_norm", tare__plan_group_norm, NULL},
    {"instance_norm", tare__plan_instance_norm, NULL},
    {"softmax", tare__plan_softmax, NULL},
    {"log_softmax", tare__plan_log_softmax, NULL},
    {"matmul", tare__plan_matmul, NULL},
    {"scaled_dot_product_attention", tare__plan_attention, NULL},
    {"quantized.cat", NULL, tare__plan_code_cat},
    {"quantized.softmax", NULL, tare__plan_code_softmax},
    {"quantized.matmul", NULL, tare__plan_code_matmul},
    {"quantized.matmul_float", NULL, tare__plan_code_matmul},
    {"quantized.scaled_dot_product_attention", NULL, tare__plan_attention},
    {NULL, NULL, NULL},
};

static const planner_row *row_of(const plan_record *r) {
    const planner_row *row = rows;
    while (row->op != NULL && strcmp(row->op, tare__record_op(r)) != 0) row++;
    return row;
}

chain_planner tare__plan_float_planner(const plan_record *r) {
    if (tare__plan_is_dynamic_layer(r)) return tare__plan_code_bands;
    const chain_planner planner = row_of(r)->plan;
    if (planner != NULL) return planner;
    return tare__plan_is_element(r) || tare__plan_is_binary(r) ? tare__plan_elements : NULL;
}

// --- codes ---

static bool has_codes(const tare_tensor *t) {
    return t->q != NULL && tare__is_byte_quantized(t);
}

// Modules are called with their input alone.
const tare_tensor *tare__plan_code_input(const plan_record *r) {
    const tare_tensor *bound = r->call.param_count > 0 ? tare__fast_input(&r->call, 0) : NULL;
    if (bound != NULL || r->call.module == NULL || r->call.arg_count == 0) return bound;
    return r->call.args[0].kind == VALUE_TENSOR ? r->call.args[0].as.tensor : NULL;
}

// Others compute with weights that are not their own.
static bool has_own_weights(const plan_record *r) {
    const module *m = r->call.module;
    return m == NULL || (m->class->role != ROLE_REFERENCE && m->class->role != ROLE_QAT);
}

chain_planner tare__plan_code_planner(const plan_builder *b, const plan_record *r) {
    if (r->result == NOTHING || r->is_observer || r->is_view) return NULL;
    if (tare__plan_is_dynamic_layer(r)) return tare__plan_code_bands;
    if (r->next != NOTHING && tare__plan_begins_bands(b, r)) return tare__plan_code_bands;
    if (tare__plan_is_code_layer(r)) return tare__plan_code_layer;
    if (tare__plan_is_choice(b, r)) return tare__plan_elements;
    const planner_row *row = row_of(r);
    if (row->codes != NULL) return has_own_weights(r) ? row->codes : NULL;
    const tare_tensor *x = tare__plan_code_input(r);
    const bool gives_codes = has_codes(b->values[r->result].tensor);
    return x != NULL && (gives_codes || has_codes(x)) ? tare__plan_codes : NULL;
}
