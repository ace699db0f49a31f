// SPDX-License-Identifier: Apache-2.0
// ONNX operators that create constants. Those with sizes that depend on the batch are written as
// nodes.
#include <math.h>
#include <string.h>

#include "io/onnx/families/families.h"
#include "io/onnx/read/rules_common.h"
#include "io/onnx/read/sizes.h"

// --- reading ---

// Limits what a file of a few bytes can allocate.
enum { MOST_ELEMENTS = 1 << 26 };

static tare_status new_tensor(onnx_call *c, tare_dtype dtype, int ndim, const int64_t *shape,
                              tare_tensor **out) {
    int64_t count;
    if (!tare__shape_count(ndim, shape, &count) || count > MOST_ELEMENTS)
        return tare__onnx_fail(c, "a constant of more than %d elements is not supported",
                               MOST_ELEMENTS);
    return tare__onnx_new_tensor(c, dtype, ndim, shape, out);
}

static tare_status give_tensor(onnx_call *c, tare_tensor *t) {
    value v;
    TARE_TRY(tare__onnx_take_tensor(c, t, &v));
    tare__onnx_set_output(c, 0, &v);
    return TARE_OK;
}

// --- Constant: one attribute of many says what it is ---

static tare_status give_number(onnx_call *c, tare_dtype dtype, double number) {
    tare_tensor *t = NULL;
    TARE_TRY(new_tensor(c, dtype, 0, NULL, &t));
    tare__tensor_set(t, 0, number);
    return give_tensor(c, t);
}

enum { MOST_ITEMS = 1 << 16 }; // of a list that an attribute holds

static tare_status constant_floats(onnx_call *c) {
    size_t count = 0;
    tare_tensor *t = NULL;
    double *list = tare__arena_array(tare__onnx_arena(c), MOST_ITEMS, sizeof *list);
    if (list == NULL) return tare__out_of_memory(tare__onnx_error(c));
    TARE_TRY(tare__onnx_attr_floats(c, "value_floats", MOST_ITEMS, list, &count, NULL));
    const int64_t shape[] = {(int64_t)count};
    TARE_TRY(new_tensor(c, TARE_FLOAT32, 1, shape, &t));
    for (size_t i = 0; i < count; i++) tare__tensor_set(t, (int64_t)i, list[i]);
    return give_tensor(c, t);
}

static tare_status constant_ints(onnx_call *c) {
    size_t count = 0;
    value v;
    int64_t *list = tare__arena_array(tare__onnx_arena(c), MOST_ITEMS, sizeof *list);
    if (list == NULL) return tare__out_of_memory(tare__onnx_error(c));
    TARE_TRY(tare__onnx_attr_ints(c, "value_ints", MOST_ITEMS, list, &count, NULL));
    TARE_TRY(tare__onnx_int_tensor(c, list, count, &v));
    tare__onnx_set_output(c, 0, &v);
    return TARE_OK;
}

static tare_status translate_constant(onnx_call *c) {
    if (tare__onnx_has_attr(c, "value_floats")) return constant_floats(c);
    if (tare__onnx_has_attr(c, "value_ints")) return constant_ints(c);
    if (tare__onnx_has_attr(c, "value_float")) {
        double number;
        TARE_TRY(tare__onnx_attr_float(c, "value_float", 0, &number));
        return give_number(c, TARE_FLOAT32, number);
    }
    if (tare__onnx_has_attr(c, "value_int")) {
        int64_t number;
        tare_tensor *t = NULL;
        TARE_TRY(tare__onnx_attr_int(c, "value_int", 0, &number));
        TARE_TRY(tare__tensor_scalar_int(number, &t, tare__onnx_error(c)));
        return give_tensor(c, t);
    }
    value v;
    TARE_TRY(tare__onnx_attr_tensor(c, "value", &v));
    if (v.kind == VALUE_NONE)
        return tare__onnx_fail(c,
                               "expected one of the attributes value, value_float, value_floats, "
                               "value_int and value_ints");
    tare__onnx_set_output(c, 0, &v);
    return TARE_OK;
}

