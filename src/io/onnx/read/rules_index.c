// SPDX-License-Identifier: Apache-2.0
// ONNX operators with indices: gathering, scattering, sorting, running sums.
#include <string.h>

#include "core/math/float_to_int.h"
#include "io/onnx/read/rules_common.h"

typedef struct indexed {
    value x, indices;
    const tare_tensor *t, *i;
    int64_t axis;
} indexed;

static tare_status read_indexed(onnx_call *c, bool has_axis, indexed *in) {
    TARE_TRY(tare__onnx_need_input(c, 0, "data", &in->x));
    TARE_TRY(tare__onnx_need_input(c, 1, "indices", &in->indices));
    TARE_TRY(tare__onnx_need_meta(c, 0, "data", &in->t));
    TARE_TRY(tare__onnx_need_meta(c, 1, "indices", &in->i));
    in->axis = 0;
    return has_axis ? tare__onnx_attr_axis(c, "axis", 0, in->t->ndim, &in->axis) : TARE_OK;
}

static tare_status tuple_of(onnx_call *c, const value *items, size_t count, value *out) {
    *out = tare__value_sequence(tare__onnx_arena(c), VALUE_TUPLE, (uint32_t)count);
    if (out->as.items == NULL) return tare__out_of_memory(tare__onnx_error(c));
    memcpy(out->as.items, items, count * sizeof *items);
    return TARE_OK;
}

// (:, :, index) with as many colons as dimensions stand before.
static tare_status after_colons(onnx_call *c, int64_t colons, value index, value *out) {
    value items[TARE_MAX_DIMS + 1];
    for (int64_t d = 0; d < colons; d++) {
        items[d] = tare__value_sequence(tare__onnx_arena(c), VALUE_SLICE, 3);
        if (items[d].as.items == NULL) return tare__out_of_memory(tare__onnx_error(c));
    }
    items[colons] = index;
    return tuple_of(c, items, (size_t)colons + 1, out);
}

// --- Gather ---

// A table of rows that is read by indices from the input.
static bool is_embedding(onnx_call *c, const indexed *in) {
    return in->axis == 0 && in->t->ndim == 2 && in->t->dtype == TARE_FLOAT32 &&
           tare__onnx_constant(c, 0) != NULL && tare__onnx_constant(c, 1) == NULL;
}

static tare_status gather(onnx_call *c) {
    indexed in;
    TARE_TRY(read_indexed(c, true, &in));
    const value embedding[] = {in.indices, in.x};
    if (is_embedding(c, &in))
        return tare__onnx_one(c, "torch.nn.functional.embedding", 2, embedding);
    const tare_tensor *known = tare__onnx_constant(c, 1);
    const value select[] = {in.x, tare__int(in.axis), in.indices};
    if (in.i->ndim == 1) return tare__onnx_one(c, "torch.index_select", 3, select);
    value index = in.indices;
    if (in.i->ndim == 0 && known != NULL) index = tare__int(tare__tensor_get_int(known, 0));
    if (in.i->ndim == 0 && known == NULL)
        TARE_TRY(ONNX_CALL(c, &index, "torch.unsqueeze", index, tare__int(0)));
    if (in.axis > 0) TARE_TRY(after_colons(c, in.axis, index, &index));
    value y;
    TARE_TRY(ONNX_CALL(c, &y, "operator.getitem", in.x, index));
    if (in.i->ndim == 0 && known == NULL)
        TARE_TRY(ONNX_CALL(c, &y, "torch.squeeze", y, tare__int(in.axis)));
    tare__onnx_set_output(c, 0, &y);
    return TARE_OK;
}

static tare_status gather_elements(onnx_call *c) {
    indexed in;
    TARE_TRY(read_indexed(c, true, &in));
    const value args[] = {in.x, tare__int(in.axis), in.indices};
    return tare__onnx_one(c, "torch.gather", 3, args);
}

// --- GatherND, ScatterND: the last dimension of the indices holds coordinates ---

