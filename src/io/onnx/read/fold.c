// SPDX-License-Identifier: Apache-2.0
// Calls on open constants: for each element of the result, which element of an argument it is, or
// how it is computed.
#include <string.h>

#include "io/onnx/read/rules_common.h"
#include "io/onnx/read/sizes.h"
#include "ops/rules.h"

// --- moving elements ---
//
// To find where elements come from, the call runs once more on their indices in a table of all
// entries.

typedef struct entry_table {
    value *items;
    size_t count, capacity;
} entry_table;

static int64_t count_elements(const value *v) {
    int64_t count = v->kind == VALUE_TENSOR ? v->as.tensor->count : 0;
    if (tare__value_has_items(v))
        for (uint32_t i = 0; i < v->count; i++) count += count_elements(&v->as.items[i]);
    return count;
}

// Copies v with the elements of tensors replaced by their indices in the table. The caller releases
// the tensors.
static tare_status number_elements(onnx_call *c, const value *v, entry_table *table, value *out) {
    *out = *v;
    if (v->kind == VALUE_TENSOR) {
        const tare_tensor *t = v->as.tensor;
        tare_tensor *made = NULL;
        TARE_TRY(tare_tensor_create(TARE_INT64, t->ndim, t->shape, &made, c->in->err));
        for (int64_t i = 0; i < t->count; i++) {
            tare__tensor_set_int(made, i, (int64_t)table->count);
            table->items[table->count++] = tare__onnx_entry(c->in, t, i);
        }
        out->as.tensor = made;
        return TARE_OK;
    }
    if (!tare__value_has_items(v)) return TARE_OK;
    *out = tare__value_sequence(&c->scratch, v->kind, v->count);
    if (out->as.items == NULL && v->count > 0) return tare__out_of_memory(c->in->err);
    for (uint32_t i = 0; i < v->count; i++) out->as.items[i] = tare__none();
    for (uint32_t i = 0; i < v->count; i++)
        TARE_TRY(number_elements(c, &v->as.items[i], table, &out->as.items[i]));
    return TARE_OK;
}

static tare_status take_entries(onnx_call *c, const value *folded, const value *moved,
                                const entry_table *table) {
    if (folded->kind == VALUE_TENSOR) {
        tare_tensor *t = folded->as.tensor;
        const tare_tensor *from = moved->as.tensor;
        value *entries = tare__arena_array(&c->in->memory, (size_t)t->count + 1, sizeof *entries);
        if (entries == NULL) return tare__out_of_memory(c->in->err);
        for (int64_t i = 0; i < t->count; i++)
            entries[i] = table->items[tare__tensor_get_int(from, i)];
        return tare__onnx_set_entries(c, t, entries);
    }
    if (!tare__value_has_items(folded)) return TARE_OK;
    for (uint32_t i = 0; i < folded->count; i++)
        TARE_TRY(take_entries(c, &folded->as.items[i], &moved->as.items[i], table));
    return TARE_OK;
}

static tare_status run_moved(onnx_call *c, const op_info *op, const onnx_emit *e, value *args,
                             const entry_table *table, const value *folded) {
    op_call call = {.node_name = e->target,
                    .memory = &c->scratch,
                    .thread_count = 1,
                    .args = args,
                    .arg_count = e->arg_count,
                    .kwargs = e->kwargs,
                    .kwarg_count = e->kwarg_count,
                    .err = c->in->err};
    TARE_TRY(tare__call_bind(&call, op));
    TARE_TRY(tare__op_shape(&call));
    tare_status status = TARE_OK;
    if (!tare__value_has_data(&call.result)) {
        status = tare__call_allocate(&call);
        if (status == TARE_OK) status = tare__op_compute(&call);
    }
    if (status == TARE_OK) status = take_entries(c, folded, &call.result, table);
    tare__value_release_tensors(&call.result);
    return status;
}

static tare_status move_entries(onnx_call *c, const op_info *op, const onnx_emit *e,
                                const value *folded, bool *done) {
    entry_table table = {0};
    value *args = tare__arena_array(&c->scratch, e->arg_count + 1, sizeof *args);
    table.items = tare__arena_array(&c->scratch, (size_t)count_elements(&e->args[0]) + 1,
                                    sizeof *table.items);
    if (args == NULL || table.items == NULL) return tare__out_of_memory(c->in->err);
    memcpy(args, e->args, e->arg_count * sizeof *args);
    for (size_t i = 1; i < e->arg_count; i++)
        if (tare__onnx_holds_open(c->in, &args[i])) return TARE_OK;
    value numbered = tare__none();
    tare_status status = number_elements(c, &e->args[0], &table, &numbered);
    args[0] = numbered;
    if (status == TARE_OK) status = run_moved(c, op, e, args, &table, folded);
    tare__value_release_tensors(&numbered);
    *done = status == TARE_OK;
    return status;
}