// --- ConstantOfShape, EyeLike, Range ---

static bool has_nodes(const value *sizes, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (sizes[i].kind == VALUE_NODE) return true;
    return false;
}

static tare_status translate_constant_of_shape(onnx_call *c) {
    int64_t shape[TARE_MAX_DIMS];
    size_t ndim;
    value fill, sizes[TARE_MAX_DIMS];
    tare_tensor *t = NULL;
    TARE_TRY(tare__onnx_input_sizes(c, 0, "input", TARE_MAX_DIMS, sizes, &ndim, NULL));
    TARE_TRY(tare__onnx_attr_tensor(c, "value", &fill));
    const tare_tensor *one = tare__onnx_meta(c, &fill);
    if (one != NULL && one->count != 1)
        return tare__onnx_malformed(c, "the attribute value has %lld elements, expected 1",
                                    (long long)one->count);
    if (has_nodes(sizes, ndim)) {
        const value zero = tare__float(0);
        const value number = one != NULL ? tare__onnx_entry(c->in, one, 0) : zero;
        value y;
        TARE_TRY(
            tare__onnx_full(c, sizes, ndim, one != NULL ? one->dtype : TARE_FLOAT32, &number, &y));
        return tare__onnx_give(c, &y);
    }
    for (size_t i = 0; i < ndim; i++) shape[i] = sizes[i].as.integer;
    TARE_TRY(new_tensor(c, one != NULL ? one->dtype : TARE_FLOAT32, (int)ndim, shape, &t));
    const size_t size = tare_dtype_size(t->dtype);
    for (int64_t i = 0; one != NULL && i < t->count; i++)
        memcpy((char *)t->data + (size_t)i * size, one->data, size);
    return give_tensor(c, t);
}

static tare_status translate_eye_like(onnx_call *c) {
    const tare_tensor *like = NULL;
    int64_t number, diagonal;
    tare_dtype dtype;
    tare_tensor *t = NULL;
    TARE_TRY(tare__onnx_need_meta(c, 0, "input", &like));
    TARE_TRY(tare__onnx_attr_int(c, "k", 0, &diagonal));
    if (like->ndim != 2)
        return tare__onnx_malformed(c, "expected 2 dimensions, found %d", like->ndim);
    const value x = tare__onnx_input(c, 0);
    for (int d = 0; d < 2; d++)
        if (tare__onnx_size_is_open(c, &x, d))
            return tare__onnx_fail(c, "a diagonal of an open dimension is not supported");
    dtype = like->dtype;
    if (tare__onnx_has_attr(c, "dtype")) {
        TARE_TRY(tare__onnx_attr_int(c, "dtype", 0, &number));
        TARE_TRY(tare__onnx_dtype(c, number, &dtype));
    }
    TARE_TRY(new_tensor(c, dtype, 2, like->shape, &t));
    for (int64_t row = 0; row < t->shape[0]; row++)
        if (diagonal >= -row && diagonal < t->shape[1] - row)
            tare__tensor_set(t, row * t->shape[1] + row + diagonal, 1);
    return give_tensor(c, t);
}

static tare_status make_range(onnx_call *c, tare_dtype dtype, const double number[3],
                              tare_tensor **out) {
    const double count = ceil((number[1] - number[0]) / number[2]);
    if (number[2] == 0 || !(count < MOST_ELEMENTS))
        return tare__onnx_fail(c, "a range from %g to %g by %g is out of range", number[0],
                               number[1], number[2]);
    const int64_t shape[] = {count > 0 ? (int64_t)count : 0};
    TARE_TRY(new_tensor(c, dtype, 1, shape, out));
    for (int64_t i = 0; i < (*out)->count; i++)
        tare__tensor_set(*out, i, number[0] + (double)i * number[2]);
    return TARE_OK;
}

// The value of input i for the other batch size, if it differs.
static bool other_number(const onnx_call *c, size_t i, double *out) {
    const tare_tensor *t = tare__onnx_constant(c, i);
    const tare_tensor *other = t != NULL ? tare__onnx_constant_of(c->in, t)->other : NULL;
    if (other == NULL || other->count != 1) return false;
    *out = tare__tensor_get(other, 0);
    return true;
}

