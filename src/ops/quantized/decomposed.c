// SPDX-License-Identifier: Apache-2.0
// torch.ops.quantized_decomposed: quantize and dequantize on plain integer tensors, with the
// parameters in the call.
#include "ops/quantized/decomposed.h"

#include <math.h>

#include "core/math/requant.h"
#include "ops/families/arithmetic.h"
#include "ops/families/families.h"
#include "ops/rules.h"

typedef struct parameters {
    const tare_tensor *x;
    const tare_tensor *scales, *zero_points; // per channel; NULL: per tensor
    double scale;
    int64_t zero_point, quant_min, quant_max;
    tare_dtype dtype; // of the quantized values
    int64_t inner;    // stride of the channel axis, in elements
} parameters;

// --- arguments ---

static tare_status need_one(op_call *call, size_t i, const char *name) {
    const tare_tensor *t = tare__call_tensor(call, i);
    if (t == NULL || t->count == 1) return TARE_OK;
    return tare__call_fail(call, "Expecting %s tensor to be one element, but received : %lld", name,
                           (long long)t->count);
}

static tare_status read_tensor_wide(op_call *call, parameters *p) {
    TARE_TRY(need_one(call, 2, "zero_point"));
    TARE_TRY(need_one(call, 1, "scale"));
    TARE_TRY(tare__call_double(call, 1, 1, &p->scale));
    return tare__call_int(call, 2, 0, &p->zero_point);
}

static tare_status read_channels(op_call *call, parameters *p) {
    int axis = 0;
    TARE_TRY(tare__call_need_tensor(call, 1, &p->scales));
    p->zero_points = tare__call_tensor(call, 2);
    TARE_TRY(tare__decomposed_check_axis(call, 3, p->x, &axis));
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
    TARE_TRY(per_channel ? read_channels(call, p) : read_tensor_wide(call, p));
    return tare__decomposed_read_range(call, per_channel ? 6 : 5, &p->dtype, &p->quant_min,
                                       &p->quant_max);
}

// --- shape rules: what torch checks, in its order ---

static tare_status quantize_shape(op_call *call, bool per_channel) {
    parameters p = {0};
    TARE_TRY(tare__call_need_tensor(call, 0, &p.x));
    if (!per_channel) {
        TARE_TRY(need_one(call, 2, "zero_point"));
        TARE_TRY(need_one(call, 1, "scale"));
    }
    TARE_TRY(tare__decomposed_check_float(call, p.x));
    if (per_channel) TARE_TRY(read_channels(call, &p));
    // A range given as tensors is only known when the call runs.
    const size_t dtype_index = per_channel ? 6 : 5;
    if (tare__call_tensor(call, dtype_index - 1) != NULL)
        TARE_TRY(tare__call_dtype(call, dtype_index, TARE_DTYPE_UNSET, &p.dtype));
    else
        TARE_TRY(
            tare__decomposed_read_range(call, dtype_index, &p.dtype, &p.quant_min, &p.quant_max));
    TARE_TRY(tare__decomposed_check_range(call, p.dtype, p.quant_min, p.quant_max));
    return tare__call_result(call, p.dtype, p.x->ndim, p.x->shape, NULL);
}

static tare_status check_quantized(op_call *call, const tare_tensor *x, tare_dtype dtype,
                                   bool per_channel) {
    if (x->dtype == dtype) return TARE_OK;
    return tare__call_fail(call, "Expecting input to have dtype: %s, but got %s%s",
                           tare_dtype_name(dtype), per_channel ? "dtype: " : "",
                           tare_dtype_name(x->dtype));
}

static tare_status values_of(op_call *call, const tare_tensor *x, size_t dtype_index) {
    tare_dtype dtype = TARE_FLOAT32;
    TARE_TRY(tare__call_dtype(call, dtype_index, TARE_FLOAT32, &dtype));
    return tare__call_result(call, dtype, x->ndim, x->shape, NULL);
}

