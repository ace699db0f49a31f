// SPDX-License-Identifier: Apache-2.0
// Special functions of double.
#include "core/math/special.h"

#include <math.h>
#include <stddef.h>

#include "core/math/f64.h"

#define PI 0x1.921fb54442d18p+1

// (p[0] x + p[1]) x + ..
static double polynomial(const double *p, size_t count, double x) {
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum = sum * x + p[i];
    return sum;
}
#define POLYNOMIAL(p, x) polynomial((p), sizeof(p) / sizeof *(p), (x))

// sin(pi r) for |r| <= 1/2: exact near the zeros.
static double sine_of_pi(double r) {
    const double size = fabs(r);
    return size <= 0.25 ? tare__sine_near_0(PI * r)
                        : copysign(tare__cosine_near_0(PI * (0.5 - size)), r);
}
static double cosine_of_pi(double r) {
    const double size = fabs(r);
    return size <= 0.25 ? tare__cosine_near_0(PI * r) : tare__sine_near_0(PI * (0.5 - size));
}

// lgamma(2 + e) for |e| <= 1/2: Taylor's series, whose terms are (zeta(k) - 1) (-e)^k / k.
static double lgamma_near_2(double e) {
    static const double terms[] = {-0x1.2f69a9fabe3e0p-32,
                                   0x1.3b15d2b2fc10cp-31,
                                   -0x1.47b1679258d0ep-30,
                                   0x1.555a877ffd2c3p-29,
                                   -0x1.6434a8447aeadp-28,
                                   0x1.7469daccfadcdp-27,
                                   -0x1.862c734df3eacp-26,
                                   0x1.99b93c2070b0fp-25,
                                   -0x1.af5a6cbbf8a97p-24,
                                   0x1.c76bbb3f07a4dp-23,
                                   -0x1.e2600d93cfd2fp-22,
                                   0x1.0064cdeb22f0fp-20,
                                   -0x1.11b2eb7679541p-19,
                                   0x1.2597a39f34aacp-18,
                                   -0x1.3cbc963ce2243p-17,
                                   0x1.580dcee66eb02p-16,
                                   -0x1.78de5bd7c81efp-15,
                                   0x1.a127b0f17d65ap-14,
                                   -0x1.d3fd4c76d2fc8p-13,
                                   0x1.0b36af86396e9p-11,
                                   -0x1.38ac5c2bf8e08p-10,
                                   0x1.7add6eadb6c30p-9,
                                   -0x1.e404fc218f5f2p-8,
                                   0x1.51322ac7d8483p-6,
                                   -0x1.13e001a557607p-4,
                                   0x1.4a34cc4a60fa6p-2,
                                   0x1.b0ee6072093cep-2, // 1 - gamma
                                   0};
    return POLYNOMIAL(terms, e);
}

// The correction of Stirling's formula, for x >= 8: B(2k) / (2k (2k - 1) x^(2k - 1)).
static double stirling_rest(double x) {
    static const double terms[] = {-3617.0 / 122400, 1.0 / 156,  -691.0 / 360360, 1.0 / 1188,
                                   -1.0 / 1680,      1.0 / 1260, -1.0 / 360,      1.0 / 12};
    return POLYNOMIAL(terms, 1 / (x * x)) / x;
}

static double lgamma_of_positive(double x) {
    const double half_log_of_two_pi = 0x1.d67f1c864beb5p-1;
    if (x < 0.5) return lgamma_near_2(x) - tare__log1p(x) - tare__log(x);
    if (x < 1.5) return lgamma_near_2(x - 1) - tare__log1p(x - 1);
    if (x <= 2.5) return lgamma_near_2(x - 2);
    double product = 1;
    while (x < 8) product *= x++;
    if (x > 1e300) return isinf(x) ? x : x * (tare__log(x) - 1);
    return (x - 0.5) * tare__log(x) - x + half_log_of_two_pi + stirling_rest(x) -
           tare__log(product);
}

double tare__lgamma(double x) {
    if (isnan(x)) return x;
    if (isinf(x) || (x <= 0 && x == trunc(x))) return (double)INFINITY;
    if (x > 0) return lgamma_of_positive(x);
    if (x > -0.5) return lgamma_near_2(x) - tare__log1p(x) - tare__log(-x);
    const double sine = fabs(sine_of_pi(x - rint(x)));
    return tare__log(PI / sine) - lgamma_of_positive(1 - x);
}

