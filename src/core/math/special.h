// SPDX-License-Identifier: Apache-2.0
// Special functions of double, as fixed sequences of IEEE operations like those of f64.h. They are
// meant for results that are rounded to float: relative errors are below 1e-12; near the negative
// zeros of lgamma and digamma (and digamma's zero at 1.46) absolute errors are.
#ifndef CORE_MATH_SPECIAL_H
#define CORE_MATH_SPECIAL_H

/// log |gamma(x)|; infinity at 0 and negative whole numbers.
double tare__lgamma(double x);
/// The derivative of lgamma. As torch: minus infinity at 0 (infinity at -0), NaN at negative whole
/// numbers.
double tare__digamma(double x);
/// y with erf(y) = x; infinite at 1 and -1, NaN beyond.
double tare__erfinv(double x);
/// x with a normal distribution's probability p below it; infinite at 0 and 1, NaN beyond.
double tare__ndtri(double p);
/// The n-th derivative of digamma, n >= 0. As torch: infinite at 0 and negative whole numbers. NaN
/// below -2^20 for n > 0, whose sum would be too long.
double tare__polygamma(int n, double x);
/// The modified Bessel functions of the first kind of order 0 and 1, and times exp(-|x|).
double tare__i0(double x);
double tare__i1(double x);
double tare__i0e(double x);
double tare__i1e(double x);

#endif
