// SPDX-License-Identifier: Apache-2.0
// The definition of quantized arithmetic. Kernels for every instruction set, generated code and the
// fake-quantized forward give the same bits as these functions; the scalar references and the tests
// call them directly.
//
// Conventions: every float operation is rounded to single precision, in the written order; only
// fmaf is contracted; rint is round half to even (the default rounding mode). f32(x) below is a
// conversion to float. Quantized values are integers between quant_min and quant_max.
#ifndef CORE_MATH_REQUANT_H
#define CORE_MATH_REQUANT_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

// 16: gcc's value for machines with half floats; floats are still evaluated as floats.
_Static_assert(FLT_EVAL_METHOD == 0 || FLT_EVAL_METHOD == 16,
               "float arithmetic must round to float after every operation");

// --- quantized values ---

static inline int64_t tare__clamp_int(int64_t number, int64_t least, int64_t most) {
    return number < least ? least : number > most ? most : number;
}

/// rint(r) clamped to [least, most], for any float; NaN gives least. Clamping a float to integer
/// bounds before rounding is equivalent, which vector code does.
static inline int32_t tare__round_between(float r, int32_t least, int32_t most) {
    const double whole = (double)nearbyintf(r); // int32 bounds are exact in double, not in float
    if (!(whole > least)) return least;
    return whole < most ? (int32_t)whole : most;
}

/// v / 2^shift rounded toward minus infinity, for 0 <= shift <= 62 (>> of a negative number is
/// implementation-defined).
static inline int64_t tare__shift_right(int64_t v, int shift) {
    return v >= 0 ? v >> shift : ~(~v >> shift);
}

/// The nearest int32, ties to even; saturates, NaN gives 0.
static inline int32_t tare__saturate_int32(double real) {
    if (isnan(real)) return 0;
    const double whole = nearbyint(real);
    if (whole <= INT32_MIN) return INT32_MIN;
    return whole >= INT32_MAX ? INT32_MAX : (int32_t)whole;
}

// --- quantize, dequantize (torch.quantize_per_tensor, quantize_per_channel) ---

/// 1 / f32(scale): quantizing multiplies by this reciprocal instead of dividing.
static inline float tare__inverse_scale(double scale) {
    return 1.0F / (float)scale;
}

/// clamp(rint(x * inverse) + zero_point, quant_min, quant_max); NaN and +inf give quant_max.
static inline int64_t tare__quantize(float x, float inverse, int64_t zero_point, int64_t quant_min,
                                     int64_t quant_max) {
    const double r = (double)nearbyintf(x * inverse);
    if (!(r < (double)(quant_max - zero_point))) return quant_max;
    if (r <= (double)(quant_min - zero_point)) return quant_min;
    return (int64_t)r + zero_point;
}

/// As tare__quantize for a channel of a per-channel scheme, except that NaN gives the zero point.
static inline int64_t tare__quantize_channel(float x, float inverse, int64_t zero_point,
                                             int64_t quant_min, int64_t quant_max) {
    if (isnan(x * inverse)) return tare__clamp_int(zero_point, quant_min, quant_max);
    return tare__quantize(x, inverse, zero_point, quant_min, quant_max);
}

/// per_channel_affine_float_qparams: clamp(rint(x * inverse + zero_point), quant_min, quant_max).
static inline int64_t tare__quantize_float_qparams(float x, float inverse, float zero_point,
                                                   int64_t quant_min, int64_t quant_max) {
    const float product = x * inverse;
    const double r = (double)nearbyintf(product + zero_point);
    if (!(r > (double)quant_min)) return quant_min;
    return r < (double)quant_max ? (int64_t)r : quant_max;
}

/// f32(q - zero_point) * f32(scale).
static inline float tare__dequantize(int64_t q, int64_t zero_point, float scale) {
    return (float)(q - zero_point) * scale;
}

/// (f32(q) - zero_point) * scale.
static inline float tare__dequantize_float_qparams(int64_t q, float zero_point, float scale) {
    const float shifted = (float)q - zero_point;
    return shifted * scale;
}

/// A row of a quantized embedding, as the packed kernel computes it: q * scale + bias, rounded
/// once, where bias = f32(-zero_point * scale) is stored with the row.
static inline float tare__dequantize_embedding(int64_t q, float scale, float bias) {
    return fmaf((float)q, scale, bias);
}

// --- fake quantize (torch.fake_quantize_per_tensor_affine and per_channel) ---

