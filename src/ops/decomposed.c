// SPDX-License-Identifier: Apache-2.0
// torch.ops.quantized_decomposed: quantize and dequantize on plain integer tensors, with the
// parameters in the call.
#include <math.h>

#include "core/requant.h"
#include "ops/families.h"
#include "ops/rules.h"

typedef struct parameters {
    const tare_tensor *x;
    const tare_tensor *scales, *zero_points; // per channel; NULL: per tensor
    double scale;
    int64_t zero_point, quant_min, quant_max;
    int64_t inner; // elements between neighbours along the channel axis
} parameters;

static tare_status read_channels(op_call *call, parameters *p) {
    int axis;
    TARE_TRY(tare__call_need_tensor(call, 1, &p->scales));
    p->zero_points = tare__call_tensor(call, 2);
    TARE_TRY(tare__call_dim(call, 3, 0, p->x->ndim, &axis));
    p->inner = tare__inner_count(p->x, axis);
    const int64_t channels = p->x->ndim > 0 ? p->x->shape[axis] : 1;
    const bool zeros_fit = p->zero_points == NULL || p->zero_points->count == p->scales->count;
    if (zeros_fit && (p->scales->count == 1 || p->scales->count == channels)) return TARE_OK;
    return tare__call_fail(call, "%lld scales do not fit %lld channels",
                           (long long)p->scales->count, (long long)channels);
}

static tare_status read_parameters(op_call *call, bool per_channel, parameters *p) {
    *p = (parameters){.scale = 1};
    TARE_TRY(tare__call_need_tensor(call, 0, &p->x));
    if (per_channel)
        TARE_TRY(read_channels(call, p));
    else {
        TARE_TRY(tare__call_double(call, 1, 1, &p->scale));
        TARE_TRY(tare__call_int(call, 2, 0, &p->zero_point));
    }
    const size_t range = per_channel ? 4 : 3;
    TARE_TRY(tare__call_int(call, range, 0, &p->quant_min));
    return tare__call_int(call, range + 1, 0, &p->quant_max);
}

static int64_t channel_of(const parameters *p, int64_t i) {
    return p->scales == NULL || p->scales->count == 1 ? 0 : i / p->inner % p->scales->count;
}

static double zero_of(const parameters *p, int64_t c) {
    if (p->scales == NULL) return (double)p->zero_point;
    return p->zero_points != NULL ? tare__tensor_get(p->zero_points, c) : 0;
}

static double scale_of(const parameters *p, int64_t c) {
    return p->scales == NULL ? p->scale : tare__tensor_get(p->scales, c);
}

static bool scales_are_double(const parameters *p) {
    return p->scales != NULL && p->scales->dtype == TARE_FLOAT64;
}

// A Python float's reciprocal is taken in double and rounded once, a float32 tensor's in float32;
// float64 scales make the whole expression double.
static double round_one(const parameters *p, int64_t c, float x) {
    const double scale = scale_of(p, c), zero = zero_of(p, c);
    if (scales_are_double(p)) return nearbyint((double)x * (1.0 / scale)) + zero;
    const float inverse = p->scales != NULL ? 1.0f / (float)scale : (float)(1.0 / scale);
    return (double)(nearbyintf(x * inverse) + (float)zero);
}

static tare_status quantize(op_call *call, bool per_channel) {
    parameters p;
    tare_tensor *y = tare__call_out(call), *real = NULL;
    TARE_TRY(read_parameters(call, per_channel, &p));
    const tare_dtype dtype = p.x->dtype;
    if (dtype != TARE_FLOAT32 && dtype != TARE_FLOAT16 && dtype != TARE_BFLOAT16)
        return tare__call_fail(call, "expected torch.float32, found %s", tare_dtype_name(dtype));
    TARE_TRY(tare_tensor_to_float(p.x, &real, call->err));
    const double low = (double)p.quant_min, high = (double)p.quant_max;
    for (int64_t i = 0; i < y->count; i++) {
        const double code = round_one(&p, channel_of(&p, i), tare__f32(real)[i]);
        tare__tensor_set(y, i, code < low ? low : code > high ? high : code);
    }
    tare_tensor_release(real);
    return TARE_OK;
}

static tare_status dequantize(op_call *call, bool per_channel) {
    parameters p;
    tare_tensor *y = tare__call_out(call);
    TARE_TRY(read_parameters(call, per_channel, &p));
    for (int64_t i = 0; i < y->count; i++) {
        const int64_t c = channel_of(&p, i);
        const double code = tare__tensor_get(p.x, i), scale = scale_of(&p, c),
                     zero = zero_of(&p, c);
        // Per tensor the code becomes a float before the subtraction, per channel after it.
        const float shifted = per_channel ? (float)(code - zero) : (float)code - (float)zero;
        tare__tensor_set(
            y, i, scales_are_double(&p) ? (code - zero) * scale : (double)(shifted * (float)scale));
    }
    return TARE_OK;
}

static tare_status quantize_per_tensor(op_call *call) {
    return quantize(call, false);
}
static tare_status quantize_per_channel(op_call *call) {
    return quantize(call, true);
}
static tare_status dequantize_per_tensor(op_call *call) {
    return dequantize(call, false);
}
static tare_status dequantize_per_channel(op_call *call) {
    return dequantize(call, true);
}

