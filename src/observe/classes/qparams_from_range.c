// SPDX-License-Identifier: Apache-2.0
// Computes scale and zero point from a range of values in float32, with the operations of torch's
// UniformQuantizationObserverBase._calculate_qparams (PyTorch 2.15) in their order, for bit-exact
// results.
#include <math.h>

#include "core/memory/alloc.h"
#include "core/tensor/text.h"
#include "observe/classes/extremes.h"
#include "observe/classes/uniform.h"

// Converts like torch's cast to int32: numbers out of range become INT32_MIN, as with the x86
// instruction.
static int32_t to_int32(float value) {
    return value >= -0x1p31F && value < 0x1p31F ? (int32_t)value : INT32_MIN;
}

static double symmetric_zero_point(const uniform *u) {
    if (u->dtype == TARE_UINT16) return 32768;
    if (u->dtype != TARE_QUINT8 && u->dtype != TARE_UINT8) return 0;
    if (!u->has_custom_range) return 128;
    return (double)tare__floor_half(u->quant_min + u->quant_max); // the range includes 0
}

// torchao's zero point: the middle of the quantized range, rounded up.
static double middle_value(const uniform *u) {
    const int64_t q = (u->quant_min + u->quant_max + 1) / 2;
    return (double)q;
}

// The subtraction wraps as torch's int32 tensors do: with qint32 a range far from zero gives 0.
static double affine_zero_point(const uniform *u, float lo, float scale) {
    const uint32_t shift = (uint32_t)to_int32(rintf(lo / scale));
    const int32_t wrapped = (int32_t)((uint32_t)u->quant_min - shift);
    if (wrapped < u->quant_min) return (double)u->quant_min;
    if (wrapped > u->quant_max) return (double)u->quant_max;
    return (double)wrapped;
}

void tare__uniform_range(const uniform *u, float min, float max, double *out_scale,
                         double *out_zero_point) {
    const float lo = tare__least(min, 0.0F), hi = tare__most(max, 0.0F);
    const double steps = (double)u->quant_max - (double)u->quant_min;
    float scale = 1.0F;
    switch (u->qscheme) {
    case TARE_PER_TENSOR_SYMMETRIC:
    case TARE_PER_CHANNEL_SYMMETRIC:
        scale = tare__most(tare__most(-lo, hi) / (float)(steps / 2), u->eps);
        *out_zero_point = symmetric_zero_point(u);
        break;
    case TARE_PER_GROUP_SYMMETRIC:
        scale = tare__most(tare__most(-lo, hi) / (float)(steps / 2), u->eps);
        *out_zero_point = middle_value(u);
        break;
    case TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS:
        scale = (max - min) / (float)steps; // of the range as observed, which need not include 0
        if (!(scale > u->eps)) scale = 1.0F;
        *out_zero_point = (double)(-1.0F * min / scale);
        break;
    default:
        scale = tare__most((hi - lo) / (float)steps, u->eps);
        *out_zero_point = affine_zero_point(u, lo, scale);
        break;
    }
    *out_scale = (double)scale;
}

static void append_range_end(text *t, int64_t count, const float *values) {
    if (count == 1)
        tare__text_double(t, (double)values[0]);
    else
        tare__text_float_tensor(t, values, (size_t)count);
}

static tare_status check_order(int64_t count, const float *min, const float *max, tare_error *err) {
    bool is_ordered = true;
    for (int64_t c = 0; c < count; c++) is_ordered &= !(min[c] > max[c]);
    if (is_ordered) return TARE_OK;
    text message = {0};
    tare__text_append(&message, "min ");
    append_range_end(&message, count, min);
    tare__text_append(&message, " should be less than max ");
    append_range_end(&message, count, max);
    const tare_status status =
        tare__fail(err, TARE_INVALID_ARGUMENT, "%s", tare__text_chars(&message));
    tare__text_release(&message);
    return status;
}

tare_status tare__uniform_qparams(const uniform *u, int64_t count, const float *min,
                                  const float *max, tare_qparams_sink sink, void *sink_user,
                                  tare_error *err) {
    TARE_TRY(check_order(count, min, max, err));
    double *values = tare__alloc_zeroed((size_t)count, 2 * sizeof *values);
    if (values == NULL) return tare__out_of_memory(err);
    double *scale = values, *zero_point = values + count;
    for (int64_t c = 0; c < count; c++)
        tare__uniform_range(u, min[c], max[c], &scale[c], &zero_point[c]);
    const tare_status status = sink(sink_user, count, scale, zero_point, err);
    tare__free(values);
    return status;
}

tare_status tare__default_qparams(tare_qparams_sink sink, void *sink_user, tare_error *err) {
    const double scale = 1, zero_point = 0;
    return sink(sink_user, 1, &scale, &zero_point, err);
}