typedef struct fake_quantized {
    float value;
    bool inside; // the gradient passes: the unclamped quantized value is between quant_min and
                 // quant_max
} fake_quantized;

/// qi = f32(rint(x * inverse) + zero_point), which loses precision if the zero point is large;
/// value = f32(clamp(qi) - zero_point) * scale. NaN becomes quant_min and passes no gradient.
static inline fake_quantized tare__fake_quantize(float x, float scale, int64_t zero_point,
                                                 int64_t quant_min, int64_t quant_max) {
    const double qi = (double)(nearbyintf(x * (1.0F / scale)) + (float)zero_point);
    const bool inside = qi >= (double)quant_min && qi <= (double)quant_max;
    const int64_t outside = qi > (double)quant_max ? quant_max : quant_min;
    const int64_t q = inside ? (int64_t)qi : outside;
    return (fake_quantized){tare__dequantize(q, zero_point, scale), inside};
}

/// Float zero points: qi = rint(f32(x * inverse + zero_point)); value = f32((clamp(qi) -
/// zero_point) * scale) with the difference and the product in double.
static inline fake_quantized tare__fake_quantize_float_qparams(float x, float scale,
                                                               float zero_point, int64_t quant_min,
                                                               int64_t quant_max) {
    const float product = x * (1.0F / scale);
    const double qi = (double)nearbyintf(product + zero_point);
    const bool inside = qi >= (double)quant_min && qi <= (double)quant_max;
    const double q = inside ? qi : qi > (double)quant_max ? (double)quant_max : (double)quant_min;
    return (fake_quantized){(float)((q - (double)zero_point) * (double)scale), inside};
}

// --- dynamic quantization parameters (fbgemm's ChooseQuantizationParams) ---

typedef struct dynamic_qparams {
    double scale;
    int32_t zero_point;
} dynamic_qparams;

typedef struct dynamic_range {
    float min, max;               // of the data
    int32_t quant_min, quant_max; // before reduce_range halves them
    bool reduce_range;
    bool symmetric; // keeps zero in the middle if the data includes it ("preserve sparsity")
} dynamic_range;

dynamic_qparams tare__choose_dynamic_qparams(const dynamic_range *range);

/// choose_qparams of quantized_decomposed, in float32; min and max are widened to hold 0:
///   scale = max((max - min) / (quant_max - quant_min), eps)
///   zero_point = clamp(quant_min - rint(min / scale), quant_min, quant_max)
/// or, if symmetric, scale = max(max(-min, max) / ((quant_max - quant_min) / 2), eps) and the
/// given zero point. reduce_range has no meaning here.
dynamic_qparams tare__choose_decomposed_qparams(const dynamic_range *range, float eps,
                                                int32_t symmetric_zero_point);

// --- requantization: int32 accumulator of linear and convolution -> output code ---

/// acc = sum of (x - x zero point) * (w - w zero point), exact. aw = f32(f32(x scale) * f32(w
/// scale)), os, oz: output scale and zero point, b: float bias. lo = quant_min, or with a fused
/// ReLU max(quant_min, oz), for each rule: clamping the quantized value at the zero point is
/// clamping the value at 0.
typedef enum requant_rule {
    REQUANT_UNSET = 0,
    /// fbgemm. t = f32(acc) + b / aw; y = clamp(rint(t * (aw / os)) + oz, lo, quant_max)
    REQUANT_F = 1,
    /// oneDNN. v = f32(acc) * aw + b (two roundings); y = clamp(rint(v * (1 / os) + f32(oz)), lo,
    /// ..): the zero point comes before the rounding, so that ties differ from F where oz is odd.
    REQUANT_O = 2,
    /// QNNPACK. bi = rint(b * (1 / aw)); y = clamp(rint(f32(acc + bi) * (aw / os)) + oz, lo, ..)
    REQUANT_Q = 3,
    /// For hardware without floats; bi as in Q, and aw / os = m * 2^-shift exactly, 2^30 <= m <
    /// 2^31: y = clamp(((acc + bi) * m + 2^(shift - 1) >> shift) + oz, lo, ..), in int64, ties
    /// upwards. After XNNPACK's "rndnu" and TOSA's RESCALE with one rounding.
    REQUANT_FIXED_POINT = 4,
    REQUANT_RULE_COUNT = 5
} requant_rule;

