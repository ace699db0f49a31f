// SPDX-License-Identifier: Apache-2.0
// Elementary functions of vectors of float32, defined once for all widths. The including file must
// include a kind of vectors first (see core/math/vector_scalar.h for the operations).
//
// Largest errors in units of the last place (ulp) of the exact result, found over all 2^32 floats,
// where results are normal floats; core/math/f32.h has the list. Polynomials are minimax fits.
// Private to core/math.
#ifndef CORE_MATH_VECTOR_FUNCTIONS_H
#define CORE_MATH_VECTOR_FUNCTIONS_H

// 1.5 * 2^23: adding it rounds to the nearest integer, ties to even.
#define ROUNDER 12582912.0F

// x = n ln 2 + r with |r| <= ln 2 / 2: gives r and n + ROUNDER.
static inline vec v_reduce(vec x, vec *shifted) {
    *shifted = v_fma(x, v_set(1.44269504F), v_set(ROUNDER));
    const vec n = v_sub(*shifted, v_set(ROUNDER));
    return v_fma(n, v_set(0x1.05c61p-29F), v_fma(n, v_set(-0x1.62e43p-1F), x));
}

// exp(r) - 1 for |r| <= ln 2 / 2. Evaluating the polynomial in pairs has a shorter latency.
static inline vec v_expm1_near_0(vec r) {
    const vec square = v_mul(r, r);
    const vec high = v_fma(r, v_set(0x1.6db462p-10F), v_set(0x1.123b7ep-7F));
    const vec middle = v_fma(r, v_set(0x1.55545ep-5F), v_set(0x1.55548ep-3F));
    const vec rest = v_fma(v_fma(high, square, middle), r, v_set(0.5F));
    return v_fma(rest, square, r);
}
static inline vec v_exp_near_0(vec r) {
    return v_add(v_expm1_near_0(r), v_set(1.0F));
}

// exp(x) for x of [-87.3, 88.3]; infinity for x of [88.4, 89].
static inline vec v_exp_within(vec x) {
    vec shifted;
    const vec r = v_reduce(x, &shifted);
    return v_mul(v_exp_near_0(r), v_power(shifted));
}

// 2^(x + shift) for x in [-126, 127.4] and an integer shift for which the result is a normal float;
// infinity for x in [127.6, 128]. If x is rounded itself, exp would not be more exact.
static inline vec v_exp2_within(vec x, float shift) {
    const vec shifted = v_add(x, v_set(ROUNDER)), r = v_sub(x, v_sub(shifted, v_set(ROUNDER)));
    const vec square = v_mul(r, r);
    const vec high = v_fma(r, v_set(0x1.448fe6p-13F), v_set(0x1.5f47dep-10F));
    const vec middle = v_fma(r, v_set(0x1.3b29aap-7F), v_set(0x1.c6aedp-5F));
    const vec low = v_fma(r, v_set(0x1.ebfbep-3F), v_set(0x1.62e43p-1F));
    const vec rest = v_fma(v_fma(high, square, middle), square, low);
    return v_mul(v_fma(rest, r, v_set(1.0F)), v_power(v_add(shifted, v_set(shift))));
}

static inline vec v_clamp(vec x, vec low, vec high) {
    return v_min(high, v_max(low, x));
}

// exp(x) for sums with 1: at least exp(-87), and infinite from 88.4 on.
static inline vec v_exp_beside_1(vec x) {
    return v_exp_within(v_clamp(x, v_set(-87.0F), v_set(89.0F)));
}

// exp(x) for x <= 0: 0 below -87.3, where normal floats end.
static inline vec v_exp_down(vec x) {
    const vec low = v_set(-87.3F);
    return v_blend(v_less(x, low), v_set(0.0F), v_exp_within(v_max(low, x)));
}

// Denormal and large results need the power of two in two factors.
static inline vec v_exp(vec x) {
    const vec rounder = v_set(ROUNDER);
    vec shifted;
    const vec r = v_reduce(v_clamp(x, v_set(-104.0F), v_set(89.0F)), &shifted);
    const vec n = v_sub(shifted, rounder), half = v_fma(n, v_set(0.5F), rounder);
    const vec rest = v_add(v_sub(n, v_sub(half, rounder)), rounder);
    const vec p = v_exp_near_0(r);
    return v_mul(v_mul(p, v_power(half)), v_power(rest));
}

// 2^n (exp(r) - 1) + (2^n - 1), where n may be 128: both terms are halved.
static inline vec v_expm1(vec x) {
    vec shifted;
    const vec r = v_reduce(v_clamp(x, v_set(-18.0F), v_set(89.0F)), &shifted);
    const vec half = v_power(v_sub(shifted, v_set(1.0F)));
    const vec sum = v_fma(v_expm1_near_0(r), half, v_sub(half, v_set(0.5F)));
    return v_add(sum, sum);
}

// (exp(2x) - 1) / (exp(2x) + 1), which is 1 from 9.02 on.
static inline vec v_tanh(vec x) {
    const vec size = v_min(v_set(10.0F), v_abs(x));
    vec shifted;
    const vec r = v_reduce(v_add(size, size), &shifted), power = v_power(shifted);
    const vec e = v_fma(v_expm1_near_0(r), power, v_sub(power, v_set(1.0F)));
    return v_with_sign(v_div(e, v_add(e, v_set(2.0F))), x);
}

