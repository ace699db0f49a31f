// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Attention's kernels in plain C: what they mean.
#include <math.h>

#include "core/math/exp_code.h"
#include "runtime/kernels/attention.h"

void qu8_pack_rows__scalar(const code_matrix *m, size_t lanes, uint32_t *w, int32_t *sums) {
    memset(w, 0, (m->columns + 3) / 4 * lanes * sizeof *w);
    memset(sums, 0, lanes * sizeof *sums);
    for (size_t r = 0; r < m->rows; r++)
        for (size_t i = 0; i < m->columns; i++) {
            const uint8_t code = m->x[r * m->step + i] ^ m->flip;
            w[i / 4 * lanes + r] |= (uint32_t)code << i % 4 * 8;
            sums[r] += (int8_t)code;
        }
}

void qu8_pack_columns__scalar(const code_matrix *m, size_t lanes, uint32_t *w) {
    memset(w, 0, (m->rows + 3) / 4 * lanes * sizeof *w);
    for (size_t r = 0; r < m->rows; r++)
        for (size_t i = 0; i < m->columns; i++)
            w[r / 4 * lanes + i] |= (uint32_t)(uint8_t)(m->x[r * m->step + i] ^ m->flip)
                                    << r % 4 * 8;
}

uint32_t qu8_weigh__scalar(const float *x, size_t count, uint8_t *codes) {
    float top = -INFINITY;
    uint32_t sum = 0;
    for (size_t i = 0; i < count; i++) top = x[i] > top ? x[i] : top;
    for (size_t i = 0; i < count; i++) {
        codes[i] = tare__exp2_code(x[i] - top);
        sum += codes[i];
    }
    return sum;
}

void f32_scale__scalar(float factor, float offset, size_t count, float *y) {
    for (size_t i = 0; i < count; i++) y[i] = y[i] * factor + offset;
}
