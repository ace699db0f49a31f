// SPDX-License-Identifier: Apache-2.0
// Fake quantization of whole tensors, and torch's two functions for it.
#include "ops/quantized/fake_quantize.h"

#include "core/math/requant.h"
#include "ops/families/families.h"
#include "ops/rules.h"

// --- whole tensors ---

tare_status tare__fake_quantize_check(const fake_quantizer *f, const tare_tensor *x,
                                      tare_error *err) {
    if (f->axis >= x->ndim)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "channels on axis %d are outside a tensor of %d dimensions", f->axis,
                          x->ndim);
    const int64_t count = f->axis < 0 ? 1 : x->shape[f->axis];
    const bool is_float_zero = f->zero_point->dtype == TARE_FLOAT32;
    if (f->scale->dtype != TARE_FLOAT32 || (f->zero_point->dtype != TARE_INT32 && !is_float_zero))
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "expected float32 scales and int32 or float32 zero points, found %s, %s",
                          tare_dtype_name(f->scale->dtype), tare_dtype_name(f->zero_point->dtype));
    if (f->scale->count != count || f->zero_point->count != count)
        return tare__fail(
            err, TARE_INVALID_ARGUMENT, "expected %lld scales and zero points, found %lld and %lld",
            (long long)count, (long long)f->scale->count, (long long)f->zero_point->count);
    return TARE_OK;
}

static void quantize_run(const fake_quantizer *f, int64_t c, const float *x, int64_t count,
                         float *y) {
    const float scale = tare__f32(f->scale)[c];
    if (f->zero_point->dtype == TARE_FLOAT32) {
        const float zero_point = tare__f32(f->zero_point)[c];
        for (int64_t i = 0; i < count; i++)
            y[i] = tare__fake_quantize_float_qparams(x[i], scale, zero_point, f->quant_min,
                                                     f->quant_max)
                       .value;
        return;
    }
    const int64_t zero_point = ((const int32_t *)f->zero_point->data)[c];
    for (int64_t i = 0; i < count; i++)
        y[i] = tare__fake_quantize(x[i], scale, zero_point, f->quant_min, f->quant_max).value;
}

void tare__fake_quantize_into(const fake_quantizer *f, const tare_tensor *x, tare_tensor *y) {
    const int64_t run = f->axis < 0 ? x->count : tare__inner_count(x, f->axis);
    const int64_t channels = f->axis < 0 ? 1 : x->shape[f->axis];
    for (int64_t at = 0, c = 0; at < x->count; at += run, c = (c + 1) % channels)
        quantize_run(f, c, tare__f32(x) + at, run, tare__f32(y) + at);
}

// --- torch.fake_quantize_per_tensor_affine, torch.fake_quantize_per_channel_affine ---

enum { FAKE_SCALE = 1, FAKE_ZERO_POINT, FAKE_REST };

// Scale and zero point are numbers or tensors.
static tare_status read_number(op_call *call, size_t i, tare_dtype dtype, tare_tensor **out) {
    const int64_t one = 1;
    double number = 0;
    *out = (tare_tensor *)tare__call_tensor(call, i);
    if (*out != NULL) {
        tare_tensor_retain(*out);
        return TARE_OK;
    }
    TARE_TRY(tare__call_double(call, i, 0, &number));
    TARE_TRY(tare_tensor_create(dtype, 1, &one, out, call->err));
    tare__tensor_set(*out, 0, number);
    return TARE_OK;
}

static tare_status read_range(op_call *call, size_t first, fake_quantizer *f) {
    TARE_TRY(tare__call_int(call, first, 0, &f->quant_min));
    TARE_TRY(tare__call_int(call, first + 1, 255, &f->quant_max));
    if (f->quant_min <= f->quant_max) return TARE_OK;
    return tare__call_fail(call, "`quant_min` should be less than or equal to `quant_max`.");
}

static tare_status compute(op_call *call, const fake_quantizer *f) {
    const tare_tensor *x;
    TARE_TRY(tare__need_float(call, 0, &x));
    TARE_TRY(tare__call_at(call, tare__fake_quantize_check(f, x, call->err)));
    tare__fake_quantize_into(f, x, tare__call_out(call));
    return TARE_OK;
}

