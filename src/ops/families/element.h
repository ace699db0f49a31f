// SPDX-License-Identifier: Apache-2.0
// Elementwise functions of one float with a few number parameters, defined in one line each, and
// binary functions.
#ifndef OPS_FAMILIES_ELEMENT_H
#define OPS_FAMILIES_ELEMENT_H

#include "core/math/elements.h"
#include "core/math/f32.h"
#include "ops/rules.h"

/// y[i] = f(x[i]) with `count` number parameters, which follow x and have these defaults. f is a
/// function of core/math/elements.def, which also has vector code, or a loop.
typedef struct op_element {
    element_kind kind;
    element_loop loop; // of ELEMENT_OTHER
    const double *defaults;
    size_t count;
    /// Selects the function for a call of the row, or NULL if there is none. NULL: the row has one
    /// function.
    const struct op_element *(*choose)(const op_call *call);
} op_element;

typedef enum result_kind {
    RESULT_COMMON, // the operands' common dtype
    RESULT_FLOAT,  // the common dtype, or float32 for integers
    RESULT_BOOL,
} result_kind;

/// y[i] = f(a[i], b[i]). y may be a.
typedef void (*double_loop)(const double *a, const double *b, double *y, int64_t count);

typedef struct op_binary {
    binary_kind binary; // of float32 tensors
    binary_loop loop;   // of BINARY_OTHER; NULL: `exact` computes each element
    double_loop exact;  // of all dtypes
    result_kind kind;
} op_binary;

/// Applies the function to the first parameter. Number parameters that are absent or None take
/// their defaults.
tare_status tare__element_apply(op_call *call, const op_element *element);
/// The function for a call of a row with an element; NULL: none.
const op_element *tare__element_of(const op_call *call);
/// The loop of a function in plain C.
element_loop tare__element_loop(const op_element *element);
/// The loop for float32 tensors in plain C; NULL: there is none.
static inline binary_loop tare__binary_loop(const op_binary *op) {
    return op->binary != BINARY_OTHER ? f32_binary__scalar[op->binary] : op->loop;
}
/// Reads the number parameters of a function.
tare_status tare__element_parameters(op_call *call, const op_element *element,
                                     float p[ELEMENT_MAX_PARAMETERS]);

#define ELEMENT_LOOP(name, expression)                                                             \
    static void name##_loop(const float *x, float *y, int64_t count, const float *p) {             \
        (void)p;                                                                                   \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const float v = x[i];                                                                  \
            y[i] = (expression);                                                                   \
        }                                                                                          \
    }
#define ELEMENT_REFERENCE(name)                                                                    \
    static tare_status name##_reference(op_call *call) {                                           \
        return tare__element_apply(call, &name##_element);                                         \
    }
/// Defines NAME_element and NAME_reference: y = expression of an element v.
#define ELEMENT(name, expression)                                                                  \
    ELEMENT_LOOP(name, expression)                                                                 \
    static const op_element name##_element = {.loop = name##_loop};                                \
    ELEMENT_REFERENCE(name)
/// As ELEMENT, with number parameters p[0], p[1], .. whose defaults follow.
#define ELEMENT_WITH(name, expression, ...)                                                        \
    ELEMENT_LOOP(name, expression)                                                                 \
    static const double name##_defaults[] = {__VA_ARGS__};                                         \
    static const op_element name##_element = {.loop = name##_loop,                                 \
                                              .defaults = name##_defaults,                         \
                                              .count = sizeof name##_defaults / sizeof(double)};   \
    ELEMENT_REFERENCE(name)
/// Defines NAME_element and NAME_reference for a function of core/math/elements.def; defaults of
/// number parameters may follow.
#define VECTOR_ELEMENT(name, of)                                                                   \
    static const op_element name##_element = {.kind = ELEMENT_##of};                               \
    ELEMENT_REFERENCE(name)
#define VECTOR_ELEMENT_WITH(name, of, ...)                                                         \
    static const double name##_defaults[] = {__VA_ARGS__};                                         \
    static const op_element name##_element = {.kind = ELEMENT_##of,                                \
                                              .defaults = name##_defaults,                         \
                                              .count = sizeof name##_defaults / sizeof(double)};   \
    ELEMENT_REFERENCE(name)

/// NaN stays NaN, as in torch; the upper bound wins over the lower one.
static inline float tare__clampf(float v, float low, float high) {
    const float bounded = v < low ? low : v;
    return bounded > high ? high : bounded;
}

#endif
