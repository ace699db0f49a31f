// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Conversions between float and integers: torch.quantize_per_tensor and similar, dequantize, and
// conversions of dtype. The forms on plain integer tensors are in decomposed.c.
#include "ops/quantized/quantize.h"

#include <math.h>
#include <string.h>

#include "core/math/requant.h"
#include "core/memory/alloc.h"
#include "ops/families/families.h"
#include "ops/parts.h"
#include "ops/rules.h"

// --- whole tensors ---

static int64_t quantized_value_of(const qparams *q, int64_t c, float x) {
    const float inverse = tare__inverse_scale(q->scale[c]);
    if (q->scheme == TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS)
        return tare__quantize_float_qparams(x, inverse, (float)q->zero_point[c], q->quant_min,
                                            q->quant_max);
    const int64_t zero_point = (int64_t)q->zero_point[c];
    return !tare__qscheme_is_per_tensor(q->scheme)
               ? tare__quantize_channel(x, inverse, zero_point, q->quant_min, q->quant_max)
               : tare__quantize(x, inverse, zero_point, q->quant_min, q->quant_max);
}

enum { MOST_NEAR = 1 << 20 };

// As tare__quantize and tare__quantize_channel, for bounds near zero: clamping to whole numbers
// commutes with rounding, and adding a number whose last bit counts as one rounds to nearest even.
// Compilers vectorize it. of_nan: replaces NaN.
static void quantize_near_zero(const float *x, int64_t count, float inverse, int32_t zero_point,
                               const float bound[2], float of_nan, uint8_t *y) {
    const float rounder = 0x1.8p23F, least = bound[0], most = bound[1];
    for (int64_t i = 0; i < count; i++) {
        const float product = x[i] * inverse, v = product == product ? product : of_nan;
        const float below = v < most ? v : most;
        const float inside = below > least ? below : least;
        const float whole = (inside + rounder) - rounder;
        y[i] = (uint8_t)((int32_t)whole + zero_point);
    }
}

// 8-bit dtypes with integer zero points. The low byte of each quantized value is stored.
static void quantize_bytes(const float *x, int64_t count, const qparams *q, int64_t c, uint8_t *y) {
    const float inverse = tare__inverse_scale(q->scale[c]);
    const int64_t zero_point = (int64_t)q->zero_point[c], min = q->quant_min, max = q->quant_max;
    const bool per_channel = !tare__qscheme_is_per_tensor(q->scheme);
    if (zero_point > -MOST_NEAR && zero_point < MOST_NEAR && min > -MOST_NEAR && max < MOST_NEAR)
        quantize_near_zero(x, count, inverse, (int32_t)zero_point,
                           (const float[]){(float)(min - zero_point), (float)(max - zero_point)},
                           per_channel ? 0.0F : INFINITY, y);
    else if (per_channel)
        for (int64_t i = 0; i < count; i++)
            y[i] = (uint8_t)tare__quantize_channel(x[i], inverse, zero_point, min, max);
    else
        for (int64_t i = 0; i < count; i++)
            y[i] = (uint8_t)tare__quantize(x[i], inverse, zero_point, min, max);
}

void tare__quantize_into(const tare_tensor *x, tare_tensor *y) {
    const qparams *q = y->q;
    const float *from = tare__f32(x);
    const bool per_channel = tare__qscheme_is_per_channel(q->scheme);
    const bool per_group = tare__qscheme_is_per_group(q->scheme);
    const bool is_whole = q->scheme != TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS;
    const int64_t run = per_channel ? tare__inner_count(y, q->axis)
                        : per_group ? tare__group_size(y)
                                    : x->count;
    for (int64_t start = 0, c = 0; start < x->count; start += run) {
        if (is_whole && tare_dtype_size(y->dtype) == 1)
            quantize_bytes(from + start, run, q, c, (uint8_t *)y->data + start);
        else
            for (int64_t i = start; i < start + run; i++)
                tare__tensor_set(y, i, (double)quantized_value_of(q, c, from[i]));
        if (per_channel || per_group) c = c + 1 == q->count ? 0 : c + 1;
    }
}