// torch.arange(start, limit, delta) of open sizes.
static tare_status range_of_sizes(onnx_call *c, tare_dtype dtype) {
    value args[3];
    const keyword type = {"dtype", tare__dtype_value(dtype)};
    TARE_TRY(tare__onnx_input_scalar(c, 0, "start", &args[0]));
    TARE_TRY(tare__onnx_input_scalar(c, 1, "limit", &args[1]));
    TARE_TRY(tare__onnx_input_scalar(c, 2, "delta", &args[2]));
    return tare__onnx_one_with(c, &(onnx_emit){.target = "torch.arange",
                                               .args = args,
                                               .arg_count = 3,
                                               .kwargs = &type,
                                               .kwarg_count = dtype != TARE_INT64});
}

static bool has_open_input(const onnx_call *c) {
    for (size_t i = 0; i < tare__onnx_input_count(c); i++) {
        const value v = tare__onnx_input(c, i);
        if (tare__onnx_holds_open(c->in, &v)) return true;
    }
    return false;
}

static tare_status translate_range(onnx_call *c) {
    static const char *const names[] = {"start", "limit", "delta"};
    double number[3], others[3];
    const tare_tensor *like = NULL;
    tare_tensor *t = NULL, *other = NULL;
    bool follows = false;
    TARE_TRY(tare__onnx_need_meta(c, 0, "start", &like));
    if (has_open_input(c)) return range_of_sizes(c, like->dtype);
    for (size_t i = 0; i < 3; i++) {
        TARE_TRY(tare__onnx_input_number(c, i, names[i], 0, &number[i]));
        others[i] = number[i];
        follows |= other_number(c, i, &others[i]);
    }
    TARE_TRY(make_range(c, like->dtype, number, &t));
    TARE_TRY(give_tensor(c, t));
    if (!follows) return TARE_OK;
    TARE_TRY(make_range(c, like->dtype, others, &other));
    TARE_TRY(tare__onnx_add_constant(c->in, other, NULL));
    tare__onnx_constant_of(c->in, t)->other = other;
    return TARE_OK;
}

// --- Shape, Size: every shape is known ---

static int64_t bound(int64_t i, int64_t ndim) {
    if (i < 0) i += ndim;
    return i < 0 ? 0 : i > ndim ? ndim : i;
}

static tare_status translate_shape(onnx_call *c) {
    const tare_tensor *t = NULL;
    int64_t start, end;
    value x, v;
    TARE_TRY(tare__onnx_need_meta(c, 0, "data", &t));
    TARE_TRY(tare__onnx_need_input(c, 0, "data", &x));
    TARE_TRY(tare__onnx_attr_int(c, "start", 0, &start));
    TARE_TRY(tare__onnx_attr_int(c, "end", t->ndim, &end));
    start = bound(start, t->ndim);
    end = bound(end, t->ndim);
    const size_t count = end > start ? (size_t)(end - start) : 0;
    TARE_TRY(tare__onnx_sizes(c, &x, (size_t)start, count, &v));
    tare__onnx_set_output(c, 0, &v);
    return TARE_OK;
}

static tare_status size_of_open(onnx_call *c, const value *x, int ndim) {
    value sizes;
    TARE_TRY(tare__onnx_sizes(c, x, 0, (size_t)ndim, &sizes));
    const value args[] = {sizes, tare__int(0)};
    return tare__onnx_one(c, "torch.prod", 2, args);
}

static tare_status translate_size(onnx_call *c) {
    const tare_tensor *t = NULL;
    tare_tensor *made = NULL;
    value x;
    TARE_TRY(tare__onnx_need_first(c, "data", &x, &t));
    for (int d = 0; d < t->ndim; d++)
        if (tare__onnx_size_is_open(c, &x, d)) return size_of_open(c, &x, t->ndim);
    TARE_TRY(tare__tensor_scalar_int(t->count, &made, tare__onnx_error(c)));
    return give_tensor(c, made);
}