static tare_status result_of(op_call *call, size_t dtype_index, tare_dtype otherwise) {
    const tare_tensor *x;
    tare_dtype dtype;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    TARE_TRY(tare__call_dtype(call, dtype_index, otherwise, &dtype));
    return tare__call_result(call, tare__dtype(dtype)->storage, x->ndim, x->shape, NULL);
}

static tare_status tensor_codes_shape(op_call *call) {
    return result_of(call, 5, TARE_DTYPE_UNSET);
}
static tare_status channel_codes_shape(op_call *call) {
    return result_of(call, 6, TARE_DTYPE_UNSET);
}
static tare_status tensor_values_shape(op_call *call) {
    return result_of(call, 6, TARE_FLOAT32);
}
static tare_status channel_values_shape(op_call *call) {
    return result_of(call, 7, TARE_FLOAT32);
}

// --- choose_qparams: (scale, zero point), each of shape [1] ---

static tare_status choose_shape(op_call *call) {
    static const tare_dtype dtypes[] = {TARE_FLOAT64, TARE_INT64};
    const int64_t one[] = {1};
    TARE_TRY(tare__call_result_tuple(call, 2));
    for (size_t i = 0; i < 2; i++) {
        tare_tensor *t = NULL;
        TARE_TRY(tare__tensor_meta(dtypes[i], 1, one, NULL, &t, call->err));
        call->result.as.items[i] = (value){.kind = VALUE_TENSOR, .as.tensor = t};
    }
    return TARE_OK;
}

static tare_status choose(op_call *call, bool symmetric) {
    const tare_tensor *x;
    int64_t quant_min, quant_max;
    double eps;
    tare_dtype dtype;
    dynamic_range range = {.symmetric = symmetric};
    TARE_TRY(tare__need_float(call, 0, &x));
    TARE_TRY(tare__call_int(call, 1, 0, &quant_min));
    TARE_TRY(tare__call_int(call, 2, 0, &quant_max));
    TARE_TRY(tare__call_double(call, 3, 0, &eps));
    TARE_TRY(tare__call_dtype(call, 4, TARE_DTYPE_UNSET, &dtype));
    if (quant_min > 0 || quant_max < 0 || quant_min >= quant_max || quant_min < INT32_MIN ||
        quant_max > INT32_MAX)
        return tare__call_fail(call,
                               "quantization range [%lld, %lld] must include 0 and be of int32",
                               (long long)quant_min, (long long)quant_max);
    tare__find_range(x, &range.min, &range.max);
    range.quant_min = (int32_t)quant_min;
    range.quant_max = (int32_t)quant_max;
    const int32_t middle = tare__dtype(dtype)->storage == TARE_UINT8 ? 128 : 0;
    const dynamic_qparams q = tare__choose_decomposed_qparams(&range, (float)eps, middle);
    tare__tensor_set(call->result.as.items[0].as.tensor, 0, q.scale);
    tare__tensor_set(call->result.as.items[1].as.tensor, 0, (double)q.zero_point);
    return TARE_OK;
}

static tare_status choose_affine(op_call *call) {
    return choose(call, false);
}
static tare_status choose_symmetric(op_call *call) {
    return choose(call, true);
}

// --- rows ---

#define NAMESPACE "torch.ops.quantized_decomposed."
// Without an overload it is the packet of them, as the reference representation prints it.
#define PER_TENSOR(name)                                                                           \
    NAMESPACE name ".default|" NAMESPACE name ".tensor|" NAMESPACE name ".tensor2|" NAMESPACE name
#define PER_CHANNEL(name) NAMESPACE name ".default|" NAMESPACE name
#define DECOMPOSED(name, names, parameter_names, rule, compute)                                    \
    {                                                                                              \
        .id = "decomposed." name, .functions = names, .params = parameter_names,                   \
        .traits = OP_ELEMENTWISE | OP_ANY_DTYPE, .shape = rule, .reference = compute               \
    }

// clang-format off
static const op_info rows[] = {
    DECOMPOSED("quantize_per_tensor", PER_TENSOR("quantize_per_tensor"),
               "input|scale|zero_point|quant_min|quant_max|dtype", tensor_codes_shape, quantize_per_tensor),
    DECOMPOSED("dequantize_per_tensor", PER_TENSOR("dequantize_per_tensor"),
               "input|scale|zero_point|quant_min|quant_max|dtype|out_dtype", tensor_values_shape, dequantize_per_tensor),
    DECOMPOSED("quantize_per_channel", PER_CHANNEL("quantize_per_channel"),
               "input|scales|zero_points|axis|quant_min|quant_max|dtype", channel_codes_shape, quantize_per_channel),
    DECOMPOSED("dequantize_per_channel", PER_CHANNEL("dequantize_per_channel"),
               "input|scales|zero_points|axis|quant_min|quant_max|dtype|out_dtype", channel_values_shape, dequantize_per_channel),
    {.id = "decomposed.choose_qparams", .functions = NAMESPACE "choose_qparams.tensor",
     .params = "input|quant_min|quant_max|eps|dtype", .shape = choose_shape, .reference = choose_affine},
    {.id = "decomposed.choose_qparams_symmetric", .functions = NAMESPACE "choose_qparams_symmetric.tensor",
     .params = "input|quant_min|quant_max|eps|dtype", .shape = choose_shape, .reference = choose_symmetric},
};
// clang-format on

const op_table tare__decomposed_ops = OP_TABLE(rows);