tare_status tare__quantize_tensor(const tare_tensor *x, const qparams *q, tare_tensor **out,
                                  tare_error *err) {
    tare_tensor *made = NULL;
    TARE_TRY(tare__tensor_quantized(x->ndim, x->shape, q, &made, err));
    tare__quantize_into(x, made);
    *out = made;
    return TARE_OK;
}

tare_status tare__qparams_check(const qparams *q, tare_error *err) {
    int64_t c = 0;
    switch (tare__qparams_fault(q, &c)) {
    case QPARAMS_BAD_SCALE:
        return tare__fail(err, TARE_INVALID_ARGUMENT, "expected a positive, finite scale, found %g",
                          q->scale[c]);
    case QPARAMS_BAD_ZERO_POINT:
        return tare__fail(err, TARE_INVALID_ARGUMENT, "expected a zero point of %s, found %g",
                          tare_dtype_name(q->dtype), q->zero_point[c]);
    case QPARAMS_FINE:
        break;
    }
    return TARE_OK;
}

tare_status tare__qparams_like(const qparams *form, const tare_tensor *scales,
                               const tare_tensor *zero_points, qparams **out, tare_error *err) {
    const size_t count = (size_t)scales->count;
    double *numbers = tare__alloc_zeroed(2 * count + 1, sizeof *numbers);
    if (numbers == NULL) return tare__out_of_memory(err);
    for (size_t c = 0; c < count; c++) {
        numbers[c] = tare__tensor_get(scales, (int64_t)c);
        numbers[count + c] = tare__tensor_get(zero_points, (int64_t)c);
    }
    qparams *made = tare__qparams_create(form->scheme, form->dtype, form->axis, scales->count,
                                         numbers, numbers + count);
    tare__free(numbers);
    if (made == NULL) return tare__out_of_memory(err);
    const tare_status status = tare__qparams_check(made, err);
    if (status != TARE_OK)
        tare__qparams_release(made);
    else
        *out = made;
    return status;
}

tare_status tare__qparams_from_tensors(const tare_tensor *scales, const tare_tensor *zero_points,
                                       tare_dtype dtype, int axis, qparams **out, tare_error *err) {
    const bool float_zero = tare__dtype(zero_points->dtype)->is_float;
    const qparams form = {.scheme = float_zero ? TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS
                                               : TARE_PER_CHANNEL_AFFINE,
                          .dtype = dtype,
                          .axis = axis};
    return tare__qparams_like(&form, scales, zero_points, out, err);
}

static tare_status into_out(op_call *call) {
    const tare_tensor *x;
    tare_tensor *y = tare__call_out(call);
    TARE_TRY(tare__need_float(call, 0, &x));
    if (y->q != NULL)
        tare__quantize_into(x, y);
    else
        for (int64_t i = 0; i < y->count; i++) tare__tensor_set(y, i, tare__f32(x)[i]);
    return TARE_OK;
}

// --- torch.quantize_per_tensor, quantize_per_channel, quantize_per_tensor_dynamic ---

static tare_status quantized_dtype(op_call *call, size_t i, tare_dtype *out) {
    TARE_TRY(tare__call_dtype(call, i, TARE_DTYPE_UNSET, out));
    if (tare__dtype(*out)->is_quantized) return TARE_OK;
    return tare__call_fail(call, "expected a quantized dtype, found %s", tare_dtype_name(*out));
}

// The result: the input's shape with these quantization parameters, whose reference is consumed.
static tare_status qualified_result(op_call *call, qparams *q) {
    if (q == NULL) return tare__out_of_memory(call->err);
    const tare_tensor *x;
    tare_status status = tare__need_float(call, 0, &x);
    if (status == TARE_OK) status = tare__call_at(call, tare__qparams_check(q, call->err));
    if (status == TARE_OK) status = tare__call_result(call, q->dtype, x->ndim, x->shape, q);
    tare__qparams_release(q);
    return status;
}

static tare_status per_tensor_shape(op_call *call) {
    double scale;
    int64_t zero_point;
    tare_dtype dtype;
    TARE_TRY(tare__call_double(call, 1, 1, &scale));
    TARE_TRY(tare__call_int(call, 2, 0, &zero_point));
    TARE_TRY(quantized_dtype(call, 3, &dtype));
    return qualified_result(call, tare__qparams_per_tensor(dtype, scale, zero_point));
}