// Counting along the batch's dimensions: they are coordinates too.
static tare_status batch_coordinate(onnx_call *c, const indexed *in, int64_t d, value *out) {
    int64_t shape[TARE_MAX_DIMS];
    const int ndim = in->i->ndim - 1;
    tare_tensor *t = NULL;
    for (int k = 0; k < ndim; k++) shape[k] = k == d ? in->i->shape[d] : 1;
    TARE_TRY(tare__onnx_new_tensor(c, TARE_INT64, ndim, shape, &t));
    for (int64_t i = 0; i < t->count; i++) tare__tensor_set_int(t, i, i);
    return tare__onnx_take_tensor(c, t, out);
}

static tare_status coordinates(onnx_call *c, const indexed *in, int64_t batch, value *out) {
    value items[TARE_MAX_DIMS], parts;
    const int64_t count = in->i->ndim > 0 ? in->i->shape[in->i->ndim - 1] : 0;
    if (batch < 0 || batch >= in->i->ndim || count < 1 || batch + count > in->t->ndim)
        return tare__onnx_malformed(c, "indices with %lld coordinates do not fit %d dimensions",
                                    (long long)count, in->t->ndim);
    for (int64_t d = 0; d < batch; d++) TARE_TRY(batch_coordinate(c, in, d, &items[d]));
    TARE_TRY(ONNX_CALL(c, &parts, "torch.unbind", in->indices, tare__int(-1)));
    for (int64_t d = 0; d < count; d++) TARE_TRY(tare__onnx_item(c, &parts, d, &items[batch + d]));
    return tuple_of(c, items, (size_t)(batch + count), out);
}

static tare_status gather_nd(onnx_call *c) {
    indexed in;
    int64_t batch;
    value args[2];
    TARE_TRY(read_indexed(c, false, &in));
    TARE_TRY(tare__onnx_attr_int(c, "batch_dims", 0, &batch));
    args[0] = in.x;
    TARE_TRY(coordinates(c, &in, batch, &args[1]));
    return tare__onnx_one(c, "operator.getitem", 2, args);
}

// torch's index_put can add but neither multiply nor compare: rows of a matrix are scattered then.
static tare_status scatter_rows(onnx_call *c, const indexed *in, value updates,
                                const char *reduction) {
    const tare_tensor *t = in->t;
    const int64_t count = in->i->shape[in->i->ndim - 1];
    int64_t rows = 1, inner = 1, strides[TARE_MAX_DIMS], shape[TARE_MAX_DIMS];
    const int ndim = t->ndim;
    memcpy(shape, t->shape, sizeof shape);
    for (int64_t d = count - 1; d >= 0; d--) {
        strides[d] = rows;
        rows *= shape[d];
    }
    for (int d = (int)count; d < ndim; d++) inner *= shape[d];
    const int64_t places = count > 0 ? in->i->count / count : 0;
    value x, at, factor;
    TARE_TRY(tare__onnx_int_tensor(c, strides, (size_t)count, &factor));
    TARE_TRY(ONNX_CALL(c, &at, "operator.mul", in->indices, factor));
    TARE_TRY(ONNX_CALL(c, &at, "torch.sum", at, tare__int(-1)));
    TARE_TRY(tare__onnx_reshape(c, &at, (const int64_t[]){places, 1}, 2, &at));
    TARE_TRY(ONNX_METHOD(c, &at, "expand", at, tare__int(places), tare__int(inner)));
    TARE_TRY(tare__onnx_reshape(c, &in->x, (const int64_t[]){rows, inner}, 2, &x));
    TARE_TRY(tare__onnx_reshape(c, &updates, (const int64_t[]){places, inner}, 2, &updates));
    TARE_TRY(ONNX_CALL(c, &x, "torch.scatter_reduce", x, tare__int(0), at, updates,
                       tare__string(reduction)));
    TARE_TRY(tare__onnx_reshape(c, &x, shape, (size_t)ndim, &x));
    tare__onnx_set_output(c, 0, &x);
    return TARE_OK;
}

