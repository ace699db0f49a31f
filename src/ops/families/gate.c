// SPDX-License-Identifier: Apache-2.0
// Gated linear units: one half of the input times the sigmoid of the other.
#include <string.h>

#include "core/math/f32.h"
#include "ops/families/families.h"
#include "ops/rules.h"

static tare_status read_glu(op_call *call, const tare_tensor **x, int *dim) {
    TARE_TRY(tare__need_float(call, 0, x));
    TARE_TRY(tare__call_dim(call, 1, -1, (*x)->ndim, dim));
    if ((*x)->ndim > 0 && (*x)->shape[*dim] % 2 == 0) return TARE_OK;
    return tare__call_fail(call, "input of shape %s has no halves",
                           tare__call_shape_text(call, *x));
}

static tare_status glu_shape(op_call *call) {
    const tare_tensor *x;
    int dim;
    int64_t shape[TARE_MAX_DIMS];
    TARE_TRY(read_glu(call, &x, &dim));
    memcpy(shape, x->shape, sizeof shape);
    shape[dim] /= 2;
    return tare__call_result(call, TARE_FLOAT32, x->ndim, shape, NULL);
}

static tare_status glu_reference(op_call *call) {
    const tare_tensor *x;
    int dim;
    TARE_TRY(read_glu(call, &x, &dim));
    const int64_t half = tare__inner_count(x, dim) * (x->shape[dim] / 2);
    const float *from = tare__f32(x);
    float *y = tare__f32(tare__call_out(call));
    for (int64_t at = 0; at < x->count; at += 2 * half, y += half)
        for (int64_t i = 0; i < half; i++)
            y[i] = from[at + i] / (1 + tare__expf(-from[at + half + i]));
    return TARE_OK;
}

static const op_info rows[] = {
    {.id = "glu",
     .functions = "torch.nn.functional.glu|torch.ops.aten.glu.default",
     .params = "input/self|dim",
     .shape = glu_shape,
     .reference = glu_reference},
};

const op_table tare__gate_ops = OP_TABLE(rows);