// --- computing with elements ---

// How one element is computed. A NULL target: by a function below.
static const struct {
    op_id op;
    const char *target;
    size_t operands;
} arithmetic[] = {
    {TARE_OP_ADD, "operator.add", 2},
    {TARE_OP_SUB, "operator.sub", 2},
    {TARE_OP_MUL, "operator.mul", 2},
    {TARE_OP_DIV, "operator.truediv", 2},
    {TARE_OP_FLOOR_DIVIDE, "operator.floordiv", 2},
    {TARE_OP_REMAINDER, "operator.mod", 2},
    {TARE_OP_MAXIMUM, "torch.sym_max", 2},
    {TARE_OP_MINIMUM, "torch.sym_min", 2},
    {TARE_OP_EQ, "operator.eq", 2},
    {TARE_OP_NE, "operator.ne", 2},
    {TARE_OP_LT, "operator.lt", 2},
    {TARE_OP_LE, "operator.le", 2},
    {TARE_OP_GT, "operator.gt", 2},
    {TARE_OP_GE, "operator.ge", 2},
    {TARE_OP_NEG, "operator.neg", 1},
    {TARE_OP_FLOOR, "math.floor", 1},
    {TARE_OP_CEIL, "math.ceil", 1},
    {TARE_OP_SQRT, "math.sqrt", 1},
    {TARE_OP_TO, NULL, 1},
    {TARE_OP_WHERE, NULL, 3},
};
enum { ARITHMETIC_COUNT = sizeof arithmetic / sizeof *arithmetic };

typedef struct element_call {
    onnx_call *c;
    op_id op;
    const char *target;
    bool truncates;      // a division of ints
    tare_dtype from, to; // dtypes of the first operand and of the result
    bool is_known;       // false: the graph must compute it
} element_call;

// ONNX divides integers as C does, toward zero.
static tare_status divide(element_call *e, const value *args, value *out) {
    onnx_import *in = e->c->in;
    if (!e->truncates) return tare__onnx_scalar(e->c, e->target, args, 2, out);
    if (tare__onnx_least(in, &args[0]) >= 0 && tare__onnx_least(in, &args[1]) >= 1)
        return tare__onnx_scalar(e->c, "operator.floordiv", args, 2, out);
    TARE_TRY(tare__onnx_scalar(e->c, "operator.truediv", args, 2, out));
    return tare__onnx_scalar(e->c, "math.trunc", out, 1, out);
}

static tare_status convert(element_call *e, const value *v, value *out) {
    const bool was_float = tare__dtype(e->from)->is_float;
    const bool is_float = tare__dtype(e->to)->is_float;
    *out = *v;
    if (e->to == TARE_BOOL || e->from == TARE_BOOL) return e->is_known = false, TARE_OK;
    if (was_float == is_float) return TARE_OK;
    return tare__onnx_scalar(e->c, is_float ? "torch.sym_float" : "math.trunc", v, 1, out);
}

// floor and ceil of floats give floats in ONNX.
static tare_status round_element(element_call *e, const value *v, value *out) {
    TARE_TRY(tare__onnx_scalar(e->c, e->target, v, 1, out));
    return tare__onnx_scalar(e->c, "torch.sym_float", out, 1, out);
}

static tare_status compute_element(element_call *e, const value *args, size_t count, value *out) {
    switch (e->op) {
    case TARE_OP_DIV:
        return divide(e, args, out);
    case TARE_OP_TO:
        return convert(e, args, out);
    case TARE_OP_FLOOR:
    case TARE_OP_CEIL:
        return round_element(e, args, out);
    case TARE_OP_WHERE:
        e->is_known = args[0].kind == VALUE_BOOL || tare__onnx_same_size(e->c, &args[1], &args[2]);
        *out = args[args[0].kind == VALUE_BOOL && !args[0].as.boolean ? 2 : 1];
        return TARE_OK;
    default:
        return tare__onnx_scalar(e->c, e->target, args, count, out);
    }
}