static const char *const reductions[] = {"", "sum", "prod", "amax", "amin"};
#define READ_REDUCTION(c, out)                                                                     \
    ONNX_CHOICE(c, "reduction", "none", out, "none", "add", "mul", "max", "min")

static tare_status scatter_nd(onnx_call *c) {
    indexed in;
    size_t reduction = 0;
    value args[4];
    TARE_TRY(read_indexed(c, false, &in));
    TARE_TRY(tare__onnx_need_input(c, 2, "updates", &args[2]));
    TARE_TRY(READ_REDUCTION(c, &reduction));
    TARE_TRY(coordinates(c, &in, 0, &args[1]));
    if (reduction > 1) return scatter_rows(c, &in, args[2], reductions[reduction]);
    args[0] = in.x;
    args[3] = tare__bool(true);
    return tare__onnx_one(c, "torch.index_put", reduction == 1 ? 4 : 3, args);
}

static tare_status scatter_elements(onnx_call *c) {
    indexed in;
    size_t reduction = 0;
    value updates;
    TARE_TRY(read_indexed(c, true, &in));
    TARE_TRY(tare__onnx_need_input(c, 2, "updates", &updates));
    TARE_TRY(READ_REDUCTION(c, &reduction));
    const value args[] = {in.x, tare__int(in.axis), in.indices, updates,
                          tare__string(reductions[reduction])};
    return tare__onnx_one(c, reduction > 0 ? "torch.scatter_reduce" : "torch.scatter",
                          reduction > 0 ? 5 : 4, args);
}

// --- OneHot ---

static tare_status counting_along(onnx_call *c, int64_t count, int64_t start, int64_t axis,
                                  int ndim, value *out) {
    int64_t shape[TARE_MAX_DIMS];
    tare_tensor *t = NULL;
    for (int d = 0; d < ndim; d++) shape[d] = d == axis ? count : 1;
    TARE_TRY(tare__onnx_new_tensor(c, TARE_INT64, ndim, shape, &t));
    for (int64_t i = 0; i < t->count; i++) tare__tensor_set_int(t, i, start + i);
    return tare__onnx_take_tensor(c, t, out);
}

// Where the index is i, or i - depth: negative ones count from the end.
static tare_status one_hot(onnx_call *c) {
    value x, values, hot, below, numbers, on, off;
    const tare_tensor *t = NULL, *v = NULL;
    double depth;
    int64_t axis;
    TARE_TRY(tare__onnx_need_input(c, 0, "indices", &x));
    TARE_TRY(tare__onnx_need_meta(c, 0, "indices", &t));
    TARE_TRY(tare__onnx_need_input(c, 2, "values", &values));
    TARE_TRY(tare__onnx_need_meta(c, 2, "values", &v));
    TARE_TRY(tare__onnx_input_number(c, 1, "depth", 0, &depth));
    const int ndim = t->ndim + 1;
    const tare_dtype dtype = v->dtype;
    TARE_TRY(tare__onnx_attr_axis(c, "axis", -1, ndim, &axis));
    if (!(depth >= 1 && depth < INT32_MAX) || v->count != 2 || ndim > TARE_MAX_DIMS)
        return tare__onnx_malformed(c, "expected a positive depth and two values");
    TARE_TRY(ONNX_CALL(c, &x, "torch.unsqueeze", x, tare__int(axis)));
    TARE_TRY(counting_along(c, (int64_t)depth, 0, axis, ndim, &numbers));
    TARE_TRY(ONNX_CALL(c, &hot, "operator.eq", x, numbers));
    TARE_TRY(counting_along(c, (int64_t)depth, -(int64_t)depth, axis, ndim, &numbers));
    TARE_TRY(ONNX_CALL(c, &below, "operator.eq", x, numbers));
    TARE_TRY(ONNX_CALL(c, &hot, "torch.logical_or", hot, below));
    TARE_TRY(ONNX_CALL(c, &off, "operator.getitem", values, tare__int(0)));
    TARE_TRY(ONNX_CALL(c, &on, "operator.getitem", values, tare__int(1)));
    TARE_TRY(ONNX_CALL(c, &hot, "torch.where", hot, on, off));
    return tare__onnx_finish(c, &hot, dtype);
}

