// SPDX-License-Identifier: Apache-2.0
// Elementary functions of float32.
#include "core/math/f32.h"

#include "core/math/f64.h"
#include "core/math/vector_scalar.h"

#include "core/math/vector_functions.h"

float tare__expf(float x) {
    return v_exp(x);
}
float tare__expm1f(float x) {
    return v_expm1(x);
}
float tare__tanhf(float x) {
    return v_tanh(x);
}
float tare__erff(float x) {
    return v_erf(x);
}
float tare__sigmoidf(float x) {
    return v_sigmoid(x);
}

// --- logarithms, exponentials and hyperbolic functions, in double ---

float tare__logf(float x) {
    return (float)tare__log((double)x);
}
float tare__log1pf(float x) {
    return (float)tare__log1p((double)x);
}
float tare__log2f(float x) {
    return (float)tare__log2((double)x);
}
float tare__exp2f(float x) {
    return (float)tare__exp((double)x * 0x1.62e42fefa39efp-1);
}

float tare__asinhf(float x) {
    const double size = fabs((double)x), square = size * size;
    const double angle = tare__log1p(size + square / (1 + sqrt(square + 1)));
    return (float)copysign(angle, (double)x);
}
float tare__acoshf(float x) {
    const double above = (double)x - 1;
    if (above < 0) return NAN;
    return (float)tare__log1p(above + sqrt(above * (above + 2)));
}
float tare__atanhf(float x) {
    const double size = fabs((double)x);
    return (float)copysign(tare__log1p(2 * size / (1 - size)) / 2, (double)x);
}

// Near 0 the difference of exponentials loses too many bits.
float tare__sinhf(float x) {
    const double at = (double)x, square = at * at;
    if (square < 0x1p-16) return (float)(at + at * square / 6 * (1 + square / 20));
    return (float)((tare__exp(at) - tare__exp(-at)) / 2);
}
float tare__coshf(float x) {
    return (float)((tare__exp((double)x) + tare__exp(-(double)x)) / 2);
}

// --- circular functions ---

float tare__atanf(float x) {
    return (float)tare__atan((double)x);
}
float tare__asinf(float x) {
    const double at = (double)x;
    return (float)tare__atan(at / sqrt((1 - at) * (1 + at)));
}
float tare__acosf(float x) {
    const double at = (double)x;
    return (float)(2 * tare__atan(sqrt((1 - at) / (1 + at))));
}

static const double quarter = 0x1.921fb54442d18p+0; // pi / 2

// x = (4 k + n) pi / 2 + r with |r| <= pi / 4, for |x| >= 2^25. Bits of 2 / pi whose product with x
// is a multiple of four are skipped; 96 of the others are enough.
static double reduce_large(float x, unsigned *n) {
    static const uint32_t two_over_pi[] = {0xa2f9836eU, 0x4e441529U, 0xfc2757d1U, 0xf534ddc0U,
                                           0xdb629599U, 0x3c439041U, 0xfe5163abU};
    uint32_t bits, words[3];
    memcpy(&bits, &x, sizeof bits);
    const uint32_t mantissa = (bits & 0x7fffffU) | 0x800000U;
    const uint32_t skipped = (bits >> 23 & 0xffU) - 127 - 23 - 2;
    for (uint32_t i = 0; i < 3; i++) {
        const uint64_t two =
            (uint64_t)two_over_pi[skipped / 32 + i] << 32 | two_over_pi[skipped / 32 + i + 1];
        words[i] = (uint32_t)(two >> (32 - skipped % 32));
    }
    const uint64_t low = (uint64_t)mantissa * words[2] >> 32;
    uint64_t turns = ((uint64_t)mantissa * words[0] << 32) + (uint64_t)mantissa * words[1] + low;
    *n = (unsigned)((turns + ((uint64_t)1 << 61)) >> 62);
    turns -= (uint64_t)*n << 62;
    const bool is_below = turns >> 63 != 0;
    const double rest = (double)(is_below ? -turns : turns) * (is_below ? -0x1p-62 : 0x1p-62);
    *n = signbit(x) ? 0U - *n : *n;
    return (signbit(x) ? -rest : rest) * quarter;
}

// The same for any x; pi / 2 is the sum of three doubles, two of which have exact products.
static double reduce(float x, unsigned *n) {
    const double rounder = 0x1.8p52, at = (double)x;
    if (fabs(at) >= 0x1p25) return reduce_large(x, n);
    const double whole = at * 0x1.45f306dc9c883p-1 + rounder - rounder;
    *n = (unsigned)(int32_t)whole;
    return at - whole * 0x1.921fb54p+0 - whole * 0x1.10b46p-30 - whole * 0x1.1a62633145c07p-54;
}

// The sine of x + turns pi / 2.
static double sine(float x, unsigned turns) {
    unsigned n;
    if (!isfinite(x)) return (double)(x - x);
    const double r = reduce(x, &n);
    n += turns;
    const double size = n % 2 != 0 ? tare__cosine_near_0(r) : tare__sine_near_0(r);
    return n % 4 >= 2 ? -size : size;
}

float tare__sinf(float x) {
    return (float)sine(x, 0);
}
float tare__cosf(float x) {
    return (float)sine(x, 1);
}
float tare__tanf(float x) {
    return (float)(sine(x, 0) / sine(x, 1));
}