static tare_status tensor_values_shape(op_call *call) {
    const tare_tensor *x;
    tare_dtype dtype;
    TARE_TRY(need_one(call, 2, "zero_point"));
    TARE_TRY(need_one(call, 1, "scale"));
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    TARE_TRY(tare__call_dtype(call, 5, TARE_DTYPE_UNSET, &dtype));
    TARE_TRY(check_quantized(call, x, dtype, false));
    if (tare__decomposed_check_range(call, dtype, 0, 0) != TARE_OK)
        return tare__call_fail(call, "Unsupported dtype in dequantize_per_tensor: %s",
                               tare_dtype_name(dtype));
    return values_of(call, x, 6);
}

static tare_status channel_values_shape(op_call *call) {
    parameters p = {0};
    TARE_TRY(tare__call_need_tensor(call, 0, &p.x));
    TARE_TRY(tare__decomposed_read_range(call, 6, &p.dtype, &p.quant_min, &p.quant_max));
    TARE_TRY(check_quantized(call, p.x, p.dtype, true));
    TARE_TRY(read_channels(call, &p));
    TARE_TRY(tare__decomposed_check_range(call, p.dtype, p.quant_min, p.quant_max));
    return values_of(call, p.x, 7);
}

static tare_status tensor_quantized_shape(op_call *call) {
    return quantize_shape(call, false);
}
static tare_status channel_quantized_shape(op_call *call) {
    return quantize_shape(call, true);
}

// --- quantize ---

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

// A Python float's reciprocal is taken in double and rounded once, a float32 tensor's in float32.
static float inverse_of(const parameters *p, int64_t c) {
    const double scale = scale_of(p, c);
    return p->scales != NULL ? 1.0f / (float)scale : (float)(1.0 / scale);
}

// float64 scales make the whole expression double.
static double round_one(const parameters *p, int64_t c, float x) {
    const double zero = zero_of(p, c);
    if (scales_are_double(p)) return nearbyint((double)x * (1.0 / scale_of(p, c))) + zero;
    return (double)(nearbyintf(x * inverse_of(p, c)) + (float)zero);
}

// quant_min or quant_max, limited to the dtype's range.
static float bound_of(const parameters *p, int64_t bound) {
    const dtype_info *info = tare__dtype(p->dtype);
    return (float)(bound < info->min ? info->min : bound > info->max ? info->max : bound);
}

// Quantizes `count` elements to 8 bits with the parameters of channel c. If quant_min exceeds
// quant_max, quant_max applies.
static void round_bytes(const parameters *p, int64_t c, const float *x, int64_t count, uint8_t *y) {
    const float inverse = inverse_of(p, c), zero = (float)zero_of(p, c);
    const float least = bound_of(p, p->quant_min), most = bound_of(p, p->quant_max);
    for (int64_t i = 0; i < count; i++) {
        const float q = nearbyintf(x[i] * inverse) + zero;
        const float above = q < least ? least : q;
        const float kept = above > most ? most : isnan(above) ? 0 : above;
        y[i] = (uint8_t)(int)kept;
    }
}

// Quantizes to 16 bits, per tensor. int16 and uint16 share their bit patterns. Bounds are integers,
// so a value may be clamped before it is rounded; it is then small enough to be rounded by adding
// and subtracting 1.5 * 2^23.
static void round_words(const parameters *p, const float *x, int64_t count, uint16_t *y) {
    static const float rounds = 0x1.8p23F;
    const float inverse = inverse_of(p, 0), zero = (float)zero_of(p, 0);
    const float least = bound_of(p, p->quant_min) - zero, most = bound_of(p, p->quant_max) - zero;
    for (int64_t i = 0; i < count; i++) {
        const float scaled = x[i] * inverse;
        const float above = scaled < least ? least : scaled;
        const float kept = above > most ? most : above;
        const float rounded = (kept + rounds) - rounds + zero;
        y[i] = (uint16_t)(int)(isnan(scaled) ? 0 : rounded);
    }
}

// For contiguous elements of one channel.
static void round_bytes_of_channels(const parameters *p, const float *x, tare_tensor *y) {
    const int64_t inner = p->inner > 0 ? p->inner : y->count;
    for (int64_t i = 0; i < y->count; i += inner)
        round_bytes(p, channel_of(p, i), x + i, inner, (uint8_t *)y->data + i);
}