static tare_status per_channel_shape(op_call *call) {
    const tare_tensor *x, *scales, *zero_points;
    int axis;
    tare_dtype dtype;
    qparams *q = NULL;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    TARE_TRY(tare__call_need_tensor(call, 1, &scales));
    TARE_TRY(tare__call_need_tensor(call, 2, &zero_points));
    TARE_TRY(tare__call_dim(call, 3, 0, x->ndim, &axis));
    TARE_TRY(quantized_dtype(call, 4, &dtype));
    if (scales->count != zero_points->count)
        return tare__call_fail(call, "%lld scales, but %lld zero points", (long long)scales->count,
                               (long long)zero_points->count);
    if (scales->data == NULL || zero_points->data == NULL)
        return tare__call_fail(call, "scales and zero points must be known");
    TARE_TRY(tare__call_at(
        call, tare__qparams_from_tensors(scales, zero_points, dtype, axis, &q, call->err)));
    return qualified_result(call, q);
}

// Scale and zero point follow from the range of the data. A meta tensor has no data and gets scale
// 1.
static tare_status dynamic_shape(op_call *call) {
    const tare_tensor *x;
    tare_dtype dtype;
    bool reduce_range;
    TARE_TRY(tare__need_float(call, 0, &x));
    TARE_TRY(tare__call_dtype(call, 1, TARE_DTYPE_UNSET, &dtype));
    TARE_TRY(tare__call_bool(call, 2, false, &reduce_range));
    if (dtype == TARE_FLOAT16) return tare__call_result(call, dtype, x->ndim, x->shape, NULL);
    if (dtype != TARE_QUINT8 && dtype != TARE_QINT8)
        return tare__call_fail(call, "has no form for %s", tare_dtype_name(dtype));
    if (x->data == NULL) return qualified_result(call, tare__qparams_per_tensor(dtype, 1, 0));
    const dtype_info *info = tare__dtype(dtype);
    dynamic_range range = {.quant_min = (int32_t)info->min,
                           .quant_max = (int32_t)info->max,
                           .reduce_range = reduce_range};
    tare__find_range(x, &range.min, &range.max);
    const dynamic_qparams chosen = tare__choose_dynamic_qparams(&range);
    return qualified_result(call, tare__qparams_per_tensor(dtype, chosen.scale, chosen.zero_point));
}

// --- dequantize, conversions ---

static tare_status convert_shape(op_call *call, tare_dtype dtype) {
    const tare_tensor *x;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    if (x->dtype == dtype) return tare__shape_identity(call);
    if (tare__dtype(dtype)->is_quantized)
        return tare__call_fail(call, "%s needs a scale and a zero point", tare_dtype_name(dtype));
    return tare__call_result(call, dtype, x->ndim, x->shape, NULL);
}

// Converts elements [first, end).
static void convert_elements(const tare_tensor *x, tare_tensor *y, int64_t first, int64_t end) {
    double block[PART_BLOCK];
    for (int64_t at = first, count; at < end; at += count) {
        count = end - at < PART_BLOCK ? end - at : PART_BLOCK;
        tare__tensor_load(x, at, 1, count, block);
        tare__tensor_store(y, at, count, block);
    }
}

static tare_status convert_part(op_call *call, int64_t first, int64_t end) {
    convert_elements(tare__call_tensor(call, 0), tare__call_out(call), first, end);
    return TARE_OK;
}

static tare_status convert_parts(op_call *call, call_parts *out) {
    const tare_tensor *x = tare__call_tensor(call, 0), *y = tare__call_out(call);
    if (x == NULL || x->q != NULL || x->dtype == y->dtype) return TARE_OK;
    return tare__element_parts(call, convert_part, out);
}

static tare_status convert_reference(op_call *call) {
    const tare_tensor *x;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    tare_tensor *y = tare__call_out(call), *real = NULL;
    if (x->q != NULL) TARE_TRY(tare_tensor_to_float(x, &real, call->err));
    const tare_tensor *from = real != NULL ? real : x;
    if (from->dtype == y->dtype)
        memcpy(y->data, from->data, tare__tensor_bytes(y));
    else
        convert_elements(from, y, 0, y->count);
    tare_tensor_release(real);
    return TARE_OK;
}

