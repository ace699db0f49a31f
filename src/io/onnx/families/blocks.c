// SPDX-License-Identifier: Apache-2.0
// Reads QuantizeLinear and DequantizeLinear with a block_size. Constant matrices become weights
// with groups; everything else is computed with parameters that are repeated for each element of a
// block.
#include "io/onnx/families/quantize.h"
#include "io/onnx/pack.h"
#include "io/onnx/read/rules_common.h"

// Inputs of a node whose scales are for blocks along an axis.
typedef struct blocks {
    const tare_tensor *x, *scale, *zero_point; // zero_point may be NULL
    value x_value, scale_value, zero_value;
    int64_t axis, size;
} blocks;

static tare_status check_scales(onnx_call *c, const blocks *b, const tare_tensor *t) {
    bool fits = t->ndim == b->x->ndim;
    for (int d = 0; fits && d < t->ndim; d++) {
        const int64_t size = b->x->shape[d];
        fits = t->shape[d] == (d == b->axis ? size / b->size + (size % b->size != 0) : size);
    }
    char found[200], of[200];
    tare__shape_text(t->ndim, t->shape, found, sizeof found);
    tare__shape_text(b->x->ndim, b->x->shape, of, sizeof of);
    return fits ? TARE_OK
                : tare__onnx_malformed(
                      c, "scales or zero points of shape %s for blocks of %lld do not fit %s",
                      found, (long long)b->size, of);
}

static tare_status read_blocks(onnx_call *c, int64_t size, blocks *b) {
    int64_t axis;
    *b = (blocks){.size = size, .zero_value = tare__onnx_input(c, 2)};
    if (size < 1)
        return tare__onnx_malformed(c, "expected a positive block_size, found %lld",
                                    (long long)size);
    TARE_TRY(tare__onnx_need_input(c, 0, "x", &b->x_value));
    TARE_TRY(tare__onnx_need_input(c, 1, "scale", &b->scale_value));
    TARE_TRY(tare__onnx_need_meta(c, 0, "x", &b->x));
    TARE_TRY(tare__onnx_need_meta(c, 1, "scale", &b->scale));
    TARE_TRY(tare__onnx_attr_int(c, "axis", 1, &axis));
    TARE_TRY(tare__onnx_axis(c, axis, b->x->ndim, &b->axis));
    tare__onnx_ignore_attr(c, "saturate"); // only for 8-bit floats
    if (tare__onnx_opset(c) >= 23) tare__onnx_ignore_attr(c, "precision");
    if (b->scale->dtype != TARE_FLOAT32)
        return tare__onnx_fail(c, "scales of %s are not supported",
                               tare_dtype_name(b->scale->dtype));
    TARE_TRY(check_scales(c, b, b->scale));
    if (b->zero_value.kind == VALUE_NONE) return TARE_OK;
    TARE_TRY(tare__onnx_need_meta(c, 2, "zero point", &b->zero_point));
    return check_scales(c, b, b->zero_point);
}

// Repeats a parameter of each block for each of its elements.
static tare_status spread(onnx_call *c, const blocks *b, value *v) {
    const int64_t along = b->x->shape[b->axis], size = b->size < along ? b->size : along;
    TARE_TRY(ONNX_CALL(c, v, "torch.repeat_interleave", *v, tare__int(size), tare__int(b->axis)));
    if (along % size == 0) return TARE_OK;
    return ONNX_CALL(c, v, "torch.narrow", *v, tare__int(b->axis), tare__int(0), tare__int(along));
}

tare_status tare__onnx_quantize_by_division(onnx_call *c, const onnx_division *d, value *out) {
    TARE_TRY(ONNX_CALL(c, out, "torch.div", d->x, d->scale));
    TARE_TRY(ONNX_CALL(c, out, "torch.round", *out));
    if (d->zero.kind != VALUE_NONE) TARE_TRY(ONNX_CALL(c, out, "torch.add", *out, d->zero));
    TARE_TRY(ONNX_CALL(c, out, "torch.clamp", *out, tare__int(d->least), tare__int(d->most)));
    return tare__onnx_to(c, out, d->dtype, out);
}

