// SPDX-License-Identifier: Apache-2.0
// Gather, scatter, sort, one-hot and cumulative sums, in ONNX.
#include <string.h>

#include "core/math/float_to_int.h"
#include "io/onnx/families/families.h"
#include "io/onnx/read/rules_common.h"
#include "io/onnx/read/sizes.h"

// --- reading ---

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

// The index (:, :, index), with `colons` full slices.
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

// An embedding: rows of a constant matrix, selected by indices from the input.
static bool is_embedding(onnx_call *c, const indexed *in) {
    return in->axis == 0 && in->t->ndim == 2 && in->t->dtype == TARE_FLOAT32 &&
           tare__onnx_constant(c, 0) != NULL && in->indices.kind == VALUE_NODE;
}

static tare_status translate_gather(onnx_call *c) {
    indexed in;
    TARE_TRY(read_indexed(c, true, &in));
    const value embedding[] = {in.indices, in.x};
    if (is_embedding(c, &in))
        return tare__onnx_one(c, "torch.nn.functional.embedding", 2, embedding);
    const value select[] = {in.x, tare__int(in.axis), in.indices};
    if (in.i->ndim == 1) return tare__onnx_one(c, "torch.index_select", 3, select);
    value index = in.indices;
    const bool is_number = in.i->ndim == 0 && index.kind == VALUE_TENSOR; // also if it is open
    if (is_number) index = tare__onnx_entry(c->in, index.as.tensor, 0);
    if (in.i->ndim == 0 && !is_number)
        TARE_TRY(ONNX_CALL(c, &index, "torch.unsqueeze", index, tare__int(0)));
    if (in.axis > 0) TARE_TRY(after_colons(c, in.axis, index, &index));
    value y;
    TARE_TRY(ONNX_CALL(c, &y, "operator.getitem", in.x, index));
    if (in.i->ndim == 0 && !is_number)
        TARE_TRY(ONNX_CALL(c, &y, "torch.squeeze", y, tare__int(in.axis)));
    tare__onnx_set_output(c, 0, &y);
    return TARE_OK;
}

static tare_status translate_gather_elements(onnx_call *c) {
    indexed in;
    TARE_TRY(read_indexed(c, true, &in));
    const value args[] = {in.x, tare__int(in.axis), in.indices};
    return tare__onnx_one(c, "torch.gather", 3, args);
}

// --- GatherND, ScatterND: the last dimension of the indices holds coordinates ---

// The positions along batch dimension d, used as a coordinate.
static tare_status batch_coordinate(onnx_call *c, const indexed *in, int64_t d, value *out) {
    int64_t shape[TARE_MAX_DIMS];
    const int ndim = in->i->ndim - 1;
    tare_tensor *t = NULL;
    for (int k = 0; k < ndim; k++) shape[k] = k == d ? in->i->shape[d] : 1;
    TARE_TRY(tare__onnx_new_tensor(c, TARE_INT64, ndim, shape, &t));
    for (int64_t i = 0; i < t->count; i++) tare__tensor_set_int(t, i, i);
    return tare__onnx_take_tensor(c, t, out);
}

static tare_status open_coordinates(onnx_call *c, const indexed *in, int64_t batch, value *out);

static tare_status coordinates(onnx_call *c, const indexed *in, int64_t batch, value *out) {
    value items[TARE_MAX_DIMS], columns;
    const int64_t count = in->i->ndim > 0 ? in->i->shape[in->i->ndim - 1] : 0;
    if (batch < 0 || batch >= in->i->ndim || count < 1 || batch + count > in->t->ndim)
        return tare__onnx_malformed(c, "indices with %lld coordinates do not fit %d dimensions",
                                    (long long)count, in->t->ndim);
    for (int64_t d = 0; d < batch; d++)
        if (tare__onnx_size_is_open(c, &in->indices, (int)d))
            return open_coordinates(c, in, batch, out);
    for (int64_t d = 0; d < batch; d++) TARE_TRY(batch_coordinate(c, in, d, &items[d]));
    TARE_TRY(ONNX_CALL(c, &columns, "torch.unbind", in->indices, tare__int(-1)));
    for (int64_t d = 0; d < count; d++)
        TARE_TRY(tare__onnx_item(c, &columns, d, &items[batch + d]));
    return tuple_of(c, items, (size_t)(batch + count), out);
}

