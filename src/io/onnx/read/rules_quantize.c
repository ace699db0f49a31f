// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear as the reference form has them: 8 bits
// as torch's quantized tensors, other widths and computed parameters as decomposed operators.
#include <float.h>
#include <string.h>

#include "io/onnx/read/rules_common.h"

#define DECOMPOSED "torch.ops.quantized_decomposed."

// Scale and zero point of a node.
typedef struct linear {
    const tare_tensor *scale, *zero_point;       // constants; the latter may be NULL
    value scale_value, zero_value;               // what is computed
    bool is_computed, is_per_channel, is_packed; // packed: of 4 bits
    int64_t axis;
    tare_dtype dtype; // of the integers
} linear;

static tare_status read_axis(onnx_call *c, const tare_tensor *x, linear *l) {
    int64_t axis, block = 0;
    TARE_TRY(tare__onnx_attr_int(c, "axis", 1, &axis));
    if (tare__onnx_opset(c) >= 21) TARE_TRY(tare__onnx_attr_int(c, "block_size", 0, &block));
    if (block != 0) return tare__onnx_fail(c, "scales of blocks are not supported");
    if (l->is_computed || l->scale->count == 1) return TARE_OK;
    l->is_per_channel = true;
    TARE_TRY(tare__onnx_axis(c, axis, x->ndim, &l->axis));
    if (l->scale->count == x->shape[l->axis]) return TARE_OK;
    return tare__onnx_malformed(c, "%lld scales for a dimension of %lld",
                                (long long)l->scale->count, (long long)x->shape[l->axis]);
}

static tare_status read_linear(onnx_call *c, const tare_tensor *x, tare_dtype otherwise,
                               linear *l) {
    const tare_tensor *zero = NULL;
    *l = (linear){.scale = tare__onnx_constant(c, 1), .zero_point = tare__onnx_constant(c, 2)};
    TARE_TRY(tare__onnx_need_input(c, 1, "scale", &l->scale_value));
    l->zero_value = tare__onnx_input(c, 2);
    l->is_packed = tare__onnx_is_packed_constant(c, 2);
    l->is_computed = l->scale == NULL || (l->zero_value.kind == VALUE_NODE);
    if (l->zero_value.kind != VALUE_NONE) zero = tare__onnx_meta(c, &l->zero_value);
    l->dtype = zero != NULL ? zero->dtype : otherwise;
    if (tare__onnx_opset(c) >= 21) tare__onnx_ignore_attr(c, "precision");
    if (tare__onnx_opset(c) >= 19) tare__onnx_ignore_attr(c, "saturate"); // of 8-bit floats only
    if (l->scale != NULL && l->scale->dtype != TARE_FLOAT32)
        return tare__onnx_fail(c, "scales of %s are not supported",
                               tare_dtype_name(l->scale->dtype));
    if (!l->is_computed && l->zero_point != NULL && l->zero_point->count != l->scale->count)
        return tare__onnx_malformed(c, "%lld scales and %lld zero points",
                                    (long long)l->scale->count, (long long)l->zero_point->count);
    const bool is_whole = l->dtype == TARE_UINT8 || l->dtype == TARE_INT8 ||
                          l->dtype == TARE_UINT16 || l->dtype == TARE_INT16 ||
                          l->dtype == TARE_INT32;
    if (!is_whole)
        return tare__onnx_fail(c, "quantization to %s is not supported", tare_dtype_name(l->dtype));
    return read_axis(c, x, l);
}

static tare_dtype quantized_dtype(tare_dtype dtype) {
    return dtype == TARE_UINT8   ? TARE_QUINT8
           : dtype == TARE_INT8  ? TARE_QINT8
           : dtype == TARE_INT32 ? TARE_QINT32
                                 : TARE_DTYPE_UNSET;
}

static double zero_at(const linear *l, int64_t i) {
    return l->zero_point != NULL ? tare__tensor_get(l->zero_point, i) : 0;
}

// A scale as the double that it was written from.
static double scale_at(const linear *l, int64_t i) {
    return tare__tensor_get(l->scale, i);
}

// --- calls ---

static tare_status zero_tensor(onnx_call *c, const linear *l, value *out) {
    tare_tensor *t = NULL;
    TARE_TRY(tare__onnx_new_tensor(c, TARE_INT64, 1, &l->scale->count, &t));
    for (int64_t i = 0; i < t->count; i++) tare__tensor_set(t, i, zero_at(l, i));
    return tare__onnx_take_tensor(c, t, out);
}