/// "F", "O", "Q", "fixed_point": how files name a rule. "" for unset.
const char *tare__requant_rule_name(requant_rule rule);
requant_rule tare__requant_rule_from_name(const char *name); // REQUANT_UNSET if unknown

typedef struct requant_spec {
    requant_rule rule;
    int64_t channel_count;
    double input_scale;
    const double *weight_scale; // [weight_scale_count]
    int64_t weight_scale_count; // 1 or channel_count
    const float *bias;          // [channel_count], or NULL
    double output_scale;
    int64_t output_zero_point, quant_min, quant_max; // of the output
    bool relu;
} requant_spec;

/// The constants for kernels, computed once per layer. The arrays have channel_count elements, are
/// padded with zeros to a multiple of REQUANT_PADDING, and are 64-byte aligned, so that tiles may
/// read beyond the end.
enum { REQUANT_PADDING = 16 };
typedef struct requant {
    requant_rule rule;
    int64_t channel_count;
    float *multiplier; // F, Q: aw / os. O: aw
    float *bias; // F: b / aw. O: b. Zeros without a bias (adding 0 changes no quantized value)
    int32_t *bias_int;  // Q, FIXED_POINT: bi
    int32_t *fixed;     // FIXED_POINT: m
    int32_t *shift;     // FIXED_POINT: 1 .. 62
    float inverse;      // 1 / os: of O, and of F's and Q's addends
    int32_t zero_point; // oz
    int32_t lo, hi;     // of the output
} requant;

/// Scales must be finite and > 0, oz and the bounds within int32. The caller destroys *out.
tare_status tare__requant_create(const requant_spec *spec, requant **out, tare_error *err);
void tare__requant_destroy(requant *r); // NULL is allowed

/// A sum modulo 2^32, as hardware computes it.
static inline int32_t tare__wrap_int32(int64_t sum) {
    const uint32_t low = (uint32_t)sum;
    return low <= INT32_MAX ? (int32_t)low : (int32_t)(low - INT32_MAX - 1) + INT32_MIN;
}

/// acc + bi modulo 2^32, as hardware computes it.
static inline int32_t tare__add_wrapping(int32_t a, int32_t b) {
    return tare__wrap_int32((int64_t)a + b);
}

/// The float that rule F rounds.
static inline float tare__requant_f_scaled(const requant *r, int64_t c, int32_t acc) {
    const float t = (float)acc + r->bias[c];
    return t * r->multiplier[c];
}

static inline int32_t tare__requant_f_finish(const requant *r, float scaled) {
    return tare__round_between(scaled, r->lo - r->zero_point, r->hi - r->zero_point) +
           r->zero_point;
}

static inline int32_t tare__requantize_f(const requant *r, int64_t c, int32_t acc) {
    return tare__requant_f_finish(r, tare__requant_f_scaled(r, c, acc));
}

/// The float in the middle of rule O, to which oneDNN applies other fused operators (leaky ReLU,
/// tanh, the residual sum).
static inline float tare__requant_o_value(const requant *r, int64_t c, int32_t acc) {
    const float product = (float)acc * r->multiplier[c];
    return product + r->bias[c];
}

static inline int32_t tare__requant_o_finish(const requant *r, float real) {
    const float scaled = real * r->inverse;
    return tare__round_between(scaled + (float)r->zero_point, r->lo, r->hi);
}

static inline int32_t tare__requantize_o(const requant *r, int64_t c, int32_t acc) {
    return tare__requant_o_finish(r, tare__requant_o_value(r, c, acc));
}

static inline float tare__requant_q_scaled(const requant *r, int64_t c, int32_t acc) {
    return (float)tare__add_wrapping(acc, r->bias_int[c]) * r->multiplier[c];
}

static inline int32_t tare__requantize_q(const requant *r, int64_t c, int32_t acc) {
    return tare__requant_f_finish(r, tare__requant_q_scaled(r, c, acc));
}

static inline int32_t tare__requantize_fixed_point(const requant *r, int64_t c, int32_t acc) {
    const int64_t product = (int64_t)tare__add_wrapping(acc, r->bias_int[c]) * r->fixed[c];
    const int64_t half = (int64_t)1 << (r->shift[c] - 1);
    const int64_t q = tare__shift_right(product + half, r->shift[c]) + r->zero_point;
    return (int32_t)tare__clamp_int(q, r->lo, r->hi);
}

