// SPDX-License-Identifier: Apache-2.0
// Copies elements with constant strides.
#include "ops/families/gather.h"

#include <string.h>

void tare__gather_dense(const tare_tensor *x, gather *g) {
    *g = (gather){.x = x, .ndim = x->ndim, .out_ndim = x->ndim};
    int64_t stride = 1;
    for (int d = x->ndim - 1; d >= 0; d--) {
        g->size[d] = g->out_shape[d] = x->shape[d];
        g->stride[d] = stride;
        stride *= x->shape[d];
    }
}

tare_status tare__gather_begin(op_call *call, gather *g) {
    const tare_tensor *x;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    // The axis of the channels would have to be mapped to the result.
    if (x->q != NULL && !tare__qscheme_is_per_tensor(x->q->scheme))
        return tare__call_fail(call, "has no form for tensors quantized per channel");
    tare__gather_dense(x, g);
    return TARE_OK;
}

tare_status tare__gather_reverse(op_call *call, gather *g) {
    TARE_TRY(tare__gather_begin(call, g));
    const gather dense = *g;
    for (int d = 0; d < g->ndim; d++) {
        g->size[d] = g->out_shape[d] = dense.size[g->ndim - 1 - d];
        g->stride[d] = dense.stride[g->ndim - 1 - d];
    }
    return TARE_OK;
}

void tare__gather_drop(gather *g, int d) {
    g->ndim--;
    memmove(&g->size[d], &g->size[d + 1], (size_t)(g->ndim - d) * sizeof g->size[0]);
    memmove(&g->stride[d], &g->stride[d + 1], (size_t)(g->ndim - d) * sizeof g->stride[0]);
}

// True if the box visits all elements of x in order.
static bool keeps_order(const gather *g) {
    int64_t expected = 1;
    for (int d = g->ndim - 1; d >= 0; d--) {
        if (g->size[d] != 1 && g->stride[d] != expected) return false;
        expected *= g->size[d];
    }
    return g->offset == 0 && expected == g->x->count;
}

tare_status tare__gather_meta(op_call *call, const gather *g, tare_tensor **out) {
    const tare_status status =
        keeps_order(g)
            ? tare__tensor_reshape(g->x, g->out_ndim, g->out_shape, out, call->err)
            : tare__tensor_meta(g->x->dtype, g->out_ndim, g->out_shape, g->x->q, out, call->err);
    return tare__call_at(call, status);
}

static void copy_run(const char *from, int64_t stride, int64_t count, size_t size, char *to) {
    if (stride == 1) {
        memcpy(to, from, (size_t)count * size);
        return;
    }
    for (int64_t i = 0; i < count; i++, to += size) {
        const char *element = from + i * stride * (int64_t)size;
        if (size == 4)
            memcpy(to, element, 4); // a fixed size becomes one move
        else
            memcpy(to, element, size);
    }
}

void tare__gather_run(const gather *g, tare_tensor *y) {
    const size_t size = tare_dtype_size(y->dtype);
    const int64_t run = g->ndim > 0 ? g->size[g->ndim - 1] : 1;
    const int64_t step = g->ndim > 0 ? g->stride[g->ndim - 1] : 1;
    char *to = y->data;
    for (int64_t at = 0; at < y->count; at += run, to += run * (int64_t)size) {
        int64_t rest = at / run, from = g->offset;
        for (int d = g->ndim - 2; d >= 0; d--) {
            from += rest % g->size[d] * g->stride[d];
            rest /= g->size[d];
        }
        copy_run((const char *)g->x->data + from * (int64_t)size, step, run, size, to);
    }
}

tare_status tare__gather_shape(op_call *call, gather_planner plan) {
    gather g;
    tare_tensor *t = NULL;
    TARE_TRY(plan(call, &g));
    TARE_TRY(tare__gather_meta(call, &g, &t));
    call->result = (value){.kind = VALUE_TENSOR, .as.tensor = t};
    return TARE_OK;
}

tare_status tare__gather_reference(op_call *call, gather_planner plan) {
    gather g;
    TARE_TRY(plan(call, &g));
    tare__gather_run(&g, tare__call_out(call));
    return TARE_OK;
}