// The same for open batch dimensions: the graph computes the positions.
static tare_status open_coordinates(onnx_call *c, const indexed *in, int64_t batch, value *out) {
    value items[TARE_MAX_DIMS], columns, dims[TARE_MAX_DIMS];
    const int ndim = in->i->ndim - 1;
    const int64_t count = in->i->shape[ndim];
    for (int64_t d = 0; d < batch; d++) {
        value size;
        for (int k = 0; k < ndim; k++) dims[k] = tare__int(k == d ? -1 : 1);
        TARE_TRY(tare__onnx_size(c, &in->indices, (int)d, &size));
        TARE_TRY(ONNX_CALL(c, &items[d], "torch.arange", size));
        TARE_TRY(tare__onnx_reshape_to(c, &items[d], dims, (size_t)ndim, &items[d]));
    }
    TARE_TRY(ONNX_CALL(c, &columns, "torch.unbind", in->indices, tare__int(-1)));
    for (int64_t d = 0; d < count; d++)
        TARE_TRY(tare__onnx_item(c, &columns, d, &items[batch + d]));
    return tuple_of(c, items, (size_t)(batch + count), out);
}

static tare_status translate_gather_nd(onnx_call *c) {
    indexed in;
    int64_t batch;
    value args[2];
    TARE_TRY(read_indexed(c, false, &in));
    TARE_TRY(tare__onnx_attr_int(c, "batch_dims", 0, &batch));
    args[0] = in.x;
    TARE_TRY(coordinates(c, &in, batch, &args[1]));
    return tare__onnx_one(c, "operator.getitem", 2, args);
}

// torch's index_put can add, but not multiply or compare. Rows of a matrix are scattered instead.
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
    const int64_t row_count = count > 0 ? in->i->count / count : 0;
    value x, at, factor;
    TARE_TRY(tare__onnx_int_tensor(c, strides, (size_t)count, &factor));
    TARE_TRY(ONNX_CALL(c, &at, "operator.mul", in->indices, factor));
    TARE_TRY(ONNX_CALL(c, &at, "torch.sum", at, tare__int(-1)));
    TARE_TRY(tare__onnx_reshape(c, &at, (const int64_t[]){row_count, 1}, 2, &at));
    TARE_TRY(ONNX_METHOD(c, &at, "expand", at, tare__int(row_count), tare__int(inner)));
    TARE_TRY(tare__onnx_reshape(c, &in->x, (const int64_t[]){rows, inner}, 2, &x));
    TARE_TRY(tare__onnx_reshape(c, &updates, (const int64_t[]){row_count, inner}, 2, &updates));
    TARE_TRY(ONNX_CALL(c, &x, "torch.scatter_reduce", x, tare__int(0), at, updates,
                       tare__string(reduction)));
    TARE_TRY(tare__onnx_reshape(c, &x, shape, (size_t)ndim, &x));
    tare__onnx_set_output(c, 0, &x);
    return TARE_OK;
}

static const char *const reductions[] = {"", "sum", "prod", "amax", "amin"};
#define READ_REDUCTION(c, out)                                                                     \
    ONNX_CHOICE(c, "reduction", "none", out, "none", "add", "mul", "max", "min")

