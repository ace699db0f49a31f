// SPDX-License-Identifier: Apache-2.0
// Quantize/dequantize boundaries: replaces quantize and dequantize on plain integers by those of
// quantized tensors, which carry their parameters.
#include <math.h>
#include <string.h>

#include "core/math/requant.h"
#include "flow/export/convert.h"
#include "flow/lower/export/lower.h"

enum { INPUT, SCALE, ZERO_POINT, QUANT_MIN, QUANT_MAX, DTYPE, ARGUMENT_COUNT };

typedef struct boundary {
    quantized_params params;
    int64_t quant_min, quant_max;
} boundary;

// The overload whose parameters are literals.
static bool is_call(const node *n, op_id id) {
    return tare__calls_overload(n, id, "default");
}

static bool number(const node *n, size_t i, double *out) {
    return n->arg_count == ARGUMENT_COUNT && tare__value_number(&n->args[i], out);
}

static tare_dtype quantized_dtype(const value *v) {
    if (v->kind != VALUE_DTYPE) return TARE_DTYPE_UNSET;
    return v->as.dtype == TARE_INT8    ? TARE_QINT8
           : v->as.dtype == TARE_UINT8 ? TARE_QUINT8
                                       : TARE_DTYPE_UNSET;
}

// Reads parameters that an 8-bit quantized tensor can have.
static bool read_boundary(const node *n, boundary *out) {
    double scale, zero_point, least, most;
    if (!number(n, SCALE, &scale) || !number(n, ZERO_POINT, &zero_point) ||
        !number(n, QUANT_MIN, &least) || !number(n, QUANT_MAX, &most))
        return false;
    const tare_dtype dtype = quantized_dtype(&n->args[DTYPE]);
    const dtype_info *info = tare__dtype(dtype);
    if (dtype == TARE_DTYPE_UNSET || !((float)scale > 0) || !isfinite((float)scale) ||
        !(zero_point >= (double)info->min && zero_point <= (double)info->max) ||
        !(least >= (double)info->min && most <= (double)info->max && least <= most))
        return false;
    *out = (boundary){.params = {.dtype = dtype, .scale = scale, .zero_point = (int64_t)zero_point},
                      .quant_min = (int64_t)least,
                      .quant_max = (int64_t)most};
    return true;
}

static bool agrees(const node *dequantize, const boundary *b) {
    boundary own;
    return is_call(dequantize, TARE_OP_DECOMPOSED_DEQUANTIZE_PER_TENSOR) &&
           dequantize->kwarg_count == 0 && read_boundary(dequantize, &own) &&
           tare__quantized_params_equal(&own.params, &b->params);
}

static bool is_pair(const node *n, boundary *out) {
    if (!is_call(n, TARE_OP_DECOMPOSED_QUANTIZE_PER_TENSOR) || n->kwarg_count > 0 ||
        !read_boundary(n, out))
        return false;
    for (size_t i = 0; i < n->user_count; i++)
        if (!agrees(n->users[i], out)) return false;
    return true;
}

// A quantized tensor uses the whole range of its dtype; a narrower range needs a clamp.
static tare_status narrow(lowering *l, node *quantize, const boundary *b, node **quantized) {
    const dtype_info *info = tare__dtype(b->params.dtype);
    if (b->quant_min == info->min && b->quant_max == info->max) return TARE_OK;
    const float scale = (float)b->params.scale;
    const value args[] = {tare__node_value(quantize),
                          tare__float(tare__dequantize(b->quant_min, b->params.zero_point, scale)),
                          tare__float(tare__dequantize(b->quant_max, b->params.zero_point, scale))};
    const op_name clamp = tare__op_function_name(tare__op_row(TARE_OP_CLAMP));
    const node_spec spec = {
        .op = NODE_CALL_FUNCTION, .target = clamp.text, .args = args, .arg_count = 3};
    TARE_TRY(tare__graph_insert(quantize->owner, &spec, quantize->next, quantized, l->p->err));
    (*quantized)->debug_handle = quantize->debug_handle;
    return tare__note_quantized(l, *quantized, &b->params);
}

