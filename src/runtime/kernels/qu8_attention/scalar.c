// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Attention's kernels in plain C, which define the bits.
#include <math.h>

#include "core/math/exp_quantized.h"
#include "runtime/kernels/attention.h"

void qu8_pack_rows__scalar(const quantized_matrix *m, size_t lanes, uint32_t *w, int32_t *sums) {
    memset(w, 0, (m->columns + 3) / 4 * lanes * sizeof *w);
    memset(sums, 0, lanes * sizeof *sums);
    for (size_t r = 0; r < m->rows; r++)
        for (size_t i = 0; i < m->columns; i++) {
            const uint8_t q = m->x[r * m->step + i] ^ m->flip;
            w[i / 4 * lanes + r] |= (uint32_t)q << i % 4 * 8;
            sums[r] += (int8_t)q;
        }
}

void qu8_pack_columns__scalar(const quantized_matrix *m, size_t lanes, uint32_t *w, int32_t *sums) {
    memset(w, 0, (m->rows + 3) / 4 * lanes * sizeof *w);
    for (size_t r = 0; r < m->rows; r++)
        for (size_t i = 0; i < m->columns; i++)
            w[r / 4 * lanes + i] |= (uint32_t)(uint8_t)(m->x[r * m->step + i] ^ m->flip)
                                    << r % 4 * 8;
    if (sums == NULL) return;
    memset(sums, 0, lanes * sizeof *sums);
    for (size_t r = 0; r < m->rows; r++)
        for (size_t i = 0; i < m->columns; i++)
            sums[i] += (int8_t)(m->x[r * m->step + i] ^ m->flip);
}

void qu8_sum_rows__scalar(const quantized_matrix *m, int32_t *sums) {
    for (size_t r = 0; r < m->rows; r++) {
        const uint8_t *x = m->x + r * m->step;
        int32_t sum = 0;
        for (size_t i = 0; i < m->columns; i++) sum += (int8_t)(x[i] ^ m->flip);
        sums[r] = sum;
    }
}

uint32_t qu8_weigh__scalar(const float *x, size_t count, uint8_t *quantized) {
    float top = -INFINITY;
    uint32_t sum = 0;
    for (size_t i = 0; i < count; i++) top = x[i] > top ? x[i] : top;
    for (size_t i = 0; i < count; i++) {
        quantized[i] = tare__exp2_quantized(x[i] - top);
        sum += quantized[i];
    }
    return sum;
}

void f32_scale__scalar(float factor, float offset, size_t count, float *y) {
    for (size_t i = 0; i < count; i++) y[i] = y[i] * factor + offset;
}
