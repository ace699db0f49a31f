// SPDX-License-Identifier: Apache-2.0
// The meaning of the elementwise kernels, in plain loops.
#include "runtime/kernels/elementwise.h"

static int32_t code_at(bool is_signed, const uint8_t *x, size_t i) {
    return is_signed ? (int8_t)x[i] : x[i];
}

void qu8_quantize__scalar(const code_scheme *s, const float *x, size_t count, uint8_t *y) {
    for (size_t i = 0; i < count; i++)
        y[i] = (uint8_t)tare__quantize(x[i], s->inverse, s->zero_point, s->least, s->most);
}

void qu8_dequantize__scalar(const code_scheme *s, const uint8_t *x, size_t count, float *y) {
    for (size_t i = 0; i < count; i++)
        y[i] = tare__dequantize(code_at(s->is_signed, x, i), s->zero_point, s->scale);
}

void qu8_add__scalar(const native_add *op, bool is_signed, const uint8_t *a, const uint8_t *b,
                     size_t count, uint8_t *y) {
    for (size_t i = 0; i < count; i++)
        y[i] =
            (uint8_t)tare__native_add_codes(op, code_at(is_signed, a, i), code_at(is_signed, b, i));
}

void qu8_raise__scalar(bool is_signed, const uint8_t *x, size_t count, uint8_t *y) {
    for (size_t i = 0; i < count; i++)
        if (code_at(is_signed, x, i) > code_at(is_signed, y, i)) y[i] = x[i];
}
