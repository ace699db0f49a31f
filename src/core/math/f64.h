// SPDX-License-Identifier: Apache-2.0
// Elementary functions of double as fixed sequences of IEEE operations, so that results do not
// depend on the C library. They are meant for results that are rounded to float: errors are below 4
// ulp of a double, for pow below 16, if results are normal numbers. If pow's exponent is a small
// integer, exact results are exact.
#ifndef CORE_MATH_F64_H
#define CORE_MATH_F64_H

double tare__exp(double x);
double tare__log(double x);
double tare__log2(double x);
/// log(1 + x)
double tare__log1p(double x);
/// As C's pow, with the same results for zeros, infinities and NaN.
double tare__pow(double x, double y);
double tare__atan(double x);
/// cos(2 pi turns)
double tare__cos_of_turns(double turns);
/// For |r| <= pi / 4.
double tare__sine_near_0(double r);
double tare__cosine_near_0(double r);

#endif
