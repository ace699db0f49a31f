// SPDX-License-Identifier: Apache-2.0
// ONNX operators whose result is known while the file is read.
#include <math.h>
#include <string.h>

#include "io/onnx/read/rules_common.h"

// What a file of a few bytes may ask for.
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

enum { MOST_ITEMS = 1 << 16 }; // of a list in an attribute

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

static tare_status constant(onnx_call *c) {
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

static tare_status constant_of_shape(onnx_call *c) {
    int64_t shape[TARE_MAX_DIMS];
    size_t ndim;
    value fill;
    tare_tensor *t = NULL;
    TARE_TRY(tare__onnx_input_ints(c, 0, "input", TARE_MAX_DIMS, shape, &ndim, NULL));
    TARE_TRY(tare__onnx_attr_tensor(c, "value", &fill));
    const tare_tensor *one = tare__onnx_meta(c, &fill);
    if (one != NULL && one->count != 1)
        return tare__onnx_malformed(c, "the attribute value has %lld elements, expected 1",
                                    (long long)one->count);
    TARE_TRY(new_tensor(c, one != NULL ? one->dtype : TARE_FLOAT32, (int)ndim, shape, &t));
    const size_t size = tare_dtype_size(t->dtype);
    for (int64_t i = 0; one != NULL && i < t->count; i++)
        memcpy((char *)t->data + (size_t)i * size, one->data, size);
    return give_tensor(c, t);
}

static tare_status eye_like(onnx_call *c) {
    const tare_tensor *like = NULL;
    int64_t number, diagonal;
    tare_dtype dtype;
    tare_tensor *t = NULL;
    TARE_TRY(tare__onnx_need_meta(c, 0, "input", &like));
    TARE_TRY(tare__onnx_attr_int(c, "k", 0, &diagonal));
    if (like->ndim != 2)
        return tare__onnx_malformed(c, "expected 2 dimensions, found %d", like->ndim);
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

static tare_status range(onnx_call *c) {
    static const char *const names[] = {"start", "limit", "delta"};
    double number[3];
    const tare_tensor *like = NULL;
    tare_tensor *t = NULL;
    TARE_TRY(tare__onnx_need_meta(c, 0, "start", &like));
    for (size_t i = 0; i < 3; i++) TARE_TRY(tare__onnx_input_number(c, i, names[i], 0, &number[i]));
    const double count = ceil((number[1] - number[0]) / number[2]);
    if (number[2] == 0 || !(count < MOST_ELEMENTS))
        return tare__onnx_fail(c, "a range from %g to %g by %g is out of range", number[0],
                               number[1], number[2]);
    const int64_t shape[] = {count > 0 ? (int64_t)count : 0};
    TARE_TRY(new_tensor(c, like->dtype, 1, shape, &t));
    for (int64_t i = 0; i < t->count; i++)
        tare__tensor_set(t, i, number[0] + (double)i * number[2]);
    return give_tensor(c, t);
}

// --- Shape, Size: every shape is known ---

static int64_t bound(int64_t i, int64_t ndim) {
    if (i < 0) i += ndim;
    return i < 0 ? 0 : i > ndim ? ndim : i;
}

static tare_status shape(onnx_call *c) {
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

static tare_status size(onnx_call *c) {
    const tare_tensor *t = NULL;
    tare_tensor *made = NULL;
    TARE_TRY(tare__onnx_need_meta(c, 0, "data", &t));
    TARE_TRY(tare__tensor_scalar_int(t->count, &made, tare__onnx_error(c)));
    return give_tensor(c, made);
}

static const onnx_rule rows[] = {
    {"Constant", .translate = constant}, {"ConstantOfShape", .translate = constant_of_shape},
    {"EyeLike", .translate = eye_like},  {"Range", .translate = range},
    {"Shape", .translate = shape},       {"Size", .translate = size},
};

const onnx_rule_table tare__onnx_constant_rules = ONNX_RULES(rows);