static void round_each(const parameters *p, const float *x, tare_tensor *y) {
    for (int64_t i = 0; i < y->count; i++)
        tare__tensor_set(y, i,
                         tare__decomposed_clamp(round_one(p, channel_of(p, i), x[i]), p->quant_min,
                                                p->quant_max));
}

static bool are_bytes(const tare_tensor *t) {
    return t->dtype == TARE_UINT8 || t->dtype == TARE_INT8;
}

static bool are_words(const tare_tensor *t) {
    return t->dtype == TARE_UINT16 || t->dtype == TARE_INT16;
}

static tare_status quantize(op_call *call, bool per_channel) {
    parameters p;
    tare_tensor *y = tare__call_out(call), *real = NULL;
    TARE_TRY(read_parameters(call, per_channel, &p));
    TARE_TRY(tare__decomposed_check_range(call, p.dtype, p.quant_min, p.quant_max));
    if (p.x->dtype != TARE_FLOAT32) TARE_TRY(tare_tensor_to_float(p.x, &real, call->err));
    const float *x = real != NULL ? tare__f32(real) : tare__f32(p.x);
    if (p.scales == NULL && are_bytes(y))
        round_bytes(&p, 0, x, y->count, y->data);
    else if (p.scales == NULL && are_words(y))
        round_words(&p, x, y->count, y->data);
    else if (p.scales != NULL && !scales_are_double(&p) && are_bytes(y))
        round_bytes_of_channels(&p, x, y);
    else
        round_each(&p, x, y);
    tare_tensor_release(real);
    return TARE_OK;
}

// --- dequantize ---

// Every intermediate result is rounded to the output dtype.
static double tensor_wide_value(const parameters *p, tare_dtype out, double q) {
    const float real = tare__round_to(out, (float)q);
    const float shifted = tare__round_to(out, real - (float)p->zero_point);
    return (double)(shifted * (float)p->scale);
}

// Integers are subtracted in their common dtype, in which uint8 wraps around.
static double shifted_quantized(tare_dtype common, double q, double zero) {
    const double difference = q - zero;
    if (common == TARE_UINT8) return difference < 0 ? difference + 256 : difference;
    if (common != TARE_INT8) return difference;
    return difference < -128 ? difference + 256 : difference > 127 ? difference - 256 : difference;
}

static double channel_value(const parameters *p, tare_dtype common, double q, double scale,
                            double zero) {
    const double shifted = shifted_quantized(common, q, zero);
    return scales_are_double(p) ? shifted * scale : (double)((float)shifted * (float)scale);
}

static tare_dtype common_dtype(const parameters *p) {
    const operand side[2] = {{.t = p->x}, {.t = p->zero_points}};
    return p->zero_points != NULL ? tare__common_dtype(side) : p->x->dtype;
}

// The value of each byte, by its bits.
static void look_up_bytes(const parameters *p, tare_tensor *y) {
    float table[256];
    const bool is_signed = p->x->dtype == TARE_INT8;
    for (int i = 0; i < 256; i++)
        table[i] = (float)tensor_wide_value(p, y->dtype, is_signed && i > 127 ? i - 256 : i);
    const uint8_t *x = p->x->data;
    float *out = tare__f32(y);
    for (int64_t i = 0; i < y->count; i++) out[i] = table[x[i]];
}

static void words_to_values(const parameters *p, tare_tensor *y) {
    const float zero = (float)p->zero_point, scale = (float)p->scale;
    const bool is_signed = p->x->dtype == TARE_INT16;
    const uint16_t *x = p->x->data;
    float *out = tare__f32(y);
    for (int64_t i = 0; i < y->count; i++) {
        const int32_t q = is_signed && x[i] > INT16_MAX ? x[i] - (UINT16_MAX + 1) : x[i];
        out[i] = ((float)q - zero) * scale;
    }
}

static tare_status dequantize_per_tensor(op_call *call) {
    parameters p;
    tare_tensor *y = tare__call_out(call);
    TARE_TRY(read_parameters(call, false, &p));
    if (are_bytes(p.x) && y->dtype == TARE_FLOAT32) {
        look_up_bytes(&p, y);
        return TARE_OK;
    }
    if (are_words(p.x) && y->dtype == TARE_FLOAT32) {
        words_to_values(&p, y);
        return TARE_OK;
    }
    for (int64_t i = 0; i < y->count; i++)
        tare__tensor_set(y, i, tensor_wide_value(&p, y->dtype, tare__tensor_get(p.x, i)));
    return TARE_OK;
}