// The arguments behind the tensor: of torch's functions, and of decomposed ones.
static tare_status arguments(onnx_call *c, const linear *l, bool is_decomposed, value *args,
                             size_t *count) {
    const dtype_info *info = tare__dtype(l->dtype);
    size_t n = 1;
    if (l->is_computed) {
        args[n++] = l->scale_value;
        args[n++] = l->zero_value.kind != VALUE_NONE ? l->zero_value : tare__int(0);
    } else if (l->is_per_channel) {
        args[n++] = l->scale_value;
        TARE_TRY(zero_tensor(c, l, &args[n++]));
        args[n++] = tare__int(l->axis);
    } else {
        args[n++] = tare__float(scale_at(l, 0));
        args[n++] = tare__int((int64_t)zero_at(l, 0));
    }
    if (is_decomposed) { // 4 of 8 bits: -8 to 7, 0 to 15
        const int64_t parts = l->is_packed ? 16 : 1;
        args[n++] = tare__int(info->min / parts);
        args[n++] = tare__int((info->max + 1) / parts - 1);
    }
    args[n++] = tare__dtype_value(is_decomposed ? l->dtype : quantized_dtype(l->dtype));
    *count = n;
    return TARE_OK;
}

static const char *decomposed(const linear *l, bool quantizes) {
    if (l->is_per_channel)
        return quantizes ? DECOMPOSED "quantize_per_channel.default"
                         : DECOMPOSED "dequantize_per_channel.default";
    if (l->is_computed)
        return quantizes ? DECOMPOSED "quantize_per_tensor.tensor"
                         : DECOMPOSED "dequantize_per_tensor.tensor";
    return quantizes ? DECOMPOSED "quantize_per_tensor.default"
                     : DECOMPOSED "dequantize_per_tensor.default";
}

// Parameters that are computed in a run: ONNX divides where torch multiplies by the inverse, so
// that ties fall otherwise.
static tare_status quantize_by_division(onnx_call *c, const value *x, const value *scale,
                                        const value *zero, tare_dtype dtype, value *out) {
    const dtype_info *info = tare__dtype(dtype);
    TARE_TRY(ONNX_CALL(c, out, "torch.div", *x, *scale));
    TARE_TRY(ONNX_CALL(c, out, "torch.round", *out));
    TARE_TRY(ONNX_CALL(c, out, "torch.add", *out, *zero));
    TARE_TRY(ONNX_CALL(c, out, "torch.clamp", *out, tare__int(info->min), tare__int(info->max)));
    return tare__onnx_to(c, out, dtype, out);
}

static tare_status quantize_linear(onnx_call *c) {
    value args[8];
    size_t count = 0;
    int64_t type = 0;
    const tare_tensor *x = NULL;
    linear l;
    tare_dtype otherwise = TARE_UINT8;
    TARE_TRY(tare__onnx_need_input(c, 0, "x", &args[0]));
    TARE_TRY(tare__onnx_need_meta(c, 0, "x", &x));
    if (tare__onnx_opset(c) >= 21) TARE_TRY(tare__onnx_attr_int(c, "output_dtype", 0, &type));
    if (type != 0) TARE_TRY(tare__onnx_dtype(c, type, &otherwise));
    TARE_TRY(read_linear(c, x, otherwise, &l));
    if (x->dtype != TARE_FLOAT32)
        return tare__onnx_fail(c, "quantization of %s is not supported", tare_dtype_name(x->dtype));
    const bool is_byte = l.dtype == TARE_UINT8 || l.dtype == TARE_INT8;
    const bool is_decomposed = !is_byte || l.is_computed || l.is_packed;
    TARE_TRY(arguments(c, &l, is_decomposed, args, &count));
    if (l.is_computed && !l.is_per_channel && !l.is_packed) {
        value y;
        TARE_TRY(quantize_by_division(c, &args[0], &args[1], &args[2], l.dtype, &y));
        tare__onnx_set_output(c, 0, &y);
        return TARE_OK;
    }
    const char *target = is_decomposed      ? decomposed(&l, true)
                         : l.is_per_channel ? "torch.quantize_per_channel"
                                            : "torch.quantize_per_tensor";
    return tare__onnx_one(c, target, count, args);
}

// --- dequantize ---

static tare_status make_qparams(onnx_call *c, const linear *l, qparams **out) {
    const int64_t count = l->scale->count;
    double *numbers = tare__arena_array(tare__onnx_arena(c), 2 * (size_t)count, sizeof *numbers);
    if (numbers == NULL) return tare__out_of_memory(tare__onnx_error(c));
    for (int64_t i = 0; i < count; i++) {
        numbers[i] = scale_at(l, i);
        numbers[count + i] = zero_at(l, i);
    }
    *out = tare__qparams_create(
        l->is_per_channel ? TARE_PER_CHANNEL_AFFINE : TARE_PER_TENSOR_AFFINE,
        quantized_dtype(l->dtype), (int)l->axis, count, numbers, numbers + count);
    return *out != NULL ? TARE_OK : tare__out_of_memory(tare__onnx_error(c));
}