static inline int32_t tare__requantize(const requant *r, int64_t channel, int32_t acc) {
    switch (r->rule) {
    case REQUANT_F:
        return tare__requantize_f(r, channel, acc);
    case REQUANT_O:
        return tare__requantize_o(r, channel, acc);
    case REQUANT_Q:
        return tare__requantize_q(r, channel, acc);
    case REQUANT_FIXED_POINT:
        return tare__requantize_fixed_point(r, channel, acc);
    case REQUANT_UNSET:
    case REQUANT_RULE_COUNT:
        break;
    }
    return r->zero_point;
}

/// The factor for a fused addend's f32(q - zero point): f32(its scale), in rules F and Q times 1 /
/// os.
static inline float tare__addend_factor(const requant *r, float scale) {
    return r->rule == REQUANT_O ? scale : scale * r->inverse;
}

/// The end of a sum with a fused addend, which is added before rounding. `own`: rule O's value, or
/// the float that F and Q would round. `other`: f32(q - zero point) of the addend. Rule O adds as
/// oneDNN does: v + other * factor. torch has no such layers with F and Q, which add with one
/// rounding: fmaf(other, factor, scaled). There is no such sum in fixed point.
static inline int32_t tare__requant_sum_finish(const requant *r, float own, float other,
                                               float factor) {
    if (r->rule != REQUANT_O) return tare__requant_f_finish(r, fmaf(other, factor, own));
    const float added = other * factor;
    return tare__requant_o_finish(r, own + added);
}

/// The quantized value of acc plus such an addend.
static inline int32_t tare__requantize_sum(const requant *r, int64_t c, int32_t acc, float other,
                                           float factor) {
    const float own = r->rule == REQUANT_O   ? tare__requant_o_value(r, c, acc)
                      : r->rule == REQUANT_Q ? tare__requant_q_scaled(r, c, acc)
                                             : tare__requant_f_scaled(r, c, acc);
    return tare__requant_sum_finish(r, own, other, factor);
}

/// A dynamic linear layer's float output: rule F rounds once, fmaf(f32(acc), aw, b); the others
/// twice.
static inline float tare__dynamic_output(requant_rule rule, int32_t acc, float aw, float bias) {
    if (rule == REQUANT_F) return fmaf((float)acc, aw, bias);
    const float product = (float)acc * aw;
    return product + bias;
}

// --- elementwise operators on quantized values ---

typedef struct quantized_range {
    float scale;
    int32_t zero_point;
} quantized_range;

/// quantized::add and add_relu on the native engines (fbgemm, x86, onednn):
///   sum = f32(a - za) * sa + f32(b - zb) * sb (three roundings);
///   y = clamp(rint(sum * (1 / os)) + oz, lo, hi)
/// torch's vector path fuses the first product with its zero point; its scalar path, for short
/// tensors and tails, does not. At ties they differ. This is the scalar path, which does not depend
/// on the length and agrees with the reference model.
typedef struct native_add {
    float scale_a, scale_b, inverse;
    int32_t zero_a, zero_b, zero_point, lo, hi; // lo: with ReLU at least the zero point
} native_add;

static inline native_add tare__native_add(quantized_range a, quantized_range b, quantized_range out,
                                          int32_t quant_min, int32_t quant_max, bool relu) {
    return (native_add){
        .scale_a = a.scale,
        .scale_b = b.scale,
        .inverse = 1.0F / out.scale,
        .zero_a = a.zero_point,
        .zero_b = b.zero_point,
        .zero_point = out.zero_point,
        .lo = relu && out.zero_point > quant_min ? out.zero_point : quant_min,
        .hi = quant_max,
    };
}

static inline int32_t tare__native_add_quantized(const native_add *p, int32_t a, int32_t b) {
    const float da = (float)(a - p->zero_a) * p->scale_a;
    const float db = (float)(b - p->zero_b) * p->scale_b;
    const float sum = da + db;
    return tare__round_between(sum * p->inverse, p->lo - p->zero_point, p->hi - p->zero_point) +
           p->zero_point;
}

/// quantized::add and add_relu on qnnpack: fixed point. A = f32(sa / os), B = f32(sb / os),
/// shift = 21 - floor(log2(max(A, B))), am = rint(A * 2^shift), bm likewise;
/// acc = a*am + b*bm - (am*za + bm*zb), divided by 2^shift with ties away from zero, + oz, clamped.
typedef struct qnnpack_add {
    int64_t multiplier_a, multiplier_b, offset;
    int shift;
    int32_t zero_point, lo, hi;
} qnnpack_add;

