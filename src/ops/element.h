// SPDX-License-Identifier: Apache-2.0
// Functions of one float element with a few number parameters, as one line each.
#ifndef OPS_ELEMENT_H
#define OPS_ELEMENT_H

#include "core/math_f32.h"
#include "ops/rules.h"

enum { ELEMENT_MAX_PARAMETERS = 3 };

typedef void (*element_loop)(const float *x, float *y, int64_t count, const float *p);

/// Runs `loop` over the first parameter. defaults: of the `count` parameters that follow it; an
/// argument that is absent or None takes its default.
tare_status tare__element_apply(op_call *call, element_loop loop, const double *defaults,
                                size_t count);

#define ELEMENT_LOOP(name, expression)                                                             \
    static void name##_loop(const float *x, float *y, int64_t count, const float *p) {             \
        (void)p;                                                                                   \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const float v = x[i];                                                                  \
            y[i] = (expression);                                                                   \
        }                                                                                          \
    }
/// Defines NAME_reference: y = expression of an element v.
#define ELEMENT(name, expression)                                                                  \
    ELEMENT_LOOP(name, expression)                                                                 \
    static tare_status name##_reference(op_call *call) {                                           \
        return tare__element_apply(call, name##_loop, NULL, 0);                                    \
    }
/// As ELEMENT, with parameters p[0], p[1], .. whose defaults follow.
#define ELEMENT_WITH(name, expression, ...)                                                        \
    ELEMENT_LOOP(name, expression)                                                                 \
    static tare_status name##_reference(op_call *call) {                                           \
        static const double defaults[] = {__VA_ARGS__};                                            \
        return tare__element_apply(call, name##_loop, defaults,                                    \
                                   sizeof defaults / sizeof *defaults);                            \
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
