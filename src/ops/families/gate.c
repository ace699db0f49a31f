// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Gated linear units: one half of the input times the sigmoid of the other.
#include <string.h>

#include "core/math/elements.h"
#include "ops/families/families.h"
#include "ops/parts.h"
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

// Elements [first, end) of the result, within one pair of halves of `half` elements.
static void gate(const float *x, int64_t half, int64_t first, int64_t end, float *y) {
    float power[PART_BLOCK];
    for (int64_t at = first, count; at < end; at += count) {
        count = end - at < PART_BLOCK ? end - at : PART_BLOCK;
        for (int64_t i = 0; i < count; i++) power[i] = -x[half + at + i];
        f32_elements__scalar[ELEMENT_EXP](power, power, count, NULL);
        for (int64_t i = 0; i < count; i++) y[at + i] = x[at + i] / (1 + power[i]);
    }
}

static tare_status glu_part(op_call *call, int64_t first, int64_t end) {
    const tare_tensor *x;
    int dim;
    TARE_TRY(read_glu(call, &x, &dim));
    const int64_t half = tare__inner_count(x, dim) * (x->shape[dim] / 2);
    float *y = tare__f32(tare__call_out(call));
    for (int64_t i = first; i < end;) {
        const int64_t pair = i / half, next = (pair + 1) * half < end ? (pair + 1) * half : end;
        gate(tare__f32(x) + 2 * pair * half, half, i - pair * half, next - pair * half,
             y + pair * half);
        i = next;
    }
    return TARE_OK;
}

static tare_status glu_parts(op_call *call, call_parts *out) {
    return tare__element_parts(call, glu_part, out);
}

static tare_status glu_reference(op_call *call) {
    return tare__run_parts(call, glu_parts);
}

static const op_info rows[] = {
    {.id = "glu",
     .functions = "torch.nn.functional.glu|torch.ops.aten.glu.default",
     .params = "input/self|dim",
     .shape = glu_shape,
     .reference = glu_reference,
     .parts = glu_parts},
};

const op_table tare__gate_ops = OP_TABLE(rows);