// Contiguous elements of one channel.
static void look_up_channel(const parameters *p, tare_tensor *y, int64_t first) {
    const tare_dtype common = common_dtype(p);
    const int64_t c = channel_of(p, first);
    const double scale = scale_of(p, c), zero = zero_of(p, c);
    const bool is_quick = p->x->dtype == TARE_INT8 && y->dtype == TARE_FLOAT32; // usual weights
    for (int64_t i = first; i < first + p->inner; i++) {
        const double q =
            is_quick ? (double)((const int8_t *)p->x->data)[i] : tare__tensor_get(p->x, i);
        const double found = channel_value(p, common, q, scale, zero);
        if (is_quick)
            tare__f32(y)[i] = (float)found;
        else
            tare__tensor_set(y, i, found);
    }
}

static tare_status dequantize_per_channel(op_call *call) {
    parameters p;
    tare_tensor *y = tare__call_out(call);
    TARE_TRY(read_parameters(call, true, &p));
    for (int64_t i = 0; i < y->count; i += p.inner) look_up_channel(&p, y, i);
    return TARE_OK;
}

static tare_status quantize_per_tensor(op_call *call) {
    return quantize(call, false);
}
static tare_status quantize_per_channel(op_call *call) {
    return quantize(call, true);
}

// --- choose_qparams: (scale, zero point), each of shape [1] ---

static tare_status check_choice(op_call *call, int64_t quant_min, int64_t quant_max) {
    static const tare_dtype dtypes[] = {TARE_UINT8, TARE_INT8,        TARE_UINT16,       TARE_INT16,
                                        TARE_INT32, TARE_FLOAT8_E5M2, TARE_FLOAT8_E4M3FN};
    const tare_tensor *x;
    tare_dtype dtype;
    bool is_known = false;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    TARE_TRY(tare__call_dtype(call, 4, TARE_DTYPE_UNSET, &dtype));
    if (x->dtype != TARE_FLOAT32 && x->dtype != TARE_FLOAT16 && x->dtype != TARE_BFLOAT16)
        return tare__call_fail(
            call, "Expecting input to have dtype torch.float32/16/b16, but got dtype: %s",
            tare_dtype_name(x->dtype));
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) is_known |= dtypes[i] == dtype;
    if (!is_known)
        return tare__call_fail(call,
                               "Expecting target dtype to be one of dict_keys([torch.uint8, "
                               "torch.int8, torch.uint16, torch.int16, torch.int32, "
                               "torch.float8_e5m2, torch.float8_e4m3fn]), but got: %s",
                               tare_dtype_name(dtype));
    if (quant_min > 0 || quant_max < 0)
        return tare__call_fail(call, "Used-specified quantization range must include 0.");
    if (quant_min >= quant_max)
        return tare__call_fail(
            call, "qmin must be strictly less than qmax for user-specified quantization range.");
    if (quant_min >= INT32_MIN && quant_max <= INT32_MAX) return TARE_OK;
    return tare__call_fail(call, "the quantization range must be one of int32");
}

static tare_status choose_shape(op_call *call) {
    const int64_t one[] = {1};
    int64_t quant_min, quant_max;
    TARE_TRY(tare__call_int(call, 1, 0, &quant_min));
    TARE_TRY(tare__call_int(call, 2, 0, &quant_max));
    TARE_TRY(check_choice(call, quant_min, quant_max));
    return tare__call_result_pair(call, TARE_FLOAT64, TARE_INT64, 1, one);
}

static tare_status read_extremes(op_call *call, const tare_tensor *x, float *low, float *high) {
    tare_tensor *real = NULL;
    if (x->count == 0)
        return tare__call_fail(call, "aminmax(): cannot compute aminmax over an empty dimension as "
                                     "the operation has no identity.");
    TARE_TRY(tare_tensor_to_float(x, &real, call->err));
    tare__find_range(real, low, high);
    tare_tensor_release(real);
    *low = *low < 0 ? *low : 0;
    *high = *high > 0 ? *high : 0;
    return TARE_OK;
}