static tare_status translate_scatter_nd(onnx_call *c) {
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

static tare_status translate_scatter_elements(onnx_call *c) {
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

// True where the index is i, or i - depth: negative indices count from the end.
static tare_status translate_one_hot(onnx_call *c) {
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

static tare_status translate_non_zero(onnx_call *c) {
    value x;
    TARE_TRY(tare__onnx_need_input(c, 0, "X", &x));
    if (tare__onnx_constant(c, 0) == NULL)
        return tare__onnx_fail(c,
                               "expected a constant: the size of the result depends on its values");
    TARE_TRY(ONNX_CALL(c, &x, "torch.nonzero", x));
    const value args[] = {x, tare__int(0), tare__int(1)};
    return tare__onnx_one(c, "torch.transpose", 3, args);
}

static tare_status translate_compress(onnx_call *c) {
    value x, at;
    const tare_tensor *t = NULL, *condition = tare__onnx_constant(c, 1);
    int64_t axis = 0;
    TARE_TRY(tare__onnx_need_input(c, 0, "input", &x));
    TARE_TRY(tare__onnx_need_meta(c, 0, "input", &t));
    if (condition == NULL)
        return tare__onnx_fail(
            c, "expected a constant condition: the size of the result depends on it");
    if (tare__onnx_has_attr(c, "axis"))
        TARE_TRY(tare__onnx_attr_axis(c, "axis", 0, t->ndim, &axis));
    else
        TARE_TRY(tare__onnx_reshape(c, &x, (const int64_t[]){-1}, 1, &x));
    int64_t *found =
        tare__arena_array(tare__onnx_arena(c), (size_t)condition->count + 1, sizeof *found);
    if (found == NULL) return tare__out_of_memory(tare__onnx_error(c));
    size_t count = 0;
    for (int64_t i = 0; i < condition->count; i++)
        if (tare__tensor_get(condition, i) != 0) found[count++] = i;
    TARE_TRY(tare__onnx_int_tensor(c, found, count, &at));
    const value args[] = {x, tare__int(axis), at};
    return tare__onnx_one(c, "torch.index_select", 3, args);
}

// --- TopK, ArgMax, ArgMin ---

static tare_status translate_top_k(onnx_call *c) {
    value x, pair, k = tare__int(1);
    const tare_tensor *t = NULL;
    int64_t axis;
    bool largest, sorted;
    TARE_TRY(tare__onnx_need_input(c, 0, "X", &x));
    TARE_TRY(tare__onnx_need_meta(c, 0, "X", &t));
    if (tare__onnx_input(c, 1).kind != VALUE_NONE) TARE_TRY(tare__onnx_input_scalar(c, 1, "K", &k));
    TARE_TRY(tare__onnx_attr_axis(c, "axis", -1, t->ndim, &axis));
    TARE_TRY(tare__onnx_attr_bool(c, "largest", true, &largest));
    TARE_TRY(tare__onnx_attr_bool(c, "sorted", true, &sorted));
    TARE_TRY(ONNX_CALL(c, &pair, "torch.topk", x, k, tare__int(axis), tare__bool(largest),
                       tare__bool(sorted)));
    for (int64_t i = 0; i < 2; i++) {
        value item;
        if (!tare__onnx_wants_output(c, (size_t)i)) continue;
        TARE_TRY(tare__onnx_item(c, &pair, i, &item));
        tare__onnx_set_output(c, (size_t)i, &item);
    }
    return TARE_OK;
}

// The last of equal maxima is the first one after flipping the axis.
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
    value least = tare__int(t->shape[axis] - 1);
    if (last && tare__onnx_size_is_open(c, &x, (int)axis)) {
        value operands[] = {tare__none(), tare__int(1)};
        TARE_TRY(tare__onnx_size(c, &x, (int)axis, &operands[0]));
        TARE_TRY(tare__onnx_scalar(c, "operator.sub", operands, 2, &least));
    }
    if (last) {
        value dims;
        TARE_TRY(tare__onnx_ints(c, &axis, 1, &dims));
        TARE_TRY(ONNX_CALL(c, &x, "torch.flip", x, dims));
    }
    TARE_TRY(ONNX_CALL(c, &x, target, x, tare__int(axis), tare__bool(keeps)));
    if (last) TARE_TRY(ONNX_CALL(c, &x, "torch.rsub", x, least));
    tare__onnx_set_output(c, 0, &x);
    return TARE_OK;
}

static tare_status translate_arg_max(onnx_call *c) {
    return arg_extreme(c, "torch.argmax");
}
static tare_status translate_arg_min(onnx_call *c) {
    return arg_extreme(c, "torch.argmin");
}

// --- CumSum, Trilu ---

// An exclusive cumulative sum is the cumulative sum of x shifted by one zero along the axis.
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

static tare_status translate_cum_sum(onnx_call *c) {
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

static tare_status translate_trilu(onnx_call *c) {
    value x, k = tare__int(0);
    bool upper;
    TARE_TRY(tare__onnx_need_input(c, 0, "input", &x));
    if (tare__onnx_input(c, 1).kind != VALUE_NONE) TARE_TRY(tare__onnx_input_scalar(c, 1, "k", &k));
    TARE_TRY(tare__onnx_attr_bool(c, "upper", true, &upper));
    const value args[] = {x, k};
    return tare__onnx_one(c, upper ? "torch.triu" : "torch.tril", 2, args);
}

static const onnx_rule read_rows[] = {
    {"ArgMax", .translate = translate_arg_max},
    {"ArgMin", .translate = translate_arg_min},
    {"Compress", .translate = translate_compress},
    {"CumSum", .translate = translate_cum_sum},
    {"Gather", .translate = translate_gather},
    {"GatherElements", .translate = translate_gather_elements},
    {"GatherND", .translate = translate_gather_nd},
    {"NonZero", .translate = translate_non_zero},
    {"OneHot", .translate = translate_one_hot},
    {"ScatterElements", .translate = translate_scatter_elements},
    {"ScatterND", .translate = translate_scatter_nd},
    {"TopK", .translate = translate_top_k},
    {"Trilu", 14, .translate = translate_trilu},
};

// --- writing ---

static const char *integers(onnx_out *o, size_t i) {
    return tare__out_operand(o, i, TARE_INT64);
}

static void write_index_select(onnx_out *o) {
    const int64_t axis = tare__out_dim(o, 1, 0, tare__out_meta(o, 0)->ndim);
    const char *y = OUT(o, "Gather", tare__out_input(o, 0), integers(o, 2));
    tare__out_attr_int(o, "axis", axis);
    tare__out_result(o, y);
}

// ONNX requires that the other dimensions have the input's sizes; torch also accepts smaller ones.
static void write_gather(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0), *index = tare__out_meta(o, 2);
    const int64_t axis = tare__out_dim(o, 1, 0, x->ndim);
    for (int d = 0; d < x->ndim && d < index->ndim; d++)
        if (d != axis && x->shape[d] != index->shape[d])
            tare__out_refuse(o, "GatherElements needs all elements of dimension %d", d);
    const char *y = OUT(o, "GatherElements", tare__out_input(o, 0), integers(o, 2));
    tare__out_attr_int(o, "axis", axis);
    tare__out_result(o, y);
}

// --- scatter ---

static const char *updates(onnx_out *o, tare_dtype dtype) {
    const value *v = tare__out_call(o)->param[3];
    const char *x = tare__out_operand(o, 3, dtype);
    if (v != NULL && v->kind == VALUE_TENSOR && v->as.tensor->ndim > 0) return x;
    return OUT(o, "Expand", x, OUT(o, "Shape", integers(o, 2)));
}

static void scatter_with(onnx_out *o, const char *reduction) {
    const tare_tensor *x = tare__out_meta(o, 0), *index = tare__out_meta(o, 2);
    const int64_t axis = tare__out_dim(o, 1, 0, x->ndim);
    const value *v = tare__out_call(o)->param[3];
    if (v != NULL && v->kind == VALUE_TENSOR && v->as.tensor->ndim > 0)
        for (int d = 0; d < index->ndim && d < v->as.tensor->ndim; d++)
            if (index->shape[d] != v->as.tensor->shape[d])
                tare__out_refuse(o, "ScatterElements needs as many updates as indices");
    if (*reduction != '\0' && tare__out_opset(o) < 16)
        tare__out_refuse(o, "ScatterElements reduces from opset 16 on");
    const char *y = OUT(o, "ScatterElements", tare__out_input(o, 0), integers(o, 2),
                        updates(o, x->q != NULL ? TARE_FLOAT32 : x->dtype));
    tare__out_attr_int(o, "axis", axis);
    if (*reduction != '\0') tare__out_attr_text(o, "reduction", reduction);
    tare__out_result(o, y);
}

static const char *reduction_of(onnx_out *o, const char *name) {
    static const struct {
        const char *ours, *theirs;
        int since;
    } names[] = {
        {"", "", 0},         {"add", "add", 16},  {"sum", "add", 16}, {"multiply", "mul", 16},
        {"prod", "mul", 16}, {"amax", "max", 18}, {"amin", "min", 18}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].ours, name) == 0 && tare__out_opset(o) >= names[i].since)
            return names[i].theirs;
    tare__out_refuse(o, "ScatterElements has no reduction '%s' in this opset", name);
    return "";
}

