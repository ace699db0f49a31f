// SPDX-License-Identifier: Apache-2.0
// Quantize and dequantize. Reads QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear as in
// the reference model: 8 bits as torch's quantized tensors, other widths and computed parameters as
// decomposed operators. Writes all of torch's forms as QuantizeLinear and DequantizeLinear.
#include <float.h>
#include <string.h>

#include "io/onnx/families/families.h"
#include "io/onnx/families/quantize.h"
#include "io/onnx/pack.h"
#include "io/onnx/read/rules_common.h"
#include "io/onnx/write/state.h"

// --- reading ---

#define DECOMPOSED "torch.ops.quantized_decomposed."

// Scale and zero point of a node.
typedef struct linear {
    const tare_tensor *scale, *zero_point;       // constants; zero_point may be NULL
    value scale_value, zero_value;               // if they are computed
    bool is_computed, is_per_channel, is_packed; // is_packed: 4 bits
    int64_t axis;
    tare_dtype dtype; // of the integers
} linear;

static tare_status read_axis(onnx_call *c, const tare_tensor *x, linear *l) {
    int64_t axis;
    TARE_TRY(tare__onnx_attr_int(c, "axis", 1, &axis));
    if (l->is_computed || l->scale->count == 1) return TARE_OK;
    l->is_per_channel = true;
    TARE_TRY(tare__onnx_axis(c, axis, x->ndim, &l->axis));
    if (l->scale->count == x->shape[l->axis]) return TARE_OK;
    return tare__onnx_malformed(c, "%lld scales for a dimension of size %lld",
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
    if (tare__onnx_opset(c) >= 19) tare__onnx_ignore_attr(c, "saturate"); // only for 8-bit floats
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

// The scale as the shortest double that gives the file's float.
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

// The arguments after the tensor, for torch's functions or for decomposed operators.
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
    if (is_decomposed) { // a 4-bit value in 8 bits: -8 to 7, 0 to 15
        const int64_t divisor = l->is_packed ? 16 : 1;
        args[n++] = tare__int(info->min / divisor);
        args[n++] = tare__int((info->max + 1) / divisor - 1);
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

static tare_status quantize_by_division(onnx_call *c, const value *x, const value *scale,
                                        const value *zero, tare_dtype dtype, value *out) {
    const dtype_info *info = tare__dtype(dtype);
    return tare__onnx_quantize_by_division(
        c, &(onnx_division){*x, *scale, *zero, dtype, info->min, info->max}, out);
}

static tare_status translate_quantize_linear(onnx_call *c) {
    value args[8];
    size_t count = 0;
    int64_t type = 0, block = 0;
    const tare_tensor *x = NULL;
    linear l;
    tare_dtype otherwise = TARE_UINT8;
    TARE_TRY(tare__onnx_need_input(c, 0, "x", &args[0]));
    TARE_TRY(tare__onnx_need_meta(c, 0, "x", &x));
    if (tare__onnx_opset(c) >= 21) {
        TARE_TRY(tare__onnx_attr_int(c, "block_size", 0, &block));
        if (block != 0) return tare__onnx_quantize_blocks(c, block);
        TARE_TRY(tare__onnx_attr_int(c, "output_dtype", 0, &type));
    }
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

// Dequantizes constant integers. A module may hold the result as a quantized weight.
static tare_status constant(onnx_call *c, const tare_tensor *x, const linear *l) {
    qparams *q = NULL;
    tare_tensor *quantized = NULL;
    value out;
    TARE_TRY(make_qparams(c, l, &q));
    int64_t channel = 0;
    tare_status status = TARE_OK;
    if (tare__qparams_fault(q, &channel) != QPARAMS_FINE)
        status = tare__onnx_malformed(c, "scale %g and zero point %g are not valid for %s",
                                      q->scale[channel], q->zero_point[channel],
                                      tare_dtype_name(l->dtype));
    if (status == TARE_OK) status = tare__tensor_requalify(x, q, &quantized, tare__onnx_error(c));
    tare__qparams_release(q);
    if (status == TARE_OK) status = tare__onnx_dequantized(c, x, quantized, &out);
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

static tare_status translate_dequantize_linear(onnx_call *c) {
    value args[8];
    size_t count = 0;
    int64_t type = 0, block = 0;
    const tare_tensor *x = NULL;
    linear l;
    if (tare__onnx_opset(c) >= 21) TARE_TRY(tare__onnx_attr_int(c, "block_size", 0, &block));
    if (block != 0) return tare__onnx_dequantize_blocks(c, block);
    TARE_TRY(tare__onnx_need_input(c, 0, "x", &args[0]));
    TARE_TRY(tare__onnx_need_meta(c, 0, "x", &x));
    if (tare__onnx_opset(c) >= 23) TARE_TRY(tare__onnx_attr_int(c, "output_dtype", 0, &type));
    TARE_TRY(read_linear(c, x, tare__dtype(x->dtype)->storage, &l));
    l.dtype = tare__dtype(x->dtype)->storage; // the zero point has the same dtype
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

static tare_status translate_dynamic_quantize_linear(onnx_call *c) {
    value x, pair, scale, zero, y;
    TARE_TRY(tare__onnx_need_input(c, 0, "x", &x));
    TARE_TRY(ONNX_CALL(c, &pair, DECOMPOSED "choose_qparams.tensor", x, tare__int(0),
                       tare__int(255), tare__float((double)FLT_EPSILON),
                       tare__dtype_value(TARE_UINT8)));
    TARE_TRY(tare__onnx_item(c, &pair, 0, &scale));
    TARE_TRY(tare__onnx_item(c, &pair, 1, &zero));
    TARE_TRY(tare__onnx_to(c, &scale, TARE_FLOAT32, &scale)); // torch's scale is a double
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

static const onnx_rule read_rows[] = {
    {"DequantizeLinear", .translate = translate_dequantize_linear},
    {"DynamicQuantizeLinear", .translate = translate_dynamic_quantize_linear},
    {"QuantizeLinear", .translate = translate_quantize_linear},
};

// --- writing ---

static const char *real(onnx_out *o, double n) {
    return tare__out_number(o, TARE_FLOAT32, n);
}

// A parameter that is a tensor of the model becomes an initializer with its name; equal constants
// share it.
static void use_own(onnx_out *o, size_t i) {
    const value *v = tare__out_call(o)->param[i];
    if (v != NULL && v->kind == VALUE_TENSOR && v->as.tensor->data != NULL)
        tare__out_quantized(o, v->as.tensor);
}

// --- torch.quantize_per_tensor and its kin: the result says its parameters ---

static void write_quantize(onnx_out *o) {
    use_own(o, 1);
    tare__out_result(o, tare__out_input(o, 0));
}

static void write_dequantize(onnx_out *o) {
    tare__out_result(o, tare__out_input(o, 0));
}

static void write_int_repr(onnx_out *o) {
    tare__out_result_raw(o, OUT(o, "Identity", tare__out_quantized(o, tare__out_meta(o, 0))));
}

// --- ranges that are found when the model runs ---

typedef struct dynamic_values {
    const char *scale, *zero_point; // 0-dimensional; zero_point in the storage dtype
    const char *quantized;          // "": not computed
} dynamic_values;

static const char *extreme(onnx_out *o, const char *reduces, const char *limits, const char *x,
                           int ndim) {
    int64_t axes[TARE_MAX_DIMS];
    for (int d = 0; d < ndim; d++) axes[d] = d;
    if (ndim > 0) x = tare__out_reduce(o, reduces, x, axes, (size_t)ndim, false);
    return OUT(o, limits, x, real(o, 0));
}

static const char *affine_zero(onnx_out *o, const dynamic_spec *s, const char *low,
                               const char *scale) {
    const char *z =
        OUT(o, "Sub", real(o, s->quant_min), OUT(o, "Round", OUT(o, "Div", low, scale)));
    z = tare__out_clip(o, z, TARE_FLOAT32, s->quant_min, s->quant_max);
    return tare__out_cast(o, z, TARE_FLOAT32, s->storage);
}

static dynamic_values choose(onnx_out *o, const char *x, int ndim, const dynamic_spec *s) {
    const double steps = s->quant_max - s->quant_min;
    const char *low = extreme(o, "ReduceMin", "Min", x, ndim);
    const char *high = extreme(o, "ReduceMax", "Max", x, ndim);
    const char *span = s->symmetric
                           ? OUT(o, "Mul", OUT(o, "Max", OUT(o, "Neg", low), high), real(o, 2))
                           : OUT(o, "Sub", high, low);
    const char *scale = OUT(o, "Div", span, real(o, steps));
    scale = OUT(o, "Max", scale, real(o, s->eps > 0 ? s->eps : 1e-30));
    return (dynamic_values){scale,
                            s->symmetric ? tare__out_number(o, s->storage, s->middle)
                                         : affine_zero(o, s, low, scale),
                            ""};
}

// ONNX's DynamicQuantizeLinear does all of it for uint8 in the full range.
static dynamic_values choose_plainly(onnx_out *o, const char *x) {
    const char *all[3];
    OUT(o, "DynamicQuantizeLinear", x);
    tare__out_outputs(o, 3, all);
    return (dynamic_values){all[1], all[2], all[0]};
}

static bool is_plain(const dynamic_spec *s) {
    return s->storage == TARE_UINT8 && s->quant_min == 0 && s->quant_max == 255 && !s->symmetric;
}

static dynamic_values choose_any(onnx_out *o, const char *x, int ndim, const dynamic_spec *s) {
    return is_plain(s) ? choose_plainly(o, x) : choose(o, x, ndim, s);
}

dynamic_spec tare__out_dynamic_spec(bool is_signed, bool reduce_range) {
    const int divisor = reduce_range ? 2 : 1;
    return (dynamic_spec){.quant_min = is_signed ? -128 / divisor : 0,
                          .quant_max = is_signed ? 127 / divisor : 255 / divisor,
                          .storage = is_signed ? TARE_INT8 : TARE_UINT8};
}

// The operator fills the type's range; a smaller quantized range is clipped afterwards.
static const char *narrowed(onnx_out *o, const char *quantized, tare_dtype dtype, double least,
                            double most) {
    const dtype_info *info = tare__dtype(dtype);
    if (least <= (double)info->min && most >= (double)info->max) return quantized;
    return tare__out_clip(o, quantized, dtype, least, most);
}

const char *tare__out_quantize_dynamic(onnx_out *o, const tare_tensor *x, const char *name,
                                       const dynamic_spec *s, const char **scale,
                                       const char **zero_point) {
    const dynamic_values v = choose_any(o, name, x->ndim, s);
    *scale = v.scale;
    *zero_point = v.zero_point;
    if (*v.quantized != '\0') return v.quantized;
    const char *quantized = OUT(o, "QuantizeLinear", name, v.scale, v.zero_point);
    return narrowed(o, quantized, s->storage, s->quant_min, s->quant_max);
}

static void write_quantize_dynamic(onnx_out *o) {
    const tare_tensor *y = tare__out_result_meta(o);
    const char *scale, *zero_point, *x = tare__out_input(o, 0);
    if (y->q == NULL) {
        tare__out_result(o, tare__out_cast(o, x, TARE_FLOAT32, y->dtype));
        return;
    }
    const dynamic_spec s =
        tare__out_dynamic_spec(y->dtype == TARE_QINT8, tare__out_bool(o, 2, false));
    const char *quantized =
        tare__out_quantize_dynamic(o, tare__out_meta(o, 0), x, &s, &scale, &zero_point);
    tare__out_set_dynamic(o, y, scale, zero_point);
    tare__out_result_raw(o, quantized);
}

// --- quantized_decomposed: plain integers, and parameters in the call ---

// Parameters as values of the file: constants or computed values.
typedef struct parameters {
    const char *scale, *zero_point;
    bool is_per_channel;
    int64_t axis;
    double quant_min, quant_max;
    tare_dtype dtype; // of the integers
} parameters;

static tare_dtype checked_dtype(onnx_out *o, tare_dtype dtype, bool quantizes) {
    const bool is_byte = dtype == TARE_UINT8 || dtype == TARE_INT8;
    const bool is_wide = dtype == TARE_UINT16 || dtype == TARE_INT16;
    const char *op_type = quantizes ? "QuantizeLinear" : "DequantizeLinear";
    if (is_wide && tare__out_opset(o) < 21)
        tare__out_refuse(o, "%s takes %s from opset 21 on", op_type, tare_dtype_name(dtype));
    if (!is_byte && !is_wide && !(dtype == TARE_INT32 && !quantizes))
        tare__out_refuse(o, "%s takes %s in no opset", op_type, tare_dtype_name(dtype));
    return dtype;
}

// A per-tensor scale or zero point is written 0-dimensional, whatever its shape in the call.
static const char *scalar(onnx_out *o, size_t i, tare_dtype dtype) {
    const value *v = tare__out_call(o)->param[i];
    if (v == NULL || v->kind != VALUE_TENSOR) return tare__out_operand(o, i, dtype);
    const tare_tensor *t = v->as.tensor;
    const out_dynamic *d = tare__out_find_dynamic(o, t);
    if (d != NULL) return dtype == TARE_FLOAT32 ? d->scale : d->zero_point;
    if (t->data != NULL) {
        use_own(o, i);
        return tare__out_number(o, dtype, tare__tensor_get(t, 0));
    }
    const char *x = tare__out_cast(o, tare__out_quantized(o, t), t->dtype, dtype);
    return t->ndim > 0 ? tare__out_reshape(o, x, NULL, 0) : x;
}

// A vector with one element per channel. A float32 tensor of the model is used as it is.
static const char *channels(onnx_out *o, size_t i, tare_dtype dtype) {
    const tare_tensor *t = tare__out_meta(o, i);
    tare_tensor *made = NULL;
    if (tare__out_failed(o)) return "";
    if (t->dtype == dtype || t->data == NULL)
        return tare__out_cast(o, tare__out_quantized(o, t), t->dtype, dtype);
    tare__out_try(o, tare_tensor_create(dtype, 1, &t->count, &made, tare__out_call(o)->err));
    if (tare__out_failed(o)) return "";
    for (int64_t c = 0; c < t->count; c++) tare__tensor_set(made, c, tare__tensor_get(t, c));
    const char *name = tare__out_constant(o, made, "zero_points");
    const char *path = tare__out_path(o->w, t);
    if (path != NULL) tare__out_source(o, path, name, NULL, NULL, -1);
    tare_tensor_release(made);
    return name;
}

static parameters per_tensor(onnx_out *o, bool quantizes) {
    parameters p = {.quant_min = tare__out_double(o, 3, 0), .quant_max = tare__out_double(o, 4, 0)};
    const tare_tensor *quantized = quantizes ? tare__out_result_meta(o) : tare__out_meta(o, 0);
    p.dtype = checked_dtype(o, quantized->dtype, quantizes);
    p.scale = scalar(o, 1, TARE_FLOAT32);
    p.zero_point = scalar(o, 2, p.dtype);
    return p;
}

static parameters per_channel(onnx_out *o, bool quantizes) {
    const tare_tensor *quantized = quantizes ? tare__out_result_meta(o) : tare__out_meta(o, 0);
    parameters p = {.is_per_channel = true,
                    .axis = tare__out_dim(o, 3, 0, quantized->ndim),
                    .quant_min = tare__out_double(o, 4, 0),
                    .quant_max = tare__out_double(o, 5, 0)};
    const value *zeros = tare__out_call(o)->param[2];
    p.dtype = checked_dtype(o, quantized->dtype, quantizes);
    if (zeros != NULL && zeros->kind == VALUE_TENSOR &&
        tare__dtype(zeros->as.tensor->dtype)->is_float)
        tare__out_refuse(o, "zero points must be integers");
    p.scale = channels(o, 1, TARE_FLOAT32);
    p.zero_point = tare__out_given(o, 2) ? channels(o, 2, p.dtype) : "";
    return p;
}

static void quantize_by(onnx_out *o, const parameters *p) {
    const value *scale = tare__out_call(o)->param[1];
    const out_dynamic *d = scale != NULL && scale->kind == VALUE_TENSOR
                               ? tare__out_find_dynamic(o, scale->as.tensor)
                               : NULL;
    const char *x = tare__out_input(o, 0);
    const char *quantized;
    if (d != NULL && d->quantized != NULL && strcmp(d->source, x) == 0) {
        quantized = d->quantized; // DynamicQuantizeLinear has produced them
    } else {
        quantized = OUT(o, "QuantizeLinear", x, p->scale, p->zero_point);
        if (p->is_per_channel) tare__out_attr_int(o, "axis", p->axis);
    }
    tare__out_result_raw(o, narrowed(o, quantized, p->dtype, p->quant_min, p->quant_max));
}

static bool fits(const tare_tensor *t, const parameters *p) {
    for (int64_t i = 0; i < t->count; i++)
        if (tare__tensor_get(t, i) < p->quant_min || tare__tensor_get(t, i) > p->quant_max)
            return false;
    return true;
}

// Weights of 4 bits are packed if the opset allows it; the zero point then has 4 bits, too.
static bool is_packed(onnx_out *o, const tare_tensor *t, const parameters *p, int *type) {
    const bool is_signed = p->dtype == TARE_INT8 && p->quant_min >= -8 && p->quant_max <= 7;
    const bool is_unsigned = p->dtype == TARE_UINT8 && p->quant_min >= 0 && p->quant_max <= 15;
    *type = is_signed ? ONNX_INT4 : ONNX_UINT4;
    return tare__out_opset(o) >= 21 && t->data != NULL && (is_signed || is_unsigned) &&
           tare__out_path(o->w, t) != NULL && fits(t, p);
}

static const char *packed(onnx_out *o, const tare_tensor *t, int type) {
    const char *path = tare__out_path(o->w, t);
    const char *known = tare__out_bound(o->w, t);
    if (known != NULL) return known;
    known = tare__out_add_tensor(o->w, path, t, type);
    if (known == NULL || !tare__out_bind(o->w, t, known))
        tare__out_try(o, tare__out_of_memory(tare__out_call(o)->err));
    else
        tare__out_source(o, path, known, NULL, NULL, -1);
    return known != NULL ? known : "";
}

static const char *packed_zeros(onnx_out *o, const char *name, int type) {
    const out_tensor *t = tare__out_find_tensor(o->w, name);
    if (t == NULL) tare__out_refuse(o, "the zero points of 4-bit values must be constant");
    if (t == NULL || tare__out_failed(o)) return "";
    const char *made = tare__out_add_tensor(o->w, "zero_point", t->t, type);
    if (made == NULL) tare__out_try(o, tare__out_of_memory(tare__out_call(o)->err));
    return made != NULL ? made : "";
}

static void dequantize_by(onnx_out *o, const parameters *p) {
    const tare_tensor *t = tare__out_meta(o, 0);
    const char *quantized, *zero_point = p->zero_point;
    int type;
    if (tare__out_failed(o)) return;
    if (is_packed(o, t, p, &type)) {
        quantized = packed(o, t, type);
        if (*zero_point != '\0') zero_point = packed_zeros(o, zero_point, type);
    } else {
        quantized = tare__out_quantized(o, t);
    }
    const char *y = OUT(o, "DequantizeLinear", quantized, p->scale, zero_point);
    if (p->is_per_channel) tare__out_attr_int(o, "axis", p->axis);
    const tare_tensor *result = tare__out_result_meta(o);
    tare__out_result(o, tare__out_cast(o, y, TARE_FLOAT32, result->dtype));
}

static void write_quantize_per_tensor(onnx_out *o) {
    const parameters p = per_tensor(o, true);
    quantize_by(o, &p);
}
static void write_quantize_per_channel(onnx_out *o) {
    const parameters p = per_channel(o, true);
    quantize_by(o, &p);
}
static void write_dequantize_per_tensor(onnx_out *o) {
    const parameters p = per_tensor(o, false);
    dequantize_by(o, &p);
}
static void write_dequantize_per_channel(onnx_out *o) {
    const parameters p = per_channel(o, false);
    dequantize_by(o, &p);
}

// The results have shape [1].
static void choose_qparams_as(onnx_out *o, bool symmetric) {
    const tare_tensor *t = tare__out_meta(o, 0);
    const int64_t one = 1;
    tare_dtype dtype = TARE_DTYPE_UNSET;
    tare__out_try(o, tare__call_dtype(tare__out_call(o), 4, TARE_DTYPE_UNSET, &dtype));
    const dynamic_spec s = {.quant_min = tare__out_double(o, 1, 0),
                            .quant_max = tare__out_double(o, 2, 0),
                            .eps = tare__out_double(o, 3, 0),
                            .storage = checked_dtype(o, tare__dtype(dtype)->storage, true),
                            .symmetric = symmetric,
                            .middle = tare__dtype(dtype)->storage == TARE_UINT8 ? 128 : 0};
    const char *x = tare__out_input(o, 0);
    const dynamic_values v = choose_any(o, x, t->ndim, &s);
    tare__out_result_item(o, 0, tare__out_reshape(o, v.scale, &one, 1));
    const char *zero = tare__out_cast(o, v.zero_point, s.storage, TARE_INT64);
    tare__out_result_item(o, 1, tare__out_reshape(o, zero, &one, 1));
    if (tare__out_failed(o)) return;
    const value *items = tare__out_call(o)->result.as.items;
    for (int i = 0; i < 2; i++) {
        tare__out_set_dynamic(o, items[i].as.tensor, v.scale, v.zero_point);
        out_dynamic *d = tare__out_find_dynamic(o, items[i].as.tensor);
        if (d == NULL || *v.quantized == '\0') continue;
        d->source = x;
        d->quantized = v.quantized;
    }
}
static void write_choose_qparams(onnx_out *o) {
    choose_qparams_as(o, false);
}
static void write_choose_qparams_symmetric(onnx_out *o) {
    choose_qparams_as(o, true);
}

// --- fake quantization ---

static void fake(onnx_out *o, parameters p, size_t range) {
    p.quant_min = tare__out_double(o, range, 0);
    p.quant_max = tare__out_double(o, range + 1, 0);
    const char *quantized = OUT(o, "QuantizeLinear", tare__out_input(o, 0), p.scale, p.zero_point);
    if (p.is_per_channel) tare__out_attr_int(o, "axis", p.axis);
    quantized = narrowed(o, quantized, p.dtype, p.quant_min, p.quant_max);
    const char *y = OUT(o, "DequantizeLinear", quantized, p.scale, p.zero_point);
    if (p.is_per_channel) tare__out_attr_int(o, "axis", p.axis);
    tare__out_result(o, y);
}

static tare_dtype dtype_for(onnx_out *o, size_t range) {
    const double low = tare__out_double(o, range, 0), high = tare__out_double(o, range + 1, 0);
    const tare_dtype dtype = low >= 0 && high <= 255                 ? TARE_UINT8
                             : low >= -128 && high <= 127            ? TARE_INT8
                             : low >= 0 && high <= UINT16_MAX        ? TARE_UINT16
                             : low >= INT16_MIN && high <= INT16_MAX ? TARE_INT16
                                                                     : TARE_INT32;
    return checked_dtype(o, dtype, true);
}

static void write_fake_per_tensor(onnx_out *o) {
    parameters p = {.dtype = dtype_for(o, 3)};
    p.scale = scalar(o, 1, TARE_FLOAT32);
    p.zero_point = scalar(o, 2, p.dtype);
    fake(o, p, 3);
}

static void write_fake_per_channel(onnx_out *o) {
    parameters p = {.dtype = dtype_for(o, 4), .is_per_channel = true};
    p.axis = tare__out_dim(o, 3, 0, tare__out_meta(o, 0)->ndim);
    p.scale = channels(o, 1, TARE_FLOAT32);
    p.zero_point = channels(o, 2, p.dtype);
    fake(o, p, 4);
}

static const onnx_write_rule write_rows[] = {
    {"decomposed.choose_qparams", "DynamicQuantizeLinear, ReduceMin, ReduceMax",
     .write = write_choose_qparams},
    {"decomposed.choose_qparams_symmetric", "ReduceMin, ReduceMax",
     .write = write_choose_qparams_symmetric},
    {"decomposed.dequantize_per_channel", "DequantizeLinear",
     .write = write_dequantize_per_channel},
    {"decomposed.dequantize_per_tensor", "DequantizeLinear", .write = write_dequantize_per_tensor},
    {"decomposed.quantize_per_channel", "QuantizeLinear", .write = write_quantize_per_channel},
    {"decomposed.quantize_per_tensor", "QuantizeLinear", .write = write_quantize_per_tensor},
    {"dequantize", "DequantizeLinear", .write = write_dequantize},
    {"fake_quantize_per_channel_affine", "QuantizeLinear, DequantizeLinear",
     .write = write_fake_per_channel},
    {"fake_quantize_per_tensor_affine", "QuantizeLinear, DequantizeLinear",
     .write = write_fake_per_tensor},
    {"int_repr", "Identity", .write = write_int_repr},
    {"quantize_per_channel", "QuantizeLinear", .write = write_quantize},
    {"quantize_per_tensor", "QuantizeLinear", .write = write_quantize},
    {"quantize_per_tensor_dynamic", "DynamicQuantizeLinear, ReduceMin, ReduceMax",
     .write = write_quantize_dynamic},
};

const onnx_family tare__onnx_quantize_family = {.read = ONNX_RULES(read_rows),
                                                .write = ONNX_WRITE_RULES(write_rows)};
