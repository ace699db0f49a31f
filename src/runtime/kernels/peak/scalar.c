// SPDX-License-Identifier: Apache-2.0
// build: -O3
// The peak of plain C: loops that compilers vectorize. Operands change in every round, or the
// products would be computed once.
#include "runtime/kernels/peak.h"

enum { LANES = 64 };

uint32_t peak_quantized__scalar(size_t rounds) {
    uint32_t sums[LANES] = {0}, sum = 0;
    uint8_t x[LANES] = {1, 2, 3};
    int8_t w[LANES] = {3, -2, 1};
    for (size_t r = 0; r < rounds; r++)
        for (size_t i = 0; i < LANES; i++) {
            sums[i] += (uint32_t)((int32_t)x[i] * w[i]);
            x[i]++;
        }
    for (size_t i = 0; i < LANES; i++) sum += sums[i];
    return sum;
}

float peak_floats__scalar(size_t rounds) {
    float sums[LANES], sum = 0;
    for (size_t i = 0; i < LANES; i++) sums[i] = (float)i;
    for (size_t r = 0; r < rounds; r++)
        for (size_t i = 0; i < LANES; i++) sums[i] = sums[i] * 0.75F + 1.0F;
    for (size_t i = 0; i < LANES; i++) sum += sums[i];
    return sum;
}

uint64_t peak_read__scalar(const uint64_t *data, size_t count) {
    uint64_t sums[LANES] = {0}, sum = 0;
    for (size_t k = 0; k < count; k += LANES)
        for (size_t i = 0; i < LANES; i++) sums[i] += data[k + i];
    for (size_t i = 0; i < LANES; i++) sum += sums[i];
    return sum;
}