static void write_scatter(onnx_out *o) {
    scatter_with(o, reduction_of(o, tare__out_text(o, 4, "")));
}

static void write_scatter_add(onnx_out *o) {
    scatter_with(o, "add");
}

static void write_scatter_reduce(onnx_out *o) {
    if (!tare__out_bool(o, 5, true))
        tare__out_refuse(o, "ScatterElements always includes the old elements");
    scatter_with(o, reduction_of(o, tare__out_text(o, 4, "")));
}

// --- index_put ---

// The indices of the first dimensions, stacked along a new last dimension.
static const char *indices_of(onnx_out *o, const value *list, const tare_tensor **largest) {
    const char *columns[TARE_MAX_DIMS];
    const int64_t last = -1;
    for (uint32_t i = 0; i < list->count; i++) {
        const value *v = &list->as.items[i];
        if (v->kind != VALUE_TENSOR || v->as.tensor->dtype == TARE_BOOL || i >= TARE_MAX_DIMS) {
            tare__out_refuse(
                o, "index_put is only written with integer indices of the first dimensions");
            return "";
        }
        if (*largest == NULL || v->as.tensor->count > (*largest)->count) *largest = v->as.tensor;
    }
    for (uint32_t i = 0; i < list->count; i++) {
        const tare_tensor *t = list->as.items[i].as.tensor;
        const char *x = tare__out_cast(o, tare__out_quantized(o, t), t->dtype, TARE_INT64);
        if (t != *largest)
            x = OUT(o, "Expand", x, OUT(o, "Shape", tare__out_quantized(o, *largest)));
        columns[i] = tare__out_unsqueeze(o, x, &last, 1);
    }
    if (list->count == 1) return columns[0];
    const char *y = tare__out_node(o, "Concat", columns, list->count);
    tare__out_attr_int(o, "axis", -1);
    return y;
}

