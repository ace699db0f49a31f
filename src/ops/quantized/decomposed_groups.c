// SPDX-License-Identifier: Apache-2.0
// torch.ops.quantized_decomposed with parameters for each token (a run along the last dimension) or
// each group of a row, and per-channel fake quantization.
#include <math.h>
#include <string.h>

#include "core/math/float_to_int.h"
#include "core/math/requant.h"
#include "ops/families/arithmetic.h"
#include "ops/families/families.h"
#include "ops/quantized/decomposed.h"
#include "ops/rules.h"

// --- parameters per token: scales and zero points of shape [.., 1] ---

static tare_status token_parameters_shape(op_call *call, tare_dtype scale_dtype,
                                          tare_dtype zero_point_dtype) {
    const tare_tensor *x;
    int64_t shape[TARE_MAX_DIMS] = {0};
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    TARE_TRY(tare__decomposed_check_float(call, x));
    if (x->ndim == 0) return tare__call_fail(call, "needs at least one dimension");
    memcpy(shape, x->shape, sizeof shape);
    shape[x->ndim - 1] = 1;
    return tare__call_result_pair(call, scale_dtype, zero_point_dtype, x->ndim, shape);
}

// Both in the input's dtype, but float16 gives float32.
static tare_status choose_symmetric_shape(op_call *call) {
    const tare_tensor *x;
    tare_dtype dtype;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    TARE_TRY(tare__call_dtype(call, 1, TARE_DTYPE_UNSET, &dtype));
    if (dtype != TARE_INT8)
        return tare__call_fail(call, "unsupported dtype in choose_qparams_per_token: %s",
                               tare_dtype_name(dtype));
    const tare_dtype made = x->dtype == TARE_FLOAT16 ? TARE_FLOAT32 : x->dtype;
    return token_parameters_shape(call, made, made);
}

static tare_status choose_asymmetric_shape(op_call *call) {
    return token_parameters_shape(call, TARE_FLOAT64, TARE_INT64);
}

typedef struct token_choice {
    double scale, zero_point;
} token_choice;

static token_choice symmetric_choice(tare_dtype dtype, const float *x, int64_t count) {
    float most = 0;
    for (int64_t i = 0; i < count; i++) most = fmaxf(most, fabsf(x[i]));
    most = tare__round_to(dtype, fmaxf(most, 1e-5F));
    return (token_choice){.scale = (double)tare__round_to(dtype, most / 127.0F)};
}

// Uses the end of the range with the smaller error to determine the zero point.
static token_choice asymmetric_choice(tare_dtype dtype, const float *x, int64_t count) {
    float low = 0, high = 0;
    for (int64_t i = 0; i < count; i++) {
        low = fminf(low, x[i]);
        high = fmaxf(high, x[i]);
    }
    const float span = tare__round_to(dtype, high - low);
    const float scale = fmaxf(tare__round_to(dtype, span / 255.0F), 0x1p-23F);
    const float from_low = tare__round_to(dtype, low / scale),
                from_high = tare__round_to(dtype, high / scale);
    const float error = tare__round_to(dtype, tare__round_to(dtype, -128 + from_low) +
                                                  tare__round_to(dtype, 127 + from_high));
    const float zero = tare__round_to(dtype, error > 0 ? -128 - from_low : 127 - from_high);
    return (token_choice){.scale = (double)scale,
                          .zero_point = nearbyint(fmin(fmax((double)zero, -128), 127))};
}

static tare_status choose(op_call *call,
                          token_choice (*f)(tare_dtype dtype, const float *x, int64_t count)) {
    const tare_tensor *x;
    tare_tensor *real = NULL;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    TARE_TRY(tare_tensor_to_float(x, &real, call->err));
    const int64_t run = x->shape[x->ndim - 1], tokens = run > 0 ? x->count / run : 0;
    // As in torch, float16 is converted to float32 first, so only bfloat16 rounds every result.
    const tare_dtype dtype = x->dtype == TARE_BFLOAT16 ? TARE_BFLOAT16 : TARE_FLOAT32;
    for (int64_t i = 0; i < tokens; i++) {
        const token_choice c = f(dtype, tare__f32(real) + i * run, run);
        tare__tensor_set(call->result.as.items[0].as.tensor, i, c.scale);
        tare__tensor_set(call->result.as.items[1].as.tensor, i, c.zero_point);
    }
    tare_tensor_release(real);
    return TARE_OK;
}