// log x - 1/2x - B(2k) / (2k x^2k), from 10 on.
static double digamma_of_positive(double x) {
    static const double terms[] = {-3617.0 / 8160, 1.0 / 12,  -691.0 / 32760, 1.0 / 132,
                                   -1.0 / 240,     1.0 / 252, -1.0 / 120,     1.0 / 12};
    double sum = 0;
    while (x < 10) sum += 1 / x++;
    const double inverse = 1 / (x * x);
    return tare__log(x) - 0.5 / x - POLYNOMIAL(terms, inverse) * inverse - sum;
}

double tare__digamma(double x) {
    if (isnan(x)) return x;
    if (x == 0) return copysign((double)INFINITY, -x);
    if (x > 0) return digamma_of_positive(x);
    if (x == trunc(x)) return (double)NAN;
    if (x > -0.5) return digamma_of_positive(x + 1) - 1 / x;
    const double r = x - rint(x);
    return digamma_of_positive(1 - x) - PI * cosine_of_pi(r) / sine_of_pi(r);
}

// Wichura's algorithm AS 241 for quantiles of the normal distribution: rational functions.
static double quantile_in_the_middle(double q) {
    static const double top[] = {2.5090809287301226727e+3, 3.3430575583588128105e+4,
                                 6.7265770927008700853e+4, 4.5921953931549871457e+4,
                                 1.3731693765509461125e+4, 1.9715909503065514427e+3,
                                 1.3314166789178437745e+2, 3.3871328727963666080e+0};
    static const double bottom[] = {5.2264952788528545610e+3, 2.8729085735721942674e+4,
                                    3.9307895800092710610e+4, 2.1213794301586595867e+4,
                                    5.3941960214247511077e+3, 6.8718700749205790830e+2,
                                    4.2313330701600911252e+1, 1.0};
    const double r = 0.180625 - q * q;
    return POLYNOMIAL(top, r) * q / POLYNOMIAL(bottom, r);
}
static double quantile_near_the_ends(double r) {
    static const double top[] = {7.74545014278341407640e-4, 2.27238449892691845833e-2,
                                 2.41780725177450611770e-1, 1.27045825245236838258e+0,
                                 3.64784832476320460504e+0, 5.76949722146069140550e+0,
                                 4.63033784615654529590e+0, 1.42343711074968357734e+0};
    static const double bottom[] = {1.05075007164441684324e-9, 5.47593808499534494600e-4,
                                    1.51986665636164571966e-2, 1.48103976427480074590e-1,
                                    6.89767334985100004550e-1, 1.67638483018380384940e+0,
                                    2.05319162663775882187e+0, 1.0};
    return POLYNOMIAL(top, r - 1.6) / POLYNOMIAL(bottom, r - 1.6);
}
static double quantile_at_the_ends(double r) {
    static const double top[] = {2.01033439929228813265e-7, 2.71155556874348757815e-5,
                                 1.24266094738807843860e-3, 2.65321895265761230930e-2,
                                 2.96560571828504891230e-1, 1.78482653991729133580e+0,
                                 5.46378491116411436990e+0, 6.65790464350110377720e+0};
    static const double bottom[] = {2.04426310338993978564e-15, 1.42151175831644588870e-7,
                                    1.84631831751005468180e-5,  7.86869131145613259100e-4,
                                    1.48753612908506148525e-2,  1.36929880922735805310e-1,
                                    5.99832206555887937690e-1,  1.0};
    return POLYNOMIAL(top, r - 5) / POLYNOMIAL(bottom, r - 5);
}

double tare__erfinv(double x) {
    const double root_of_half = 0x1.6a09e667f3bcdp-1, size = fabs(x);
    if (isnan(x) || size > 1) return (double)NAN;
    if (size == 1) return copysign((double)INFINITY, x);
    if (size <= 0.85) return quantile_in_the_middle(x / 2) * root_of_half;
    const double r = sqrt(-tare__log((1 - size) / 2));
    const double far = r <= 5 ? quantile_near_the_ends(r) : quantile_at_the_ends(r);
    return copysign(far * root_of_half, x);
}