// The dtype of the integers: the zero point's, or the attribute's. 4-bit types are stored in 8
// bits.
static tare_status read_output_dtype(onnx_call *c, const blocks *b, tare_dtype *dtype,
                                     bool *is_packed) {
    int64_t type = 0;
    TARE_TRY(tare__onnx_attr_int(c, "output_dtype", 0, &type));
    *is_packed = type == ONNX_INT4 || type == ONNX_UINT4 || tare__onnx_is_packed_constant(c, 2);
    *dtype = type == ONNX_INT4 ? TARE_INT8 : TARE_UINT8;
    if (b->zero_point != NULL)
        *dtype = b->zero_point->dtype;
    else if (type != 0 && !*is_packed)
        TARE_TRY(tare__onnx_dtype(c, type, dtype));
    const bool is_known = *dtype == TARE_UINT8 || *dtype == TARE_INT8 || *dtype == TARE_UINT16 ||
                          *dtype == TARE_INT16;
    return is_known
               ? TARE_OK
               : tare__onnx_fail(c, "quantization to %s is not supported", tare_dtype_name(*dtype));
}

tare_status tare__onnx_quantize_blocks(onnx_call *c, int64_t block) {
    blocks b;
    onnx_division d = {.zero = tare__none()};
    bool is_packed = false;
    value y;
    TARE_TRY(read_blocks(c, block, &b));
    TARE_TRY(read_output_dtype(c, &b, &d.dtype, &is_packed));
    if (b.x->dtype != TARE_FLOAT32)
        return tare__onnx_fail(c, "quantization of %s is not supported",
                               tare_dtype_name(b.x->dtype));
    const dtype_info *info = tare__dtype(d.dtype);
    const int64_t divisor = is_packed ? 16 : 1; // a 4-bit value in 8 bits: -8 to 7, 0 to 15
    d.least = info->min / divisor;
    d.most = (info->max + 1) / divisor - 1;
    d.x = b.x_value;
    d.scale = b.scale_value;
    TARE_TRY(spread(c, &b, &d.scale));
    if (b.zero_point != NULL) {
        TARE_TRY(tare__onnx_to(c, &b.zero_value, TARE_FLOAT32, &d.zero));
        TARE_TRY(spread(c, &b, &d.zero));
    }
    TARE_TRY(tare__onnx_quantize_by_division(c, &d, &y));
    tare__onnx_set_output(c, 0, &y);
    return TARE_OK;
}

// (x - zero point) * scale, computed as the model runs.
static tare_status dequantize_later(onnx_call *c, blocks *b) {
    value x, zero;
    TARE_TRY(tare__onnx_to(c, &b->x_value, TARE_FLOAT32, &x));
    TARE_TRY(spread(c, b, &b->scale_value));
    if (b->zero_point != NULL) {
        TARE_TRY(tare__onnx_to(c, &b->zero_value, TARE_FLOAT32, &zero));
        TARE_TRY(spread(c, b, &zero));
        TARE_TRY(ONNX_CALL(c, &x, "torch.sub", x, zero));
    }
    TARE_TRY(ONNX_CALL(c, &x, "torch.mul", x, b->scale_value));
    tare__onnx_set_output(c, 0, &x);
    return TARE_OK;
}

// --- constants ---

// The index of the parameter for element i.
static int64_t block_of(const blocks *b, int64_t i) {
    int64_t inner = 1;
    for (int d = (int)b->axis + 1; d < b->x->ndim; d++) inner *= b->x->shape[d];
    const int64_t along = b->x->shape[b->axis], count = b->scale->shape[b->axis];
    const int64_t outer = i / inner / along, at = i / inner % along;
    return (outer * count + at / b->size) * inner + i % inner;
}

static tare_status dequantize_now(onnx_call *c, const blocks *b, tare_tensor **out) {
    TARE_TRY(tare__onnx_new_floats(c, b->x->ndim, b->x->shape, out));
    for (int64_t i = 0; i < b->x->count; i++) {
        const int64_t at = block_of(b, i);
        const int64_t zero = b->zero_point != NULL ? tare__tensor_get_int(b->zero_point, at) : 0;
        tare__f32(*out)[i] =
            (float)(tare__tensor_get_int(b->x, i) - zero) * tare__f32(b->scale)[at];
    }
    return TARE_OK;
}