// --- NonZero, Compress: where, while the file is read ---

static tare_status non_zero(onnx_call *c) {
    value x;
    TARE_TRY(tare__onnx_need_input(c, 0, "X", &x));
    if (tare__onnx_constant(c, 0) == NULL)
        return tare__onnx_fail(c,
                               "expected a constant: how large the result is depends on the data");
    TARE_TRY(ONNX_CALL(c, &x, "torch.nonzero", x));
    const value args[] = {x, tare__int(0), tare__int(1)};
    return tare__onnx_one(c, "torch.transpose", 3, args);
}

static tare_status compress(onnx_call *c) {
    value x, at;
    const tare_tensor *t = NULL, *condition = tare__onnx_constant(c, 1);
    int64_t axis = 0;
    TARE_TRY(tare__onnx_need_input(c, 0, "input", &x));
    TARE_TRY(tare__onnx_need_meta(c, 0, "input", &t));
    if (condition == NULL)
        return tare__onnx_fail(c, "expected a constant condition: how large the result is depends "
                                  "on it");
    if (tare__onnx_has_attr(c, "axis"))
        TARE_TRY(tare__onnx_attr_axis(c, "axis", 0, t->ndim, &axis));
    else
        TARE_TRY(tare__onnx_reshape(c, &x, (const int64_t[]){-1}, 1, &x));
    int64_t *places =
        tare__arena_array(tare__onnx_arena(c), (size_t)condition->count + 1, sizeof *places);
    if (places == NULL) return tare__out_of_memory(tare__onnx_error(c));
    size_t count = 0;
    for (int64_t i = 0; i < condition->count; i++)
        if (tare__tensor_get(condition, i) != 0) places[count++] = i;
    TARE_TRY(tare__onnx_int_tensor(c, places, count, &at));
    const value args[] = {x, tare__int(axis), at};
    return tare__onnx_one(c, "torch.index_select", 3, args);
}

// --- TopK, ArgMax, ArgMin ---

static tare_status top_k(onnx_call *c) {
    value x, pair;
    const tare_tensor *t = NULL;
    double k;
    int64_t axis;
    bool largest, sorted;
    TARE_TRY(tare__onnx_need_input(c, 0, "X", &x));
    TARE_TRY(tare__onnx_need_meta(c, 0, "X", &t));
    TARE_TRY(tare__onnx_input_number(c, 1, "K", 1, &k));
    TARE_TRY(tare__onnx_attr_axis(c, "axis", -1, t->ndim, &axis));
    TARE_TRY(tare__onnx_attr_bool(c, "largest", true, &largest));
    TARE_TRY(tare__onnx_attr_bool(c, "sorted", true, &sorted));
    TARE_TRY(ONNX_CALL(c, &pair, "torch.topk", x, tare__int(tare__cut_int64(k)), tare__int(axis),
                       tare__bool(largest), tare__bool(sorted)));
    for (int64_t i = 0; i < 2; i++) {
        value item;
        if (!tare__onnx_wants_output(c, (size_t)i)) continue;
        TARE_TRY(tare__onnx_item(c, &pair, i, &item));
        tare__onnx_set_output(c, (size_t)i, &item);
    }
    return TARE_OK;
}

// The last of equal ones is the first of the flipped line.
static tare_status arg_extreme(onnx_call *c, const char *target) {
    value x;
    const tare_tensor *t = NULL;
    int64_t axis;
    bool keeps, last;
    TARE_TRY(tare__onnx_need_input(c, 0, "data", &x));
    TARE_TRY(tare__onnx_need_meta(c, 0, "data", &t));
    TARE_TRY(tare__onnx_attr_axis(c, "axis", 0, t->ndim, &axis));
    TARE_TRY(tare__onnx_attr_bool(c, "keepdims", true, &keeps));
    TARE_TRY(tare__onnx_attr_bool(c, "select_last_index", false, &last));
    const int64_t size = t->shape[axis];
    if (last) {
        value dims;
        TARE_TRY(tare__onnx_ints(c, &axis, 1, &dims));
        TARE_TRY(ONNX_CALL(c, &x, "torch.flip", x, dims));
    }
    TARE_TRY(ONNX_CALL(c, &x, target, x, tare__int(axis), tare__bool(keeps)));
    if (last) TARE_TRY(ONNX_CALL(c, &x, "torch.rsub", x, tare__int(size - 1)));
    tare__onnx_set_output(c, 0, &x);
    return TARE_OK;
}