// Computes in the input's dtype: with half precision, intermediate results are rounded.
static tare_status choose(op_call *call, bool symmetric) {
    const tare_tensor *x;
    int64_t quant_min, quant_max;
    double eps;
    tare_dtype dtype;
    float low, high;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    TARE_TRY(tare__call_int(call, 1, 0, &quant_min));
    TARE_TRY(tare__call_int(call, 2, 0, &quant_max));
    TARE_TRY(tare__call_double(call, 3, 0, &eps));
    TARE_TRY(tare__call_dtype(call, 4, TARE_DTYPE_UNSET, &dtype));
    TARE_TRY(read_extremes(call, x, &low, &high));
    const float steps = (float)(quant_max - quant_min), magnitude = -low > high ? -low : high;
    const float span = symmetric ? magnitude : tare__round_to(x->dtype, high - low);
    float scale = tare__round_to(x->dtype, span / (symmetric ? steps / 2 : steps));
    if (scale < (float)eps) scale = (float)eps;
    const int64_t middle = dtype == TARE_UINT8 ? 128 : 0;
    const int64_t shifted = quant_min - tare__saturate_int32((double)(low / scale));
    const int64_t zero_point = symmetric ? middle : tare__clamp_int(shifted, quant_min, quant_max);
    tare__tensor_set(call->result.as.items[0].as.tensor, 0, (double)scale);
    tare__tensor_set(call->result.as.items[1].as.tensor, 0, (double)zero_point);
    return TARE_OK;
}

static tare_status choose_affine(op_call *call) {
    return choose(call, false);
}
static tare_status choose_symmetric(op_call *call) {
    return choose(call, true);
}

// --- rows ---

#define NAMESPACE DECOMPOSED_NAMES
// A name without an overload is the overload packet, which torch's reference representation prints.
#define PER_TENSOR(name)                                                                           \
    NAMESPACE name ".default|" NAMESPACE name ".tensor|" NAMESPACE name ".tensor2|" NAMESPACE name
#define PER_CHANNEL(name) NAMESPACE name ".default|" NAMESPACE name
#define DECOMPOSED(name, names, more, parameter_names, rule, compute)                              \
    {                                                                                              \
        .id = "decomposed." name, .functions = names, .params = parameter_names,                   \
        .traits = OP_ELEMENTWISE | OP_ANY_DTYPE | (more), .shape = rule, .reference = compute      \
    }

// clang-format off
static const op_info rows[] = {
    DECOMPOSED("quantize_per_tensor", PER_TENSOR("quantize_per_tensor"), 0,
               "input|scale|zero_point|quant_min|quant_max|dtype", tensor_quantized_shape, quantize_per_tensor),
    DECOMPOSED("dequantize_per_tensor", PER_TENSOR("dequantize_per_tensor"), OP_DEQUANTIZES,
               "input|scale|zero_point|quant_min|quant_max|dtype|out_dtype", tensor_values_shape, dequantize_per_tensor),
    DECOMPOSED("quantize_per_channel", PER_CHANNEL("quantize_per_channel"), 0,
               "input|scales|zero_points|axis|quant_min|quant_max|dtype", channel_quantized_shape, quantize_per_channel),
    DECOMPOSED("dequantize_per_channel", PER_CHANNEL("dequantize_per_channel"), OP_DEQUANTIZES,
               "input|scales|zero_points|axis|quant_min|quant_max|dtype|out_dtype", channel_values_shape, dequantize_per_channel),
    {.id = "decomposed.choose_qparams", .functions = NAMESPACE "choose_qparams.tensor",
     .params = "input|quant_min|quant_max|eps|dtype", .traits = OP_ANY_DTYPE, .shape = choose_shape, .reference = choose_affine},
    {.id = "decomposed.choose_qparams_symmetric", .functions = NAMESPACE "choose_qparams_symmetric.tensor",
     .params = "input|quant_min|quant_max|eps|dtype", .traits = OP_ANY_DTYPE, .shape = choose_shape, .reference = choose_symmetric},
};
// clang-format on

const op_table tare__decomposed_ops = OP_TABLE(rows);
