// SPDX-License-Identifier: Apache-2.0
// Functions of one float element with a few number parameters, as one line each.
#ifndef OPS_ELEMENT_H
#define OPS_ELEMENT_H

#include "core/math_f32.h"
#include "ops/rules.h"

enum { ELEMENT_MAX_PARAMETERS = 3 };

typedef void (*element_loop)(const float *x, float *y, int64_t count, const float *p);

/// y[i] = loop(x[i]) with `count` number parameters, which follow x and have these defaults.
typedef struct op_element {
    element_loop loop;
    const double *defaults;
    size_t count;
} op_element;

/// y[i] = f(a[i * a_step], b[i * b_step]); a step is 0 or 1.
typedef void (*binary_loop)(const float *a, int64_t a_step, const float *b, int64_t b_step,
                            float *y, int64_t count);

typedef enum result_kind {
    RESULT_COMMON, // the operands' common dtype
    RESULT_FLOAT,  // that, or float32 for integers
    RESULT_BOOL,
} result_kind;

typedef struct op_binary {
    binary_loop loop; // float32 tensors; NULL: by `exact`
    double (*exact)(double a, double b);
    result_kind kind;
} op_binary;

/// Runs the loop over the first parameter; one that is absent or None takes its default.
tare_status tare__element_apply(op_call *call, const op_element *element);
/// Its number parameters.
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
/// Defines NAME_element and NAME_reference: y = expression of an element v.
#define ELEMENT(name, expression)                                                                  \
    ELEMENT_LOOP(name, expression)                                                                 \
    static const op_element name##_element = {name##_loop, NULL, 0};                               \
    static tare_status name##_reference(op_call *call) {                                           \
        return tare__element_apply(call, &name##_element);                                         \
    }
/// As ELEMENT, with parameters p[0], p[1], .. whose defaults follow.
#define ELEMENT_WITH(name, expression, ...)                                                        \
    ELEMENT_LOOP(name, expression)                                                                 \
    static const double name##_defaults[] = {__VA_ARGS__};                                         \
    static const op_element name##_element = {name##_loop, name##_defaults,                        \
                                              sizeof name##_defaults / sizeof(double)};            \
    static tare_status name##_reference(op_call *call) {                                           \
        return tare__element_apply(call, &name##_element);                                         \
    }

/// softmax, or its logarithm, of one line of `count` elements, `step` apart (activation.c). y may
/// be x, but not for the logarithm.
void tare__softmax_line(const float *x, float *y, int64_t count, int64_t step, bool logarithm);

/// NaN stays NaN, as in torch; the upper bound wins over the lower one.
static inline float tare__clampf(float v, float low, float high) {
    const float raised = v < low ? low : v;
    return raised > high ? high : raised;
}

#endif