static tare_status choose_symmetric(op_call *call) {
    return choose(call, symmetric_choice);
}
static tare_status choose_asymmetric(op_call *call) {
    return choose(call, asymmetric_choice);
}

// --- runs of elements with common parameters ---

typedef struct runs {
    const tare_tensor *x, *scales, *zero_points; // zero_points NULL: 0
    int64_t length;                              // elements that share parameters
} runs;

// Computed in float64 if the scales are float64, else in float32. The zero point is added before
// rounding.
static double quantized(const runs *r, int64_t i, double x) {
    const int64_t at = i / r->length;
    const double scale = tare__tensor_get(r->scales, at);
    const double zero = r->zero_points != NULL ? tare__tensor_get(r->zero_points, at) : 0;
    if (r->scales->dtype == TARE_FLOAT64) return nearbyint(x * (1.0 / scale) + zero);
    const float product = (float)x * (1.0F / (float)scale);
    return (double)nearbyintf(product + (float)zero);
}

static double dequantized(const runs *r, int64_t i, double q) {
    const int64_t at = i / r->length;
    const double scale = tare__tensor_get(r->scales, at);
    const double zero = r->zero_points != NULL ? tare__tensor_get(r->zero_points, at) : 0;
    if (r->scales->dtype == TARE_FLOAT64) return (q - zero) * scale;
    return (double)((float)(q - zero) * (float)scale);
}

static tare_status quantize_runs(op_call *call, const runs *r, int64_t quant_min,
                                 int64_t quant_max) {
    tare_tensor *y = tare__call_out(call);
    for (int64_t i = 0; i < y->count; i++) {
        const double q = quantized(r, i, tare__tensor_get(r->x, i));
        tare__tensor_set(y, i, tare__decomposed_clamp(q, quant_min, quant_max));
    }
    return TARE_OK;
}

static tare_status dequantize_runs(op_call *call, const runs *r) {
    tare_tensor *y = tare__call_out(call);
    for (int64_t i = 0; i < y->count; i++)
        tare__tensor_set(y, i, dequantized(r, i, tare__tensor_get(r->x, i)));
    return TARE_OK;
}

// --- per token ---

static tare_status check_tokens(op_call *call, const tare_tensor *t, const char *name,
                                int64_t tokens) {
    char shape[128];
    if (t->count == tokens) return TARE_OK;
    tare__shape_text(t->ndim, t->shape, shape, sizeof shape);
    return tare__call_fail(call, "num_tokens: %lld %s: torch.Size(%s)", (long long)tokens, name,
                           shape);
}

static tare_status read_tokens(op_call *call, runs *r) {
    *r = (runs){.length = 1};
    TARE_TRY(tare__call_need_tensor(call, 0, &r->x));
    TARE_TRY(tare__call_need_tensor(call, 1, &r->scales));
    TARE_TRY(tare__call_need_tensor(call, 2, &r->zero_points));
    if (r->x->ndim > 0) r->length = r->x->shape[r->x->ndim - 1];
    int64_t tokens = 1;
    for (int d = 0; d + 1 < r->x->ndim; d++) tokens *= r->x->shape[d];
    TARE_TRY(check_tokens(call, r->scales, "scales", tokens));
    return check_tokens(call, r->zero_points, "zero_points", tokens);
}

static tare_status quantize_token_shape(op_call *call) {
    runs r;
    tare_dtype dtype;
    int64_t quant_min, quant_max;
    TARE_TRY(tare__decomposed_read_range(call, 5, &dtype, &quant_min, &quant_max));
    TARE_TRY(tare__decomposed_check_range(call, dtype, quant_min, quant_max));
    TARE_TRY(read_tokens(call, &r));
    return tare__call_result(call, dtype, r.x->ndim, r.x->shape, NULL);
}