static void write_index_put(onnx_out *o) {
    const tare_tensor *x = tare__out_meta(o, 0), *largest = NULL;
    const value *list = tare__out_call(o)->param[1];
    const bool adds = tare__out_bool(o, 3, false);
    if (list == NULL || !tare__value_has_items(list) || list->count == 0) {
        tare__out_refuse(o, "its indices are missing");
        return;
    }
    if (adds && tare__out_opset(o) < 16) tare__out_refuse(o, "ScatterND adds from opset 16 on");
    if (tare__out_failed(o)) return;
    const char *at = indices_of(o, list, &largest);
    if (tare__out_failed(o) || largest == NULL) return;
    int64_t shape[2 * TARE_MAX_DIMS];
    size_t ndim = 0;
    for (int d = 0; d < largest->ndim; d++) shape[ndim++] = largest->shape[d];
    for (int d = (int)list->count; d < x->ndim; d++) shape[ndim++] = x->shape[d];
    if (tare__out_result_other(o) != NULL && list->count < (size_t)x->ndim &&
        tare__out_result_other(o)->shape[x->ndim - 1] != x->shape[x->ndim - 1])
        tare__out_refuse(o, "index_put with sizes that depend on the batch is not written");
    const char *values =
        OUT(o, "Expand", tare__out_operand(o, 2, x->dtype), tare__out_ints(o, shape, ndim));
    const char *y = OUT(o, "ScatterND", tare__out_input(o, 0), at, values);
    if (adds) tare__out_attr_text(o, "reduction", "add");
    tare__out_result(o, y);
}

static const onnx_write_rule write_rows[] = {
    {"gather", "GatherElements", .write = write_gather},
    {"index_put", "ScatterND", .write = write_index_put},
    {"index_select", "Gather", .write = write_index_select},
    {"scatter", "ScatterElements", .write = write_scatter},
    {"scatter_add", "ScatterElements", 16, .write = write_scatter_add},
    {"scatter_reduce", "ScatterElements", 16, .write = write_scatter_reduce},
};

const onnx_family tare__onnx_index_family = {.read = ONNX_RULES(read_rows),
                                             .write = ONNX_WRITE_RULES(write_rows)};
