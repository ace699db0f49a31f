// SPDX-License-Identifier: Apache-2.0
// Operators that only clamp values, as clamps of quantized values, and layers that clamp their
// results.
#include <math.h>

#include "core/math/requant.h"
#include "flow/lower/export/lower.h"

// A bound by its parameter's name, as a quantized value; the end of the range if it is not given.
static bool read_bound(const function_call *call, const char *name, double otherwise, double *out) {
    const value *v = tare__function_argument(call, name);
    *out = otherwise;
    return v == NULL || v->kind == VALUE_NONE || tare__value_number(v, out);
}

static bool read_bounds(const function_call *call, double *least, double *most) {
    const op_id id = tare__op_id(call->bound.op);
    *least = 0;
    *most = id == TARE_OP_RELU6 ? 6 : INFINITY;
    if (id == TARE_OP_RELU || id == TARE_OP_RELU6) return true;
    if (id == TARE_OP_HARDTANH)
        return read_bound(call, "min_val", -1, least) && read_bound(call, "max_val", 1, most);
    if (id != TARE_OP_CLAMP) return false;
    return read_bound(call, "min", -INFINITY, least) && read_bound(call, "max", INFINITY, most);
}

bool tare__quantized_bounds(lowering *l, node *bound, const quantized_params *params,
                            int64_t *least, int64_t *most) {
    const dtype_info *info = tare__dtype(params->dtype);
    function_call call;
    double low, high;
    if (bound->input_count != 1 || !tare__function_bind(&l->p->scratch, bound, &call) ||
        !read_bounds(&call, &low, &high))
        return false;
    const float inverse = tare__inverse_scale(params->scale);
    *least = tare__quantize((float)low, inverse, params->zero_point, info->min, info->max);
    *most = tare__quantize((float)high, inverse, params->zero_point, info->min, info->max);
    return *least <= *most;
}

// --- layers ---

typedef struct search {
    const lowering *l;
    module *packed;
} search;

static void look(void *user, node *input) {
    search *s = user;
    module *m =
        input->op == NODE_GET_ATTR ? tare__module_find(s->l->p->model->root, input->target) : NULL;
    if (m != NULL && m->class->role == ROLE_PACKED) s->packed = m;
}

static module *packed_of(const lowering *l, const node *n) {
    search s = {.l = l};
    if (n != NULL && n->op == NODE_CALL_FUNCTION) tare__node_each_input(n, look, &s);
    return s.packed;
}

static tare_status set_bound(lowering *l, module *packed, const char *key, int64_t code) {
    const value v = tare__int(code);
    return tare__module_set_config(packed, key, &v, l->p->err);
}

static tare_status bound_layer(lowering *l, node *bound) {
    node *layer = tare__node_arg(bound, 0);
    const quantized_params *params = tare__quantized_given(l, bound),
                           *own = tare__quantized_given(l, layer);
    module *packed = packed_of(l, layer);
    int64_t least, most;
    if (params == NULL || own == NULL || packed == NULL || layer->user_count != 1 ||
        !tare__quantized_params_equal(params, own) ||
        !tare__quantized_bounds(l, bound, params, &least, &most) || least > params->zero_point ||
        most < params->zero_point)
        return TARE_OK;
    const int64_t low = tare__module_int(packed, "code_min", INT8_MIN);
    const int64_t high = tare__module_int(packed, "code_max", UINT8_MAX);
    TARE_TRY(set_bound(l, packed, "code_min", least > low ? least : low));
    TARE_TRY(set_bound(l, packed, "code_max", most < high ? most : high));
    return tare__absorb_relu(l->p, bound, layer);
}

tare_status tare__pt2e_bound_layers(lowering *l) {
    for (node *n = l->p->model->root->graph->first, *next; n != NULL; n = next) {
        next = n->next;
        TARE_TRY(bound_layer(l, n));
    }
    return TARE_OK;
}