static tare_status quantize_token(op_call *call) {
    runs r;
    tare_dtype dtype;
    int64_t quant_min, quant_max;
    TARE_TRY(tare__decomposed_read_range(call, 5, &dtype, &quant_min, &quant_max));
    TARE_TRY(read_tokens(call, &r));
    return quantize_runs(call, &r, quant_min, quant_max);
}

static tare_status dequantize_token_shape(op_call *call) {
    runs r;
    tare_dtype dtype;
    TARE_TRY(read_tokens(call, &r));
    TARE_TRY(tare__call_dtype(call, 6, TARE_FLOAT32, &dtype));
    return tare__call_result(call, dtype, r.x->ndim, r.x->shape, NULL);
}

static tare_status dequantize_token(op_call *call) {
    runs r;
    TARE_TRY(read_tokens(call, &r));
    return dequantize_runs(call, &r);
}

// --- per group of a row ---

enum { GROUP_DTYPE = 5, GROUP_SIZE, GROUP_OUTPUT };

// name: what torch calls the input in its messages.
static tare_status read_groups(op_call *call, const char *name, runs *r) {
    *r = (runs){0};
    TARE_TRY(tare__call_need_tensor(call, 0, &r->x));
    TARE_TRY(tare__call_need_tensor(call, 1, &r->scales));
    r->zero_points = tare__call_tensor(call, 2);
    TARE_TRY(tare__call_int(call, GROUP_SIZE, 128, &r->length));
    if (r->length <= 1) return tare__call_fail(call, "group_size must be > 1");
    const int64_t row = r->x->ndim > 0 ? r->x->shape[r->x->ndim - 1] : 1;
    const int64_t columns = r->scales->ndim > 0 ? r->scales->shape[r->scales->ndim - 1] : 1;
    if (r->length > row && columns == 1) r->length = row;
    if (row % r->length != 0)
        return tare__call_fail(call, "%s.shape[-1] must be divisible by group_size", name);
    if (r->x->ndim != 2) return tare__call_fail(call, "%s must be 2-dimensional", name);
    const int64_t groups = r->x->count / r->length;
    const bool zeros_fit = r->zero_points == NULL || r->zero_points->count == groups;
    if (r->scales->count == groups && zeros_fit) return TARE_OK;
    return tare__call_fail(call, "%lld scales and %lld zero points do not fit %lld groups",
                           (long long)r->scales->count,
                           (long long)(r->zero_points != NULL ? r->zero_points->count : groups),
                           (long long)groups);
}

static tare_status quantize_group_shape(op_call *call) {
    runs r;
    tare_dtype dtype;
    TARE_TRY(read_groups(call, "input", &r));
    TARE_TRY(tare__call_dtype(call, GROUP_DTYPE, TARE_DTYPE_UNSET, &dtype));
    return tare__call_result(call, dtype, r.x->ndim, r.x->shape, NULL);
}

static tare_status quantize_group(op_call *call) {
    runs r;
    tare_dtype dtype;
    int64_t quant_min, quant_max;
    TARE_TRY(read_groups(call, "input", &r));
    TARE_TRY(tare__decomposed_read_range(call, GROUP_DTYPE, &dtype, &quant_min, &quant_max));
    for (int64_t i = 0; i < r.x->count; i++)
        if (isnan(tare__tensor_get(r.x, i)))
            return tare__call_fail(call, "to_quant must not contain NaNs");
    return quantize_runs(call, &r, quant_min, quant_max);
}

static tare_status dequantize_group_shape(op_call *call) {
    runs r;
    tare_dtype dtype;
    TARE_TRY(read_groups(call, "w_int8", &r));
    TARE_TRY(tare__call_dtype(call, GROUP_OUTPUT, TARE_FLOAT32, &dtype));
    return tare__call_result(call, dtype, r.x->ndim, r.x->shape, NULL);
}

static tare_status dequantize_group(op_call *call) {
    runs r;
    TARE_TRY(read_groups(call, "w_int8", &r));
    return dequantize_runs(call, &r);
}

// --- fake_quant_per_channel ---

