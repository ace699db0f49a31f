// SPDX-License-Identifier: Apache-2.0
// Products of two tensors of quantized bytes, as sums of integers.
#include <string.h>

#include "ops/families/families.h"
#include "ops/layer_call.h"
#include "ops/quantized/layer.h"
#include "ops/rules.h"

bool tare__matmul_is_of_quantized(const op_call *call) {
    return call->op != NULL && (strcmp(call->op->id, "quantized.matmul") == 0 ||
                                strcmp(call->op->id, "quantized.matmul_float") == 0);
}

quantized_matmul tare__quantized_matmul_of(const matmul_call *m) {
    const qparams *a = m->a->q, *b = m->b->q;
    return (quantized_matmul){
        .factor = (float)(a->scale[0] * b->scale[0]),
        .a_zero = (int32_t)a->zero_point[0] - tare__signed_shift(m->a),
        .b_zero = (int32_t)b->zero_point[0] - tare__signed_shift(m->b),
    };
}

static int32_t quantized_at(const tare_tensor *t, int64_t i) {
    return (int8_t)(((const uint8_t *)t->data)[i] ^ tare__signed_shift(t));
}

static float element(const matmul_call *m, const quantized_matmul *c, int64_t a, int64_t b) {
    int64_t sum = 0, own = 0;
    for (int64_t k = 0; k < m->inner; k++) {
        const int32_t q = quantized_at(m->a, a + k) - c->a_zero;
        sum += (int64_t)q * quantized_at(m->b, b + k * m->columns);
        own += q;
    }
    const float offset = (float)tare__wrap_int32(c->b_zero * own) * c->factor;
    return (float)tare__wrap_int32(sum) * c->factor - offset;
}

static void store(tare_tensor *y, int64_t i, float real) {
    if (y->q == NULL) {
        tare__f32(y)[i] = real;
        return;
    }
    const int64_t q =
        tare__quantize(real, tare__inverse_scale(y->q->scale[0]), (int64_t)y->q->zero_point[0],
                       y->q->quant_min, y->q->quant_max);
    ((uint8_t *)y->data)[i] = (uint8_t)q;
}

tare_status tare__quantized_matmul_compute(op_call *call) {
    matmul_call m;
    TARE_TRY(tare__matmul_read(call, &m));
    const quantized_matmul c = tare__quantized_matmul_of(&m);
    tare_tensor *y = tare__call_out(call);
    for (int64_t i = 0; i < y->count; i++) {
        const int64_t matrix = i / m.columns / m.rows;
        const int64_t a = tare__strided_offset(m.batch_ndim, m.batch, m.a_stride, matrix);
        const int64_t b = tare__strided_offset(m.batch_ndim, m.batch, m.b_stride, matrix);
        const int64_t row = a * m.rows + i / m.columns % m.rows;
        store(y, i, element(&m, &c, row * m.inner, b * m.inner * m.columns + i % m.columns));
    }
    return TARE_OK;
}

static tare_status float_shape(op_call *call) {
    matmul_call m;
    TARE_TRY(tare__matmul_read(call, &m));
    return tare__matmul_result(call, &m);
}

// A function of tare's own with a float result, for matmuls that a float operator follows.
static const op_info rows[] = {
    {.id = "quantized.matmul_float",
     .functions = "torch.ops.tare.matmul_float",
     .params = "input|other",
     .traits = OP_ANY_DTYPE,
     .quantized_inputs = 2,
     .shape = float_shape,
     .reference = tare__quantized_matmul_compute,
     .macs = tare__matmul_macs},
};

const op_table tare__quantized_matmul_ops = OP_TABLE(rows);
