// SPDX-License-Identifier: Apache-2.0
// Loops over functions of one or two floats. Every kind of vectors gives the same bits.
#ifndef CORE_MATH_ELEMENTS_H
#define CORE_MATH_ELEMENTS_H

#include <stdint.h>

/// y[i] = f(x[i]) with parameters p[0], p[1], .. of f. y may be x.
typedef void (*element_loop)(const float *x, float *y, int64_t count, const float *p);

typedef enum element_kind {
    ELEMENT_OTHER, // none of elements.def
#define ELEMENT(kind, name, value) ELEMENT_##kind,
#include "core/math/elements.def"
    ELEMENT_COUNT,
} element_kind;
enum { ELEMENT_MAX_PARAMETERS = 3 }; // of a function

/// y[i] = f(a[i * a_step], b[i * b_step]); steps are 0 or 1. y may be equal to an operand with step
/// 1.
typedef void (*binary_loop)(const float *a, int64_t a_step, const float *b, int64_t b_step,
                            float *y, int64_t count);

typedef enum binary_kind {
    BINARY_OTHER, // none of math/binary.def
#define BINARY(kind, name, value) BINARY_##kind,
#include "core/math/binary.def"
#undef BINARY
    BINARY_COUNT,
} binary_kind;

/// In plain C.
extern const element_loop f32_elements__scalar[ELEMENT_COUNT];
extern const binary_loop f32_binary__scalar[BINARY_COUNT];

#endif