// Integers of the file: what they stand for, which a module may hold as a quantized weight.
static tare_status constant(onnx_call *c, const tare_tensor *x, const linear *l) {
    qparams *q = NULL;
    tare_tensor *codes = NULL;
    value out;
    TARE_TRY(make_qparams(c, l, &q));
    int64_t channel = 0;
    tare_status status = TARE_OK;
    if (tare__qparams_fault(q, &channel) != QPARAMS_FINE)
        status =
            tare__onnx_malformed(c, "scale %g and zero point %g are none of %s", q->scale[channel],
                                 q->zero_point[channel], tare_dtype_name(l->dtype));
    if (status == TARE_OK) status = tare__tensor_requalify(x, q, &codes, tare__onnx_error(c));
    tare__qparams_release(q);
    if (status == TARE_OK) status = tare__onnx_dequantized(c, x, codes, &out);
    if (status == TARE_OK) tare__onnx_set_output(c, 0, &out);
    return status;
}

static bool has_params(const tare_tensor *x, const linear *l) {
    const qparams *q = x->q;
    bool same = q != NULL && !l->is_computed && q->count == l->scale->count &&
                tare__qscheme_is_per_channel(q->scheme) == l->is_per_channel &&
                (!l->is_per_channel || q->axis == l->axis);
    for (int64_t i = 0; same && i < q->count; i++)
        same = (float)q->scale[i] == (float)scale_at(l, i) && q->zero_point[i] == zero_at(l, i);
    return same;
}

static tare_status dequantize_linear(onnx_call *c) {
    value args[8];
    size_t count = 0;
    int64_t type = 0;
    const tare_tensor *x = NULL;
    linear l;
    TARE_TRY(tare__onnx_need_input(c, 0, "x", &args[0]));
    TARE_TRY(tare__onnx_need_meta(c, 0, "x", &x));
    if (tare__onnx_opset(c) >= 23) TARE_TRY(tare__onnx_attr_int(c, "output_dtype", 0, &type));
    TARE_TRY(read_linear(c, x, tare__dtype(x->dtype)->storage, &l));
    l.dtype = tare__dtype(x->dtype)->storage; // a zero point is of the same
    const bool has_form = quantized_dtype(l.dtype) != TARE_DTYPE_UNSET;
    if (x->data != NULL && args[0].kind == VALUE_TENSOR && !l.is_computed && has_form)
        return constant(c, x, &l);
    if (has_params(x, &l)) {
        value y;
        TARE_TRY(ONNX_METHOD(c, &y, "dequantize", args[0]));
        tare__onnx_set_output(c, 0, &y);
        return TARE_OK;
    }
    if (x->q != NULL) TARE_TRY(ONNX_CALL(c, &args[0], "torch.int_repr", args[0]));
    TARE_TRY(arguments(c, &l, true, args, &count));
    return tare__onnx_one(c, decomposed(&l, false), count, args);
}

// --- dynamic ---

static tare_status dynamic_quantize_linear(onnx_call *c) {
    value x, pair, scale, zero, y;
    TARE_TRY(tare__onnx_need_input(c, 0, "x", &x));
    TARE_TRY(ONNX_CALL(c, &pair, DECOMPOSED "choose_qparams.tensor", x, tare__int(0),
                       tare__int(255), tare__float((double)FLT_EPSILON),
                       tare__dtype_value(TARE_UINT8)));
    TARE_TRY(tare__onnx_item(c, &pair, 0, &scale));
    TARE_TRY(tare__onnx_item(c, &pair, 1, &zero));
    TARE_TRY(tare__onnx_to(c, &scale, TARE_FLOAT32, &scale)); // torch's is a double
    TARE_TRY(quantize_by_division(c, &x, &scale, &zero, TARE_UINT8, &y));
    tare__onnx_set_output(c, 0, &y);
    if (tare__onnx_wants_output(c, 1)) {
        TARE_TRY(tare__onnx_reshape(c, &scale, NULL, 0, &scale));
        tare__onnx_set_output(c, 1, &scale);
    }
    if (!tare__onnx_wants_output(c, 2)) return TARE_OK;
    TARE_TRY(tare__onnx_reshape(c, &zero, NULL, 0, &zero));
    TARE_TRY(tare__onnx_to(c, &zero, TARE_UINT8, &zero));
    tare__onnx_set_output(c, 2, &zero);
    return TARE_OK;
}

static const onnx_rule rows[] = {
    {"DequantizeLinear", .translate = dequantize_linear},
    {"DynamicQuantizeLinear", .translate = dynamic_quantize_linear},
    {"QuantizeLinear", .translate = quantize_linear},
};

const onnx_rule_table tare__onnx_quantize_rules = ONNX_RULES(rows);