typedef struct fake_channels {
    const tare_tensor *x, *scales, *zero_points;
    int64_t quant_min, quant_max;
    int64_t inner, channels;
} fake_channels;

static tare_status read_fake(op_call *call, fake_channels *f) {
    int axis = 0;
    *f = (fake_channels){0};
    TARE_TRY(tare__call_need_tensor(call, 0, &f->x));
    TARE_TRY(tare__call_need_tensor(call, 1, &f->scales));
    TARE_TRY(tare__call_need_tensor(call, 2, &f->zero_points));
    if (f->x->dtype != TARE_FLOAT32)
        return tare__call_fail(call,
                               "Expecting input to have dtype torch.float32, but got dtype: %s",
                               tare_dtype_name(f->x->dtype));
    TARE_TRY(tare__decomposed_check_axis(call, 3, f->x, &axis));
    TARE_TRY(tare__call_int(call, 4, 0, &f->quant_min));
    TARE_TRY(tare__call_int(call, 5, 0, &f->quant_max));
    f->inner = tare__inner_count(f->x, axis);
    f->channels = f->x->shape[axis];
    if (f->scales->count == f->channels && f->zero_points->count == f->channels) return TARE_OK;
    return tare__call_fail(call, "%lld scales and %lld zero points do not fit %lld channels",
                           (long long)f->scales->count, (long long)f->zero_points->count,
                           (long long)f->channels);
}

static tare_status fake_shape(op_call *call) {
    fake_channels f;
    TARE_TRY(read_fake(call, &f));
    return tare__shape_same(call);
}

static tare_status fake(op_call *call) {
    fake_channels f;
    TARE_TRY(read_fake(call, &f));
    tare_tensor *y = tare__call_out(call);
    for (int64_t i = 0; i < y->count; i++) {
        const int64_t c = i / f.inner % f.channels;
        const float scale = (float)tare__tensor_get(f.scales, c);
        const float zero = (float)tare__cut_int32(tare__tensor_get(f.zero_points, c));
        const float q = nearbyintf(tare__f32(f.x)[i] * (1.0F / scale)) + zero;
        const double kept = tare__decomposed_clamp((double)q, f.quant_min, f.quant_max);
        tare__f32(y)[i] = ((float)kept - zero) * scale;
    }
    return TARE_OK;
}

// --- rows ---

#define GROUPED(name, more, parameters, rule, compute)                                             \
    {                                                                                              \
        .id = "decomposed." name, .functions = DECOMPOSED_NAMES name ".default",                   \
        .params = parameters, .traits = OP_ANY_DTYPE | (more), .shape = rule, .reference = compute \
    }

// clang-format off
static const op_info rows[] = {
    GROUPED("choose_qparams_per_token", 0, "input|dtype", choose_symmetric_shape, choose_symmetric),
    GROUPED("choose_qparams_per_token_asymmetric", 0, "input|dtype", choose_asymmetric_shape, choose_asymmetric),
    GROUPED("_choose_qparams_per_token_asymmetric_impl", 0, "input|dtype", choose_asymmetric_shape, choose_asymmetric),
    GROUPED("quantize_per_token", 0, "input|scales|zero_points|quant_min|quant_max|dtype",
            quantize_token_shape, quantize_token),
    GROUPED("dequantize_per_token", OP_DEQUANTIZES, "input|scales|zero_points|quant_min|quant_max|dtype|output_dtype",
            dequantize_token_shape, dequantize_token),
    GROUPED("quantize_per_channel_group", 0, "input|scales|zero_points|quant_min|quant_max|dtype|group_size",
            quantize_group_shape, quantize_group),
    GROUPED("dequantize_per_channel_group", OP_DEQUANTIZES,
            "input/w_int8|scales|zero_points|quant_min|quant_max|dtype|group_size|output_dtype",
            dequantize_group_shape, dequantize_group),
    GROUPED("fake_quant_per_channel", 0, "input|scales|zero_points|axis|quant_min|quant_max", fake_shape, fake),
};
// clang-format on

const op_table tare__decomposed_groups_ops = OP_TABLE(rows);