static tare_status arg_max(onnx_call *c) {
    return arg_extreme(c, "torch.argmax");
}
static tare_status arg_min(onnx_call *c) {
    return arg_extreme(c, "torch.argmin");
}

// --- CumSum, Trilu ---

// Without its own element the sum is that of the line pushed on by one zero.
static tare_status push_on(onnx_call *c, int64_t axis, value *x) {
    int64_t amounts[2 * TARE_MAX_DIMS] = {0};
    const tare_tensor *t = tare__onnx_meta(c, x);
    const size_t pair = (size_t)(t->ndim - 1 - axis);
    value list;
    amounts[2 * pair] = 1;
    amounts[2 * pair + 1] = -1;
    TARE_TRY(tare__onnx_int_tuple(c, amounts, 2 * pair + 2, &list));
    return ONNX_CALL(c, x, "torch.nn.functional.pad", *x, list);
}

static tare_status cum_sum(onnx_call *c) {
    value x, dims;
    const tare_tensor *t = NULL;
    double number;
    int64_t axis;
    bool exclusive, reverse;
    TARE_TRY(tare__onnx_need_input(c, 0, "x", &x));
    TARE_TRY(tare__onnx_need_meta(c, 0, "x", &t));
    TARE_TRY(tare__onnx_input_number(c, 1, "axis", 0, &number));
    TARE_TRY(tare__onnx_axis(c, tare__cut_int64(number), t->ndim, &axis));
    TARE_TRY(tare__onnx_attr_bool(c, "exclusive", false, &exclusive));
    TARE_TRY(tare__onnx_attr_bool(c, "reverse", false, &reverse));
    const tare_dtype dtype = t->dtype;
    TARE_TRY(tare__onnx_ints(c, &axis, 1, &dims));
    if (reverse) TARE_TRY(ONNX_CALL(c, &x, "torch.flip", x, dims));
    if (exclusive) TARE_TRY(push_on(c, axis, &x));
    TARE_TRY(ONNX_CALL(c, &x, "torch.cumsum", x, tare__int(axis)));
    if (reverse) TARE_TRY(ONNX_CALL(c, &x, "torch.flip", x, dims));
    return tare__onnx_finish(c, &x, dtype);
}

static tare_status trilu(onnx_call *c) {
    value x;
    double k;
    bool upper;
    TARE_TRY(tare__onnx_need_input(c, 0, "input", &x));
    TARE_TRY(tare__onnx_input_number(c, 1, "k", 0, &k));
    TARE_TRY(tare__onnx_attr_bool(c, "upper", true, &upper));
    const value args[] = {x, tare__int(tare__cut_int64(k))};
    return tare__onnx_one(c, upper ? "torch.triu" : "torch.tril", 2, args);
}

static const onnx_rule rows[] = {
    {"ArgMax", .translate = arg_max},       {"ArgMin", .translate = arg_min},
    {"Compress", .translate = compress},    {"CumSum", .translate = cum_sum},
    {"Gather", .translate = gather},        {"GatherElements", .translate = gather_elements},
    {"GatherND", .translate = gather_nd},   {"NonZero", .translate = non_zero},
    {"OneHot", .translate = one_hot},       {"ScatterElements", .translate = scatter_elements},
    {"ScatterND", .translate = scatter_nd}, {"TopK", .translate = top_k},
    {"Trilu", 14, .translate = trilu},
};

const onnx_rule_table tare__onnx_index_rules = ONNX_RULES(rows);
