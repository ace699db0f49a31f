// SPDX-License-Identifier: Apache-2.0
// torch.where: elements of one tensor or another, as a condition says.
#include <string.h>

#include "ops/families/arithmetic.h"
#include "ops/families/families.h"
#include "ops/rules.h"

typedef struct choice {
    const tare_tensor *condition;
    operand side[2]; // where it holds, and where not
    tare_dtype dtype;
    int ndim;
    int64_t shape[TARE_MAX_DIMS];
} choice;

static tare_status read_choice(op_call *call, choice *c) {
    tare_tensor both = {0};
    const tare_tensor scalar = {0};
    TARE_TRY(tare__call_need_tensor(call, 0, &c->condition));
    if (c->condition->dtype != TARE_BOOL && c->condition->dtype != TARE_UINT8)
        return tare__call_fail(call, "condition must be torch.bool, found %s",
                               tare_dtype_name(c->condition->dtype));
    for (size_t i = 0; i < 2; i++) TARE_TRY(tare__read_operand(call, i + 1, &c->side[i]));
    c->dtype = tare__common_dtype(c->side);
    if (c->dtype == TARE_DTYPE_UNSET)
        c->dtype = c->side[0].is_float || c->side[1].is_float ? TARE_FLOAT32
                   : c->side[0].is_bool && c->side[1].is_bool ? TARE_BOOL
                                                              : TARE_INT64;
    TARE_TRY(tare__broadcast(call, c->side[0].t != NULL ? c->side[0].t : &scalar,
                             c->side[1].t != NULL ? c->side[1].t : &scalar, &both.ndim,
                             both.shape));
    return tare__broadcast(call, c->condition, &both, &c->ndim, c->shape);
}

static tare_status where_shape(op_call *call) {
    choice c;
    TARE_TRY(read_choice(call, &c));
    return tare__call_result(call, c.dtype, c.ndim, c.shape, NULL);
}

static tare_status where_reference(op_call *call) {
    choice c;
    const tare_tensor scalar = {0};
    int64_t stride[3][TARE_MAX_DIMS];
    TARE_TRY(read_choice(call, &c));
    tare_tensor *y = tare__call_out(call);
    for (int i = 0; i < 2; i++)
        tare__broadcast_strides(c.side[i].t != NULL ? c.side[i].t : &scalar, c.ndim, c.shape,
                                stride[i]);
    tare__broadcast_strides(c.condition, c.ndim, c.shape, stride[2]);
    const size_t size = tare_dtype_size(y->dtype);
    for (int64_t i = 0; i < y->count; i++) {
        const int64_t at = tare__strided_offset(c.ndim, c.shape, stride[2], i);
        const int chosen = ((const uint8_t *)c.condition->data)[at] != 0 ? 0 : 1;
        const operand *from = &c.side[chosen];
        const int64_t k = tare__strided_offset(c.ndim, c.shape, stride[chosen], i);
        if (from->t != NULL && from->t->dtype == y->dtype)
            memcpy((char *)y->data + (size_t)i * size,
                   (const char *)from->t->data + (size_t)k * size, size);
        else
            tare__tensor_set(y, i, tare__operand_at(from, k));
    }
    return TARE_OK;
}

static const op_info rows[] = {
    {.id = "where",
     .functions = "torch.where|torch.ops.aten.where.self|torch.ops.aten.where.ScalarOther",
     .params = "condition|input/self|other",
     .traits = OP_ELEMENTWISE,
     .shape = where_shape,
     .reference = where_reference},
};

const op_table tare__where_ops = OP_TABLE(rows);