static inline vec v_divided_by_1_and(vec x, vec e) {
    return v_div(x, v_add(v_set(1.0F), e));
}
static inline vec v_negative(vec x) {
    return v_sub(v_set(0.0F), x);
}
// 1 / (1 + exp(-x))
static inline vec v_sigmoid(vec x) {
    return v_divided_by_1_and(v_set(1.0F), v_exp_beside_1(v_negative(x)));
}
static inline vec v_silu(vec x) {
    return v_divided_by_1_and(x, v_exp_beside_1(v_negative(x)));
}

// x + x P(x^2) up to 0.9; above, 1 - 2^(x Q(x)), which is 1 from 3.93 on.
static inline vec v_erf(vec x) {
    const vec size = v_min(v_set(4.0F), v_abs(x)), square = v_mul(size, size);
    vec p = v_set(-0x1.3f4be8p-11F);
    p = v_fma(p, square, v_set(0x1.4875ccp-8F));
    p = v_fma(p, square, v_set(-0x1.b6beaep-6F));
    p = v_fma(p, square, v_set(0x1.ce1dcep-4F));
    p = v_fma(p, square, v_set(-0x1.8126f8p-2F));
    p = v_fma(p, square, v_set(0x1.06eba6p-3F));
    vec q = v_set(0x1.44a246p-12F);
    q = v_fma(q, size, v_set(-0x1.307192p-8F));
    q = v_fma(q, size, v_set(0x1.0eb75ap-5F));
    q = v_fma(q, size, v_set(-0x1.3715aep-3F));
    q = v_fma(q, size, v_set(-0x1.d590ccp-1F));
    q = v_fma(q, size, v_set(-0x1.a0cbd4p+0F));
    const vec above = v_sub(v_set(1.0F), v_exp2_within(v_mul(q, size), 0.0F));
    const vec below = v_fma(p, size, size);
    return v_with_sign(v_blend(v_less(size, v_set(0.9F)), below, above), x);
}

// x Phi(x), where Phi is the normal distribution function: Phi(-t) = 2^(t Q(t) - 1), and 0 below
// -6.
static inline vec v_gelu(vec x) {
    const vec end = v_set(6.0F), zero = v_set(0.0F);
    const vec size = v_abs(x), t = v_min(end, size);
    const vec t2 = v_mul(t, t), t4 = v_mul(t2, t2);
    const vec q0 = v_fma(t, v_set(-0x1.d63c58p-2F), v_set(-0x1.26aecep+0F));
    const vec q2 = v_fma(t, v_set(0x1.c9803p-8F), v_set(-0x1.adc58cp-5F));
    const vec q4 = v_fma(t, v_set(-0x1.148dbp-12F), v_set(-0x1.fc33aep-16F));
    const vec q6 = v_fma(t, v_set(-0x1.506ebep-17F), v_set(0x1.2b88ecp-14F));
    const vec q8 = v_fma(t, v_set(-0x1.ab1f16p-26F), v_set(0x1.9a2918p-21F));
    const vec high = v_fma(q8, t4, v_fma(q6, t2, q4));
    const vec q = v_fma(high, t4, v_fma(q2, t2, q0));
    const vec tail = v_exp2_within(v_mul(q, t), -1.0F);
    const vec cut = v_blend(v_less(end, size), zero, tail);
    return v_mul(x, v_blend(v_less(zero, x), v_sub(v_set(1.0F), cut), cut));
}

// x / 2 (1 + tanh(u)) = x / (1 + exp(-2u)) with u = sqrt(2 / pi) (x + 0.044715 x^3).
static inline vec v_gelu_tanh(vec x) {
    const vec factor = v_fma(v_mul(x, x), v_set(-0x1.a5a7dp-4F), v_set(-0x1.26aec2p+1F));
    const vec power = v_clamp(v_mul(x, factor), v_set(-125.0F), v_set(128.0F));
    return v_divided_by_1_and(x, v_exp2_within(power, 0.0F));
}

// x tanh(ln(1 + exp(x))) = x n / (n + 2) with n = exp(x) (exp(x) + 2).
static inline vec v_mish(vec x) {
    const vec two = v_set(2.0F), e = v_exp(v_min(v_set(20.0F), x)), n = v_mul(e, v_add(e, two));
    return v_mul(x, v_div(n, v_add(n, two)));
}

// scale * x for x > 0, else scale * alpha * (exp(input_scale * x) - 1).
static inline vec v_elu(vec x, vec alpha, vec scale, vec input_scale) {
    const vec below = v_mul(v_mul(v_expm1(v_mul(x, input_scale)), alpha), scale);
    return v_blend(v_less(v_set(0.0F), x), v_mul(x, scale), below);
}

static inline vec v_celu(vec x, vec alpha) {
    const vec below = v_mul(v_expm1(v_div(x, alpha)), alpha);
    return v_blend(v_less(v_set(0.0F), x), x, below);
}

static inline vec v_selu(vec x) {
    const vec below = v_mul(v_expm1(x), v_set(1.67326324F));
    return v_mul(v_set(1.05070099F), v_blend(v_less(v_set(0.0F), x), x, below));
}

// clamp(x + 3, 0, 6)
static inline vec v_ramp(vec x) {
    return v_clamp(v_add(x, v_set(3.0F)), v_set(0.0F), v_set(6.0F));
}

#endif