static tare_status set_target(lowering *l, node *n, node_op op, op_name target) {
    const char *copy = tare__arena_strdup(&n->owner->memory, target.text);
    if (copy == NULL) return tare__out_of_memory(l->p->err);
    n->op = op;
    n->target = copy;
    return TARE_OK;
}

static tare_status become_quantize(lowering *l, node *n) {
    const op_info *op = tare__op_row(TARE_OP_QUANTIZE_PER_TENSOR);
    return set_target(l, n, NODE_CALL_FUNCTION, tare__op_function_name(op));
}

static tare_status become_dequantize(lowering *l, node *n) {
    const op_info *op = tare__op_row(TARE_OP_DEQUANTIZE);
    return set_target(l, n, NODE_CALL_METHOD, tare__op_method_name(op));
}

static tare_status requalify(lowering *l, node *quantize, const boundary *b) {
    tare_error *err = l->p->err;
    node *quantized = quantize;
    const value args[] = {quantize->args[INPUT], quantize->args[SCALE], quantize->args[ZERO_POINT],
                          tare__dtype_value(b->params.dtype)};
    TARE_TRY(become_quantize(l, quantize));
    TARE_TRY(tare__node_set_args(quantize, args, 4, NULL, 0, err));
    TARE_TRY(tare__note_quantized(l, quantize, &b->params));
    TARE_TRY(narrow(l, quantize, b, &quantized));
    // The clamp is a user of the quantize, too; a dequantize that moves to it leaves the list.
    for (size_t i = quantize->user_count; i-- > 0;) {
        node *n = quantize->users[i];
        if (n == quantized) continue;
        const value input = tare__node_value(quantized);
        TARE_TRY(become_dequantize(l, n));
        TARE_TRY(tare__node_set_args(n, &input, 1, NULL, 0, err));
    }
    return TARE_OK;
}

// --- constants ---

static tare_status quantized_of(lowering *l, const boundary *b, const tare_tensor *quantized,
                                tare_tensor **out) {
    qparams *q = tare__qparams_per_tensor(b->params.dtype, b->params.scale, b->params.zero_point);
    if (q == NULL) return tare__out_of_memory(l->p->err);
    const tare_status status = tare__tensor_requalify(quantized, q, out, l->p->err);
    tare__qparams_release(q);
    return status;
}

tare_status tare__own_buffer(lowering *l, const char *base, tare_tensor *t, const char **name) {
    module *root = l->p->model->root;
    size_t number = 0;
    *name = tare__module_free_name(root, &root->graph->memory, base, &number);
    if (*name == NULL) return tare__out_of_memory(l->p->err);
    return tare__module_set_tensor(root, *name, t, false, l->p->err);
}

tare_status tare__lower_constant(lowering *l, node *n) {
    boundary b;
    const node *read = tare__node_arg(n, 0);
    if (!is_call(n, TARE_OP_DECOMPOSED_DEQUANTIZE_PER_TENSOR) || n->kwarg_count > 0 ||
        n->user_count != 1 || !read_boundary(n, &b) || read == NULL || read->op != NODE_GET_ATTR)
        return TARE_OK;
    const tare_tensor *quantized = tare__module_find_tensor(l->p->model->root, read->target);
    tare_tensor *t = NULL;
    node *made = NULL;
    const char *name = NULL;
    if (quantized == NULL || quantized->dtype != tare__dtype(b.params.dtype)->storage)
        return TARE_OK;
    TARE_TRY(quantized_of(l, &b, quantized, &t));
    const tare_status status = tare__own_buffer(l, "_quantized_constant_", t, &name);
    tare_tensor_release(t);
    TARE_TRY(status);
    const node_spec spec = {.op = NODE_GET_ATTR, .target = name};
    TARE_TRY(tare__graph_insert(n->owner, &spec, n, &made, l->p->err));
    TARE_TRY(tare__note_quantized(l, made, &b.params));
    const value input = tare__node_value(made);
    TARE_TRY(become_dequantize(l, n));
    return tare__node_set_args(n, &input, 1, NULL, 0, l->p->err);
}

tare_status tare__pt2e_lower_boundaries(lowering *l) {
    for (node *n = l->p->model->root->graph->first; n != NULL; n = n->next) {
        boundary b;
        if (is_pair(n, &b)) TARE_TRY(requalify(l, n, &b));
    }
    return TARE_OK;
}
