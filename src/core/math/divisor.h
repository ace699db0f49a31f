// SPDX-License-Identifier: Apache-2.0
// The greatest common divisor.
#ifndef CORE_MATH_DIVISOR_H
#define CORE_MATH_DIVISOR_H

#include <stdint.h>

/// Euclid's algorithm; 0 of two zeros.
static inline uint64_t tare__greatest_divisor(uint64_t a, uint64_t b) {
    while (b != 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

#endif