static tare_status fill_entries(element_call *e, const onnx_emit *call, size_t operands,
                                const tare_tensor *y, value *entries) {
    int64_t strides[3][TARE_MAX_DIMS];
    for (size_t k = 0; k < operands; k++)
        if (call->args[k].kind == VALUE_TENSOR)
            tare__broadcast_strides(call->args[k].as.tensor, y->ndim, y->shape, strides[k]);
    for (int64_t i = 0; i < y->count && e->is_known; i++) {
        value args[3];
        bool is_open = false;
        for (size_t k = 0; k < operands; k++) {
            args[k] = call->args[k];
            if (args[k].kind == VALUE_TENSOR)
                args[k] = tare__onnx_entry(e->c->in, args[k].as.tensor,
                                           tare__strided_offset(y->ndim, y->shape, strides[k], i));
            is_open |= args[k].kind == VALUE_NODE;
        }
        entries[i] = tare__onnx_entry(e->c->in, y, i);
        if (is_open) TARE_TRY(compute_element(e, args, operands, &entries[i]));
    }
    return TARE_OK;
}

static bool reads_keywords(const onnx_emit *e, element_call *call) {
    for (size_t i = 0; i < e->kwarg_count; i++) {
        const bool is_mode = call->op == TARE_OP_DIV &&
                             strcmp(e->kwargs[i].name, "rounding_mode") == 0 &&
                             e->kwargs[i].value.kind == VALUE_STRING &&
                             strcmp(e->kwargs[i].value.as.text, "trunc") == 0;
        if (!is_mode) return false;
        call->truncates = true;
    }
    return true;
}

enum { MOST_ENTRIES = 4096 };

static tare_status compute_entries(onnx_call *c, op_id op, const onnx_emit *e, const value *folded,
                                   bool *done) {
    size_t row = 0;
    tare_tensor *y = folded->kind == VALUE_TENSOR ? folded->as.tensor : NULL;
    while (row < ARITHMETIC_COUNT && arithmetic[row].op != op) row++;
    if (row == ARITHMETIC_COUNT || y == NULL || y->count > MOST_ENTRIES ||
        e->arg_count < arithmetic[row].operands)
        return TARE_OK;
    element_call call = {
        .c = c, .op = op, .target = arithmetic[row].target, .to = y->dtype, .is_known = true};
    const tare_tensor *x = tare__onnx_meta(c, &e->args[0]);
    call.from = x != NULL ? x->dtype : y->dtype;
    if (!reads_keywords(e, &call)) return TARE_OK;
    value *entries = tare__arena_array(&c->in->memory, (size_t)y->count + 1, sizeof *entries);
    if (entries == NULL) return tare__out_of_memory(c->in->err);
    TARE_TRY(fill_entries(&call, e, arithmetic[row].operands, y, entries));
    *done = call.is_known;
    return call.is_known ? tare__onnx_set_entries(c, y, entries) : TARE_OK;
}

// --- products of all elements ---

static tare_status multiply_entries(onnx_call *c, const onnx_emit *e, const value *folded,
                                    bool *done) {
    const tare_tensor *x = e->args[0].kind == VALUE_TENSOR ? e->args[0].as.tensor : NULL;
    if (x == NULL || x->ndim != 1 || x->count < 1 || x->count > TARE_MAX_DIMS) return TARE_OK;
    value *entries = tare__arena_array(&c->in->memory, 1, sizeof *entries);
    if (entries == NULL) return tare__out_of_memory(c->in->err);
    entries[0] = tare__onnx_entry(c->in, x, 0);
    for (int64_t i = 1; i < x->count; i++) {
        const value args[] = {entries[0], tare__onnx_entry(c->in, x, i)};
        TARE_TRY(tare__onnx_scalar(c, "operator.mul", args, 2, &entries[0]));
    }
    *done = true;
    return tare__onnx_set_entries(c, folded->as.tensor, entries);
}

tare_status tare__onnx_fold_open(onnx_call *c, const op_info *op, const onnx_emit *e,
                                 const value *folded, bool *done) {
    *done = false;
    for (size_t i = 0; i < e->kwarg_count; i++)
        if (tare__onnx_holds_open(c->in, &e->kwargs[i].value)) return TARE_OK;
    if (e->arg_count == 0 || count_elements(&e->args[0]) > MOST_ENTRIES) return TARE_OK;
    const op_id id = tare__op_id(op);
    if (id == TARE_OP_PROD) return multiply_entries(c, e, folded, done);
    const bool joins = id == TARE_OP_CAT || id == TARE_OP_STACK;
    if (joins || ((op->traits & OP_MOVES_DATA) != 0 && id != TARE_OP_TO))
        return move_entries(c, op, e, folded, done);
    return compute_entries(c, id, e, folded, done);
}