qnnpack_add tare__qnnpack_add(quantized_range a, quantized_range b, quantized_range out,
                              int32_t quant_min, int32_t quant_max, bool relu);

static inline int32_t tare__qnnpack_add_quantized(const qnnpack_add *p, int32_t a, int32_t b) {
    const int64_t acc = a * p->multiplier_a + b * p->multiplier_b - p->offset;
    // floor(acc / 2^shift) and the remainder; subtracting one from a negative value rounds its ties
    // away from zero.
    const int64_t quotient = tare__shift_right(acc, p->shift);
    const int64_t step = (int64_t)1 << p->shift;
    const int64_t rest = acc - quotient * step - (acc < 0 ? 1 : 0);
    const int64_t rounded = quotient + (rest > (step - 1) >> 1 ? 1 : 0);
    return (int32_t)tare__clamp_int(rounded + p->zero_point, p->lo, p->hi);
}

/// quantized::mul and mul_relu: p = (a - za) * (b - zb);
///   y = clamp(rint(f32(p) * f32(f32(sa * sb) * (1 / os))) + oz, lo, hi)
typedef struct quantized_mul {
    int32_t zero_a, zero_b;
    float multiplier;
    int32_t zero_point, lo, hi;
} quantized_mul;

static inline quantized_mul tare__quantized_mul(quantized_range a, quantized_range b,
                                                quantized_range out, int32_t quant_min,
                                                int32_t quant_max, bool relu) {
    const float product = a.scale * b.scale;
    return (quantized_mul){
        .zero_a = a.zero_point,
        .zero_b = b.zero_point,
        .multiplier = product * (1.0F / out.scale),
        .zero_point = out.zero_point,
        .lo = relu && out.zero_point > quant_min ? out.zero_point : quant_min,
        .hi = quant_max,
    };
}

static inline int32_t tare__quantized_mul_quantized(const quantized_mul *p, int32_t a, int32_t b) {
    const int32_t product = (a - p->zero_a) * (b - p->zero_b);
    return tare__round_between((float)product * p->multiplier, p->lo - p->zero_point,
                               p->hi - p->zero_point) +
           p->zero_point;
}

/// quantized::add_scalar, add_scalar_relu, mul_scalar: the operator chooses its output's scale and
/// zero point itself.
typedef struct scalar_op {
    double scale; // of the output
    int64_t zero_point;
    enum { SCALAR_KEEP, SCALAR_REQUANTIZE, SCALAR_MIRROR, SCALAR_ZERO } effect;
    // For SCALAR_REQUANTIZE: y = rint((x - moved) * multiplier) + zero_point, where `moved` is the
    // input's zero point minus the addend in integer steps of the input, as in torch's kernel.
    double moved;
    float multiplier;
    int64_t quant_min, quant_max;
    int64_t lo; // with ReLU the output's zero point
} scalar_op;

/// k = rint(c / s). If z - k is a valid zero point, quantized values stay and z' = z - k. Below: z'
/// = quant_min and s' = (quant_max - (z - k)) / (quant_max - quant_min) * s; above: z' = quant_max
/// likewise; requantized.
scalar_op tare__add_scalar(double scale, int64_t zero_point, double addend, int64_t quant_min,
                           int64_t quant_max, bool relu);
/// c > 0: quantized values stay, s' = s * c. c < 0: quantized values and zero point are mirrored,
/// s' = s * |c|. c = 0: s' = 1, z' = 0, quantized values 0.
scalar_op tare__mul_scalar(double scale, int64_t zero_point, double factor, int64_t quant_min,
                           int64_t quant_max, bool relu);

static inline int64_t tare__scalar_op_quantized(const scalar_op *op, int64_t q) {
    int64_t out = q;
    if (op->effect == SCALAR_ZERO) out = 0;
    if (op->effect == SCALAR_MIRROR) out = op->quant_max + op->quant_min - q;
    if (op->effect == SCALAR_REQUANTIZE) {
        const float scaled = (float)((double)q - op->moved) * op->multiplier;
        out = tare__round_between(scaled, (int32_t)(op->quant_min - op->zero_point),
                                  (int32_t)(op->quant_max - op->zero_point)) +
              op->zero_point;
    }
    return out < op->lo ? op->lo : out;
}

#endif