static tare_status float_shape(op_call *call) {
    return convert_shape(call, TARE_FLOAT32);
}
static tare_status half_shape(op_call *call) {
    return convert_shape(call, TARE_FLOAT16);
}
static tare_status double_shape(op_call *call) {
    return convert_shape(call, TARE_FLOAT64);
}
static tare_status long_shape(op_call *call) {
    return convert_shape(call, TARE_INT64);
}
static tare_status int_shape(op_call *call) {
    return convert_shape(call, TARE_INT32);
}
static tare_status bool_shape(op_call *call) {
    return convert_shape(call, TARE_BOOL);
}

// x.to(dtype), x.to(other), x.to(device, dtype): only a dtype changes anything here.
static tare_status to_shape(op_call *call) {
    for (size_t i = 1; i <= 2 && i < call->param_count; i++) {
        const value *v = call->param[i];
        if (v != NULL && v->kind == VALUE_DTYPE) return convert_shape(call, v->as.dtype);
        if (v != NULL && v->kind == VALUE_TENSOR) return convert_shape(call, v->as.tensor->dtype);
    }
    return tare__shape_identity(call);
}

static tare_status int_repr_shape(op_call *call) {
    const tare_tensor *x;
    tare_tensor *quantized = NULL;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    if (x->q == NULL) return tare__call_fail(call, "the input is not quantized");
    TARE_TRY(tare__tensor_requalify(x, NULL, &quantized, call->err));
    call->result = (value){.kind = VALUE_TENSOR, .as.tensor = quantized};
    return TARE_OK;
}

// --- rows ---

#define QUANTIZE(name, more, parameters, rule)                                                     \
    {                                                                                              \
        .id = name, .functions = "torch." name, .params = parameters,                              \
        .traits = OP_ELEMENTWISE | OP_ANY_DTYPE | (more), .shape = rule, .reference = into_out     \
    }
#define CONVERSION(name, names, more, method_names, parameters, rule)                              \
    {                                                                                              \
        .id = name, .functions = names, .methods = method_names, .params = parameters,             \
        .traits = OP_ELEMENTWISE | OP_ANY_DTYPE | (more), .shape = rule,                           \
        .reference = convert_reference, .parts = convert_parts                                     \
    }

// clang-format off
static const op_info rows[] = {
    QUANTIZE("quantize_per_tensor", 0, "input|scale|zero_point|dtype", per_tensor_shape),
    QUANTIZE("quantize_per_channel", 0, "input|scales|zero_points|axis|dtype", per_channel_shape),
    QUANTIZE("quantize_per_tensor_dynamic", OP_SHAPED_BY_DATA, "input|dtype|reduce_range", dynamic_shape),
    CONVERSION("dequantize", "torch.dequantize", OP_DEQUANTIZES, "dequantize", "input/self", float_shape),
    {.id = "to", .functions = "torch.ops.aten.to.dtype|torch.ops.aten.to.other|torch.ops.aten.type_as.default",
     .overloads = "torch.ops.aten._to_copy.default(-layout|-pin_memory) "
                  "torch.ops.aten.to.dtype_layout(-layout|-pin_memory) "
                  "torch.ops.aten.to.device",
     .methods = "to|type|type_as", .params = "input/self|dtype/other|non_blocking|copy|memory_format|device",
     .traits = OP_ELEMENTWISE | OP_ANY_DTYPE, .shape = to_shape, .reference = convert_reference, .parts = convert_parts},
    CONVERSION("decomposed.convert_element_type",
               "torch.ops.quantized_decomposed.convert_element_type.no_fuse", 0, NULL, "input|dtype", to_shape),
    CONVERSION("float", NULL, 0, "float", "input/self", float_shape),
    CONVERSION("half", NULL, 0, "half", "input/self", half_shape),
    CONVERSION("double", NULL, 0, "double", "input/self", double_shape),
    CONVERSION("long", NULL, 0, "long", "input/self", long_shape),
    CONVERSION("int", NULL, 0, "int", "input/self", int_shape),
    CONVERSION("bool", NULL, 0, "bool", "input/self", bool_shape),
    {.id = "int_repr", .functions = "torch.int_repr", .methods = "int_repr", .params = "input/self",
     .traits = OP_ELEMENTWISE | OP_ANY_DTYPE, .shape = int_repr_shape},
};
// clang-format on

const op_table tare__quantize_ops = OP_TABLE(rows);
