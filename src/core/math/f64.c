// SPDX-License-Identifier: Apache-2.0
// Elementary functions of double. Taylor series suffice, because their arguments are small.
#include "core/math/f64.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// ln 2 as the sum of two doubles; the first one's product with an exponent is exact.
static const double ln2_high = 0x1.62e42fee00000p-1, ln2_low = 0x1.a39ef35793c76p-33;
static const double log2_e = 0x1.71547652b82fep+0;
static const double half_pi = 0x1.921fb54442d18p+0;

static uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double of_bits(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// 2^n for n of [-1022, 1023].
static double power_of_two(int n) {
    return of_bits((uint64_t)(n + 1023) << 52);
}

// exp(r) for |r| <= ln 2 / 2.
static double exp_near_0(double r) {
    double p = 0;
    for (int k = 14; k > 0; k--) p = (p + 1) * r / k;
    return p + 1;
}

// exp(x + rest) for a rest below an ulp of x.
static double exp_of_sum(double x, double rest) {
    const double rounder = 0x1.8p52;
    if (isnan(x)) return x;
    if (x > 710) return (double)INFINITY;
    if (x < -746) return 0;
    const double n = x * log2_e + rounder - rounder;
    const int whole = (int)n, half = whole / 2;
    const double r = x - n * ln2_high - n * ln2_low + rest;
    return exp_near_0(r) * power_of_two(half) * power_of_two(whole - half);
}

double tare__exp(double x) {
    return exp_of_sum(x, 0);
}

// x = 2^exponent * mantissa, which is of [sqrt(1/2), sqrt(2)). x > 0 and finite.
static int split(double x, double *mantissa) {
    const int normal = x < 0x1p-1022 ? 54 : 0;
    const uint64_t bits = bits_of(normal != 0 ? x * 0x1p54 : x);
    int exponent = (int)(bits >> 52) - 1023 - normal;
    *mantissa = of_bits((bits & 0xfffffffffffffU) | (uint64_t)1023 << 52);
    if (*mantissa >= 0x1.6a09e667f3bcdp+0) {
        *mantissa /= 2;
        exponent++;
    }
    return exponent;
}

// The logarithm of the mantissa is 2 (s + s^3 / 3 + s^5 / 5 + ..) with s = (m - 1) / (m + 1).
// Returns the terms after s.
static double log_rest(double s) {
    const double square = s * s;
    double sum = 0;
    for (int k = 25; k > 1; k -= 2) sum = (sum + 1.0 / k) * square;
    return sum * s;
}

// True for special values, with the result in *out.
static bool has_no_logarithm(double x, double *out) {
    *out = x == 0 ? (double)-INFINITY : x < 0 ? (double)NAN : x;
    return !(x > 0) || isinf(x);
}

double tare__log(double x) {
    double mantissa, other;
    if (has_no_logarithm(x, &other)) return other;
    const int exponent = split(x, &mantissa);
    const double s = (mantissa - 1) / (mantissa + 1);
    return exponent * ln2_high + (2 * s + (2 * log_rest(s) + exponent * ln2_low));
}

double tare__log2(double x) {
    double mantissa, other;
    if (has_no_logarithm(x, &other)) return other;
    const int exponent = split(x, &mantissa);
    const double s = (mantissa - 1) / (mantissa + 1);
    return exponent + 2 * (s + log_rest(s)) * log2_e;
}

// A factor corrects the rounding error of 1 + x.
double tare__log1p(double x) {
    const double sum = 1 + x;
    if (sum == 1 || isinf(x)) return x == (double)-INFINITY ? (double)NAN : x;
    return sum > 0 ? tare__log(sum) * (x / (sum - 1)) : tare__log(sum);
}

// --- pow ---

static bool is_whole(double y) {
    return y == trunc(y);
}
static bool is_odd(double y) {
    return is_whole(y) && fabs(y) < 0x1p53 && fmod(y, 2) != 0;
}

// By squaring: exact where results are.
static double whole_power(double x, unsigned n) {
    double y = 1;
    for (; n > 0; n /= 2, x *= x)
        if (n % 2 != 0) y *= x;
    return y;
}

// log(x) as the sum of two doubles, with some 60 bits.
static double long_log(double x, double *low) {
    double mantissa;
    const int exponent = split(x, &mantissa);
    const double top = mantissa - 1, bottom = mantissa + 1, s = top / bottom;
    // m + 1 loses at most its last bit, which is in bottom_low; so s has twice the precision.
    const double bottom_low = mantissa - (bottom - 1);
    const double s_low = (fma(-s, bottom, top) - s * bottom_low) / bottom;
    const double rest = 2 * (s_low + log_rest(s)) + exponent * ln2_low;
    const double first = exponent * ln2_high, sum = first + 2 * s;
    const double lost = fabs(first) >= fabs(2 * s) ? first - sum + 2 * s : 2 * s - sum + first;
    const double high = sum + (rest + lost);
    *low = sum - high + (rest + lost);
    return high;
}

// |x|^y for finite x > 0 and a finite y.
static double size_power(double x, double y) {
    double low;
    if (is_whole(y) && fabs(y) <= 64) {
        const double power = whole_power(x, (unsigned)fabs(y));
        const bool is_normal = power >= 0x1p-1000 && power <= 0x1p1000;
        if (is_normal) return y < 0 ? 1 / power : power;
    }
    const double high = long_log(x, &low), product = y * high;
    if (fabs(product) > 800) return product > 0 ? (double)INFINITY : 0;
    return exp_of_sum(product, fma(y, high, -product) + y * low);
}

double tare__pow(double x, double y) {
    const double size = fabs(x);
    double power;
    if (y == 0 || x == 1) return 1;
    if (isnan(x) || isnan(y)) return x + y;
    if (isinf(y)) return size == 1 ? 1 : (size > 1) == (y > 0) ? (double)INFINITY : 0;
    if (size == 0 || isinf(size))
        power = (size == 0) == (y > 0) ? 0 : (double)INFINITY;
    else if (x < 0 && !is_whole(y))
        return (double)NAN;
    else
        power = size_power(size, y);
    return signbit(x) && is_odd(y) ? -power : power;
}

// --- circular functions ---

double tare__sine_near_0(double r) {
    const double square = r * r;
    double sum = 0;
    for (int k = 16; k > 0; k -= 2) sum = (1 - sum) * square / (k * (k + 1));
    return r * (1 - sum);
}
double tare__cosine_near_0(double r) {
    const double square = r * r;
    double sum = 0;
    for (int k = 17; k > 0; k -= 2) sum = (1 - sum) * square / (k * (k + 1));
    return 1 - sum;
}

double tare__cos_of_turns(double turns) {
    const double quarters = rint(4 * turns), r = (turns - quarters / 4) * (4 * half_pi);
    const double n = quarters - 4 * floor(quarters / 4);
    const double size = n == 1 || n == 3 ? tare__sine_near_0(r) : tare__cosine_near_0(r);
    return n == 1 || n == 2 ? -size : size;
}

// tan(half the angle) = x / (1 + sqrt(1 + x^2)); halving the angle twice makes it small enough for
// a series.
double tare__atan(double x) {
    const double size = fabs(x);
    if (isnan(x)) return x;
    double t = size > 1 ? 1 / size : size;
    for (int i = 0; i < 2; i++) t /= 1 + sqrt(1 + t * t);
    const double square = t * t;
    double sum = 0;
    for (int k = 25; k > 0; k -= 2) sum = 1.0 / k - sum * square;
    const double angle = 4 * t * sum;
    return copysign(size > 1 ? half_pi - angle : angle, x);
}