// The parameters in the order of a matrix [rows][columns] whose rows are divided into blocks.
static tare_status make_group_params(onnx_call *c, const blocks *b, bool is_packed, qparams **out) {
    const tare_dtype dtype = b->x->dtype == TARE_INT8 ? TARE_QINT8 : TARE_QUINT8;
    const int64_t count = b->scale->count, rows = b->x->shape[1 - b->axis];
    double *numbers = tare__arena_array(tare__onnx_arena(c), 2 * (size_t)count, sizeof *numbers);
    if (numbers == NULL) return tare__out_of_memory(tare__onnx_error(c));
    for (int64_t i = 0; i < count; i++) {
        const int64_t from = b->axis == 1 ? i : i % (count / rows) * rows + i / (count / rows);
        numbers[i] = (double)tare__f32(b->scale)[from];
        numbers[count + i] = b->zero_point != NULL ? tare__tensor_get(b->zero_point, from) : 0;
    }
    qparams *q =
        tare__qparams_create(TARE_PER_GROUP_AFFINE, dtype, 0, count, numbers, numbers + count);
    if (q == NULL) return tare__out_of_memory(tare__onnx_error(c));
    if (is_packed) {
        q->quant_min /= 16; // no other reference exists yet
        q->quant_max = (q->quant_max + 1) / 16 - 1;
    }
    *out = q;
    return TARE_OK;
}

// The integers as a matrix with groups along its rows: x, or its transpose if blocks are along
// columns.
static tare_status make_groups(onnx_call *c, const blocks *b, bool is_packed, tare_tensor **out) {
    const int64_t rows = b->x->shape[0], columns = b->x->shape[1], turned[] = {columns, rows};
    qparams *q = NULL;
    int64_t channel = 0;
    TARE_TRY(make_group_params(c, b, is_packed, &q));
    tare_status status = TARE_OK;
    if (tare__qparams_fault(q, &channel) != QPARAMS_FINE)
        *out = NULL; // only numbers
    else if (b->axis == 1)
        status = tare__tensor_requalify(b->x, q, out, tare__onnx_error(c));
    else
        status = tare__tensor_quantized(2, turned, q, out, tare__onnx_error(c));
    tare__qparams_release(q);
    if (status != TARE_OK || *out == NULL || b->axis == 1) return status;
    const uint8_t *from = b->x->data;
    uint8_t *to = (*out)->data;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++) to[k * rows + i] = from[i * columns + k];
    return TARE_OK;
}

static bool makes_groups(const blocks *b) {
    return b->x->ndim == 2 && (b->x->dtype == TARE_INT8 || b->x->dtype == TARE_UINT8) &&
           b->x->count > 0 && b->x->shape[b->axis] % b->size == 0;
}

static tare_status dequantize_constant(onnx_call *c, const blocks *b, bool is_packed) {
    tare_tensor *values = NULL, *quantized = NULL;
    value out;
    TARE_TRY(dequantize_now(c, b, &values));
    const tare_status status = makes_groups(b) ? make_groups(c, b, is_packed, &quantized) : TARE_OK;
    if (status != TARE_OK) {
        tare_tensor_release(values);
        return status;
    }
    TARE_TRY(tare__onnx_dequantized_blocks(c, b->x, values, quantized, b->axis == 0, &out));
    tare__onnx_set_output(c, 0, &out);
    return TARE_OK;
}

tare_status tare__onnx_dequantize_blocks(onnx_call *c, int64_t block) {
    blocks b;
    int64_t type = 0;
    TARE_TRY(read_blocks(c, block, &b));
    if (tare__onnx_opset(c) >= 23) TARE_TRY(tare__onnx_attr_int(c, "output_dtype", 0, &type));
    const bool is_constant = b.x_value.kind == VALUE_TENSOR && b.x->data != NULL &&
                             b.scale->data != NULL &&
                             (b.zero_point == NULL || b.zero_point->data != NULL);
    if (b.x->q != NULL || tare__dtype(b.x->dtype)->is_float || b.x->dtype == TARE_BOOL)
        return tare__onnx_fail(c, "%s in blocks are not supported", tare_dtype_name(b.x->dtype));
    return is_constant ? dequantize_constant(c, &b, tare__onnx_is_packed_constant(c, 0))
                       : dequantize_later(c, &b);
}
