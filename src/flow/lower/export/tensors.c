// SPDX-License-Identifier: Apache-2.0
// Quantized tensors in models that are already quantized: finds their parameters, and gives all of
// them one dtype, because integer operators do not mix dtypes.
#include "flow/lower/export/lower.h"

enum { SHIFT = 128 }; // between quint8 and qint8

static bool is_byte(tare_dtype dtype) {
    return dtype == TARE_QINT8 || dtype == TARE_QUINT8;
}

// torch.quantize_per_tensor with numbers.
static bool read_quantize(const node *n, quantized_params *out) {
    double scale, zero_point;
    if (!tare__is_quantize_node(n) || n->arg_count != 4 || n->kwarg_count > 0 ||
        !tare__value_number(&n->args[1], &scale) || !tare__value_number(&n->args[2], &zero_point) ||
        n->args[3].kind != VALUE_DTYPE || !is_byte(n->args[3].as.dtype))
        return false;
    const dtype_info *info = tare__dtype(n->args[3].as.dtype);
    if (!((float)scale > 0) ||
        !(zero_point >= (double)info->min && zero_point <= (double)info->max))
        return false;
    *out = (quantized_params){n->args[3].as.dtype, scale, (int64_t)zero_point};
    return true;
}

static const tare_tensor *constant_of(const lowering *l, const node *n) {
    return n->op == NODE_GET_ATTR ? tare__module_find_tensor(l->p->model->root, n->target) : NULL;
}

static bool read_constant(const lowering *l, const node *n, quantized_params *out) {
    const tare_tensor *t = constant_of(l, n);
    if (t == NULL || t->q == NULL || !is_byte(t->dtype) || t->q->count != 1 ||
        !tare__qscheme_is_per_tensor(t->q->scheme))
        return false;
    *out = (quantized_params){t->dtype, t->q->scale[0], (int64_t)t->q->zero_point[0]};
    return true;
}

// Operators that only move quantized values, or return maxima or means, keep the parameters.
static bool read_kept(const lowering *l, const node *n, quantized_params *out) {
    const op_info *op = tare__node_row(n);
    const quantized_params *from = tare__quantized_given(l, tare__node_arg(n, 0));
    if (from == NULL || !tare__op_has(op, OP_MOVES_DATA | OP_KEEPS_QPARAMS) ||
        tare__op_has(op, OP_NOT_ON_TENSORS) || tare__op_id(op) == TARE_OP_GETITEM)
        return false;
    *out = *from;
    return true;
}

// --- one dtype ---

static bool is_weight(const lowering *l, const node *constant) {
    for (size_t i = 0; i < constant->user_count; i++) {
        const node *dequantize = constant->users[i];
        for (size_t k = 0; k < dequantize->user_count; k++) {
            function_call w;
            if (tare__weighted_bind(&l->p->scratch, dequantize->users[k], &w) &&
                tare__function_argument_node(&w, "weight") == dequantize)
                return true;
        }
    }
    return false;
}

// True if an operator reads the integers themselves.
static bool is_seen(const lowering *l, const node *n) {
    for (size_t i = 0; i < n->user_count; i++)
        if (!tare__is_dequantize_node(n->users[i]) && tare__quantized_given(l, n->users[i]) == NULL)
            return true;
    return false;
}

// The dtype that all quantized tensors can have; unset: they stay as they are.
static tare_dtype common_dtype(const lowering *l) {
    tare_dtype found = TARE_DTYPE_UNSET;
    for (const node *n = l->p->model->root->graph->first; n != NULL; n = n->next) {
        const quantized_params *params = tare__quantized_given(l, n);
        if (params == NULL) continue;
        if (is_seen(l, n)) return TARE_DTYPE_UNSET;
        if (n->op == NODE_GET_ATTR) continue;
        const bool differs = found != TARE_DTYPE_UNSET && found != params->dtype;
        found = differs ? TARE_QUINT8 : params->dtype;
    }
    return found;
}

static tare_status shift_constant(lowering *l, node *n, const quantized_params *to) {
    const tare_tensor *from = constant_of(l, n);
    const int64_t shift = to->dtype == TARE_QUINT8 ? SHIFT : -SHIFT;
    tare_tensor *made = NULL;
    const char *name = NULL;
    qparams *q = tare__qparams_per_tensor(to->dtype, to->scale, to->zero_point);
    if (q == NULL) return tare__out_of_memory(l->p->err);
    tare_status status = tare__tensor_quantized(from->ndim, from->shape, q, &made, l->p->err);
    tare__qparams_release(q);
    TARE_TRY(status);
    for (int64_t i = 0; i < from->count; i++)
        tare__tensor_set_int(made, i, tare__tensor_get_int(from, i) + shift);
    status = tare__own_buffer(l, "_quantized_constant_", made, &name);
    tare_tensor_release(made);
    if (status == TARE_OK) n->target = name;
    return status;
}

static tare_status shift_quantize(lowering *l, node *n, const quantized_params *to) {
    const value args[] = {n->args[0], n->args[1], tare__int(to->zero_point),
                          tare__dtype_value(to->dtype)};
    return tare__node_set_args(n, args, 4, NULL, 0, l->p->err);
}

static tare_status change_dtype(lowering *l, node *n, tare_dtype dtype) {
    const quantized_params *from = tare__quantized_given(l, n);
    if (from == NULL || from->dtype == dtype) return TARE_OK;
    if (n->op == NODE_GET_ATTR && is_weight(l, n)) return TARE_OK;
    quantized_params to = *from;
    to.dtype = dtype;
    to.zero_point += dtype == TARE_QUINT8 ? SHIFT : -SHIFT;
    if (n->op == NODE_GET_ATTR)
        TARE_TRY(shift_constant(l, n, &to));
    else if (tare__is_quantize_node(n))
        TARE_TRY(shift_quantize(l, n, &to));
    return tare__note_quantized(l, n, &to);
}

// In a program that convert made, quantized tensors belong to the network itself.
static bool is_converted(const graph *g) {
    for (const node *n = g->first; n != NULL; n = n->next)
        if (tare__calls_overload(n, TARE_OP_DECOMPOSED_QUANTIZE_PER_TENSOR, "default")) return true;
    return false;
}

tare_status tare__pt2e_lower_tensors(lowering *l) {
    graph *g = l->p->model->root->graph;
    if (is_converted(g)) return TARE_OK;
    for (node *n = g->first; n != NULL; n = n->next) {
        quantized_params params;
        const bool is_quantize = read_quantize(n, &params);
        l->has_tensors = l->has_tensors || is_quantize;
        if (is_quantize || read_constant(l, n, &params) || read_kept(l, n, &params))
            TARE_TRY(tare__note_quantized(l, n, &params));
    }
    const tare_dtype dtype = common_dtype(l);
    if (dtype == TARE_DTYPE_UNSET) return TARE_OK;
    for (node *n = g->first; n != NULL; n = n->next) TARE_TRY(change_dtype(l, n, dtype));
    return TARE_OK;
}
