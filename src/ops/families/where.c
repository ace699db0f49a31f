// SPDX-License-Identifier: Apache-2.0
// build: -O3
// torch.where: selects elements of one tensor or another by a condition.
#include "ops/families/arithmetic.h"
#include "ops/families/families.h"
#include "ops/parts.h"
#include "ops/rules.h"

typedef struct choice {
    const tare_tensor *condition;
    operand side[2]; // selected if the condition is true, and if it is false
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

// Selects along a run of elements of one size. from and step: of both operands, and step[2] of the
// condition.
#define CHOOSE(type)                                                                               \
    for (int64_t k = 0; k < count; k++)                                                            \
        ((type *)to)[k] = condition[k * step[2]] != 0 ? ((const type *)from[0])[k * step[0]]       \
                                                      : ((const type *)from[1])[k * step[1]];

static void choose(size_t size, const uint8_t *condition, const void *const from[2],
                   const int64_t *step, int64_t count, void *to) {
    switch (size) {
    case 1:
        CHOOSE(uint8_t) break;
    case 2:
        CHOOSE(uint16_t) break;
    case 4:
        CHOOSE(uint32_t) break;
    default:
        CHOOSE(uint64_t) break;
    }
}

// The data of an operand in the result's dtype, converted if necessary.
static tare_status side_of(op_call *call, const operand *side, const tare_tensor *y,
                           const char **out) {
    *out = side->t != NULL ? side->t->data : NULL;
    if (side->t != NULL && side->t->dtype == y->dtype) return TARE_OK;
    tare_tensor converted = {.dtype = y->dtype, .count = side->t != NULL ? side->t->count : 1};
    const size_t bytes = ((size_t)converted.count + 1) * tare_dtype_size(y->dtype);
    converted.data = tare__arena_array(call->memory, bytes, 1);
    if (converted.data == NULL) return tare__out_of_memory(call->err);
    for (int64_t i = 0; i < converted.count; i++)
        tare__tensor_set(&converted, i, tare__operand_at(side, i));
    *out = converted.data;
    return TARE_OK;
}

// Computes elements [first, end) of the result.
static tare_status where_part(op_call *call, int64_t first, int64_t end) {
    choice c;
    const char *side[2];
    TARE_TRY(read_choice(call, &c));
    tare_tensor *y = tare__call_out(call);
    for (int i = 0; i < 2; i++) TARE_TRY(side_of(call, &c.side[i], y, &side[i]));
    const walk w = tare__walk((const tare_tensor *[]){c.side[0].t, c.side[1].t, c.condition}, 3,
                              c.ndim, c.shape);
    const size_t size = tare_dtype_size(y->dtype);
    for (int64_t at = first, count; at < end; at += count) {
        int64_t offset[3] = {0};
        count = tare__walk_at(&w, at, end, offset);
        choose(size, (const uint8_t *)c.condition->data + offset[2],
               (const void *[]){side[0] + (size_t)offset[0] * size,
                                side[1] + (size_t)offset[1] * size},
               w.step, count, (char *)y->data + (size_t)at * size);
    }
    return TARE_OK;
}

static bool needs_conversion(const operand *side, const tare_tensor *y) {
    return side->t != NULL && side->t->dtype != y->dtype;
}

// A tensor of another dtype is converted as a whole.
static tare_status where_parts(op_call *call, call_parts *out) {
    choice c;
    const tare_tensor *y = tare__call_out(call);
    TARE_TRY(read_choice(call, &c));
    if (needs_conversion(&c.side[0], y) || needs_conversion(&c.side[1], y)) return TARE_OK;
    return tare__element_parts(call, where_part, out);
}

static tare_status where_reference(op_call *call) {
    return where_part(call, 0, tare__call_out(call)->count);
}

static const op_info rows[] = {
    {.id = "where",
     .functions = "torch.where|torch.ops.aten.where.self|torch.ops.aten.where.ScalarOther|"
                  "torch.ops.aten.where.ScalarSelf|torch.ops.aten.where.Scalar",
     .params = "condition|input/self|other",
     .traits = OP_ELEMENTWISE,
     .shape = where_shape,
     .reference = where_reference,
     .parts = where_parts},
};

const op_table tare__where_ops = OP_TABLE(rows);