static tare_status per_tensor(op_call *call) {
    fake_quantizer f = {.axis = -1};
    tare_tensor *scale = NULL, *zero_point = NULL;
    TARE_TRY(read_range(call, FAKE_REST, &f));
    tare_status status = read_number(call, FAKE_SCALE, TARE_FLOAT32, &scale);
    if (status == TARE_OK) status = read_number(call, FAKE_ZERO_POINT, TARE_INT32, &zero_point);
    f.scale = scale;
    f.zero_point = zero_point;
    if (status == TARE_OK) status = compute(call, &f);
    tare_tensor_release(scale);
    tare_tensor_release(zero_point);
    return status;
}

static tare_status per_channel(op_call *call) {
    fake_quantizer f = {.axis = 0};
    const tare_tensor *x;
    TARE_TRY(tare__need_float(call, 0, &x));
    TARE_TRY(tare__call_need_tensor(call, FAKE_SCALE, &f.scale));
    TARE_TRY(tare__call_need_tensor(call, FAKE_ZERO_POINT, &f.zero_point));
    TARE_TRY(tare__call_dim(call, FAKE_REST, 0, x->ndim, &f.axis));
    TARE_TRY(read_range(call, FAKE_REST + 1, &f));
    return compute(call, &f);
}

// --- torch's fused operator ---

enum { FUSED_OBSERVES = 1, FUSED_QUANTIZES, FUSED_SCALE = 5, FUSED_RANGE = 8, FUSED_AXIS = 10 };

// Only fake-quantizes. When a model is read, calls that observe, too, are replaced by modules
// (model/operator_observers.h).
static tare_status fused(op_call *call) {
    fake_quantizer f = {.axis = -1};
    const tare_tensor *observes, *quantizes, *x;
    bool is_per_channel = false;
    TARE_TRY(tare__need_float(call, 0, &x));
    TARE_TRY(tare__call_need_tensor(call, FUSED_OBSERVES, &observes));
    TARE_TRY(tare__call_need_tensor(call, FUSED_QUANTIZES, &quantizes));
    TARE_TRY(tare__call_need_tensor(call, FUSED_SCALE, &f.scale));
    TARE_TRY(tare__call_need_tensor(call, FUSED_SCALE + 1, &f.zero_point));
    if (observes->count != 1 || quantizes->count != 1 || tare__tensor_get(observes, 0) != 0 ||
        tare__tensor_get(quantizes, 0) == 0)
        return tare__call_fail(call, "expected an observer that is off and fake quantization that "
                                     "is on: others are modules here");
    TARE_TRY(read_range(call, FUSED_RANGE, &f));
    TARE_TRY(tare__call_bool(call, FUSED_AXIS + 1, false, &is_per_channel));
    if (is_per_channel) TARE_TRY(tare__call_dim(call, FUSED_AXIS, 0, x->ndim, &f.axis));
    return compute(call, &f);
}

// clang-format off
static const op_info rows[] = {
    {.id = "fused_moving_avg_obs_fake_quant", .functions = "torch.ops.aten.fused_moving_avg_obs_fake_quant.default",
     .params = "input/self|observer_on|fake_quant_on|running_min|running_max|scale|zero_point|averaging_const|quant_min|quant_max|ch_axis|per_row_fake_quant|symmetric_quant",
     .shape = tare__shape_same, .reference = fused},
    {.id = "fake_quantize_per_tensor_affine",
     .functions = "torch.fake_quantize_per_tensor_affine|torch.ops.aten.fake_quantize_per_tensor_affine.default|"
                  "torch.ops.aten.fake_quantize_per_tensor_affine.tensor_qparams",
     .params = "input/self|scale|zero_point|quant_min|quant_max",
     .shape = tare__shape_same, .reference = per_tensor},
    {.id = "fake_quantize_per_channel_affine",
     .functions = "torch.fake_quantize_per_channel_affine|torch.ops.aten.fake_quantize_per_channel_affine.default",
     .params = "input/self|scale|zero_point|axis|quant_min|quant_max",
     .shape = tare__shape_same, .reference = per_channel},
};
// clang-format on
const op_table tare__fake_quantize_ops = OP_TABLE(rows);