static const onnx_rule read_rows[] = {
    {"Constant", .translate = translate_constant},
    {"ConstantOfShape", .translate = translate_constant_of_shape},
    {"EyeLike", .translate = translate_eye_like},
    {"Range", .translate = translate_range},
    {"Shape", .translate = translate_shape},
    {"Size", .translate = translate_size},
};

// --- writing ---

// A number, broadcast to the size of the result.
static void filled(onnx_out *o, const char *number) {
    const tare_tensor *y = tare__out_result_meta(o), *other = tare__out_result_other(o);
    tare__out_result(
        o, OUT(o, "Expand", number,
               tare__out_sizes(o, y->shape, other != NULL ? other->shape : NULL, (size_t)y->ndim)));
}

static void write_zeros(onnx_out *o) {
    filled(o, tare__out_number(o, tare__out_result_meta(o)->dtype, 0));
}

static void write_ones(onnx_out *o) {
    filled(o, tare__out_number(o, tare__out_result_meta(o)->dtype, 1));
}

// A fill value that depends on the batch must be an int, which is computed like a size.
static void write_full(onnx_out *o) {
    const size_t at = tare__op_param_index(tare__out_call(o)->op, "fill_value");
    const tare_dtype dtype = tare__out_result_meta(o)->dtype;
    if (!tare__out_param_differs(o, at)) {
        filled(o, tare__out_operand(o, at, dtype));
        return;
    }
    const int64_t only = 0;
    const value *v = tare__out_call(o)->param[at], *other = tare__out_other_param(o, at);
    if (v->kind != VALUE_INT || other->kind != VALUE_INT)
        tare__out_refuse(o, "a fill value that depends on open sizes must be an int");
    if (tare__out_failed(o)) return;
    const char *number = tare__out_sizes(o, &v->as.integer, &other->as.integer, 1);
    number = tare__out_squeeze(o, number, &only, 1);
    filled(o, tare__out_cast(o, number, TARE_INT64, dtype));
}

static void write_arange(onnx_out *o) {
    const tare_tensor *y = tare__out_result_meta(o), *other = tare__out_result_other(o);
    const bool has_end = tare__out_given(o, 1);
    const double start = has_end ? tare__out_double(o, 0, 0) : 0, step = tare__out_double(o, 2, 1);
    if (tare__out_param_differs(o, 2) || (has_end && tare__out_param_differs(o, 0)))
        tare__out_refuse(o, "a range whose start or step depends on the batch size is not written");
    const char *count = tare__out_sizes(o, y->shape, other != NULL ? other->shape : NULL, 1);
    const int64_t only = 0;
    count = tare__out_cast(o, tare__out_squeeze(o, count, &only, 1), TARE_INT64, y->dtype);
    const char *first = tare__out_number(o, y->dtype, start),
               *by = tare__out_number(o, y->dtype, step);
    const char *end = OUT(o, "Add", first, OUT(o, "Mul", count, by));
    tare__out_result(o, OUT(o, "Range", first, end, by));
}

static const onnx_write_rule write_rows[] = {
    {"arange", "Range", .takes_sizes = true, .write = write_arange},
    {"full", "Expand", .takes_sizes = true, .write = write_full},
    {"full_like", "Expand", .takes_sizes = true, .write = write_full},
    {"new_full", "Expand", .takes_sizes = true, .write = write_full},
    {"new_ones", "Expand", .takes_sizes = true, .write = write_ones},
    {"new_zeros", "Expand", .takes_sizes = true, .write = write_zeros},
    {"ones", "Expand", .takes_sizes = true, .write = write_ones},
    {"ones_like", "Expand", .takes_sizes = true, .write = write_ones},
    {"zeros", "Expand", .takes_sizes = true, .write = write_zeros},
    {"zeros_like", "Expand", .takes_sizes = true, .write = write_zeros},
};

const onnx_family tare__onnx_create_family = {.read = ONNX_RULES(read_rows),
                                              .write = ONNX_WRITE_RULES(write_rows)};