double tare__ndtri(double p) {
    if (isnan(p) || p < 0 || p > 1) return (double)NAN;
    if (p == 0 || p == 1) return p == 0 ? -(double)INFINITY : (double)INFINITY;
    if (fabs(p - 0.5) <= 0.425) return quantile_in_the_middle(p - 0.5);
    const double r = sqrt(-tare__log(p < 0.5 ? p : 1 - p));
    return copysign(r <= 5 ? quantile_near_the_ends(r) : quantile_at_the_ends(r), p - 0.5);
}

// Hurwitz's zeta function: the sum of (q + k)^-s, k >= 0, for whole s > 1, by Euler's and
// Maclaurin's formula for the terms from 10 on. (2k)! / B(2k) are its divisors.
static double hurwitz_zeta(double s, double q) {
    static const double divisors[] = {12.0,
                                      -720.0,
                                      30240.0,
                                      -1209600.0,
                                      47900160.0,
                                      -1.8924375803183791606e9,
                                      7.47242496e10,
                                      -2.950130727918164224e12,
                                      1.1646782814350067249e14,
                                      -4.5979787224074726105e15,
                                      1.8152105401943546773e17,
                                      -7.1661652561756670113e18};
    double sum = 0, at = q;
    while (at < 10) sum += tare__pow(at++, -s);
    const double first = tare__pow(at, -s);
    sum += first * (at / (s - 1) + 0.5);
    double factor = s, power = first / at;
    for (size_t k = 0; k < sizeof divisors / sizeof *divisors; k++) {
        sum += factor * power / divisors[k];
        factor *= (s + 2.0 * (double)k + 1) * (s + 2.0 * (double)k + 2);
        power /= at * at;
    }
    return sum;
}

// For x < 0, whose terms below 0 are added one by one.
static double zeta_of_negative(double s, double x) {
    double sum = 0;
    if (x < -(1 << 20)) return (double)NAN;
    while (x < 0) sum += tare__pow(x++, -s);
    return sum + hurwitz_zeta(s, x);
}

double tare__polygamma(int n, double x) {
    if (n == 0) return tare__digamma(x);
    if (isnan(x) || n < 0) return (double)NAN;
    if (isinf(x)) return x > 0 ? 0 : (double)NAN;
    double factorial = n % 2 != 0 ? 1 : -1;
    for (int k = 2; k <= n && isfinite(factorial); k++) factorial *= k;
    if (x <= 0 && x == trunc(x)) return factorial * (double)INFINITY;
    return factorial * (x < 0 ? zeta_of_negative(n + 1, x) : hurwitz_zeta(n + 1, x));
}

// e^-|x| times the modified Bessel function of order 0 or 1, for |x| >= 30: Hankel's expansion,
// whose terms shrink until k = 2 |x|.
static double scaled_bessel_of_large(int order, double size) {
    double term = 1, sum = 1;
    for (int k = 1; k < 40 && fabs(term) > 0x1p-60; k++) {
        term *= ((2.0 * k - 1) * (2.0 * k - 1) - 4.0 * order) / (8 * size * k);
        sum += term;
    }
    return sum / sqrt(2 * PI * size);
}

// The sum of (x/2)^(2k + order) / (k! (k + order)!), whose terms are all of one sign.
static double bessel_sum(int order, double x) {
    const double square = x * x / 4;
    double term = order == 0 ? 1 : x / 2, sum = term;
    for (int k = 1; k < 2048 && fabs(term) > fabs(sum) * 0x1p-60; k++) {
        term *= square / ((double)k * (k + order));
        sum += term;
    }
    return sum;
}

static double bessel(int order, double x) {
    if (isnan(x)) return x;
    if (fabs(x) > 720) return order == 0 ? (double)INFINITY : copysign((double)INFINITY, x);
    return bessel_sum(order, x);
}

static double scaled_bessel(int order, double x) {
    const double size = fabs(x);
    if (isnan(x)) return x;
    if (size < 30) return bessel_sum(order, x) * tare__exp(-size);
    const double scaled = isinf(x) ? 0 : scaled_bessel_of_large(order, size);
    return order == 0 ? scaled : copysign(scaled, x);
}

double tare__i0(double x) {
    return bessel(0, x);
}
double tare__i1(double x) {
    return bessel(1, x);
}
double tare__i0e(double x) {
    return scaled_bessel(0, x);
}
double tare__i1e(double x) {
    return scaled_bessel(1, x);
}
