// SPDX-License-Identifier: Apache-2.0
// The meaning of the linear kernel, in plain loops.
#include "runtime/kernels/tile.h"

void qu8_linear_1x1__scalar(const linear_tile *t) {
    const tile_epilogue *e = &t->epilogue;
    for (size_t n = 0; n < t->rows; n++)
        for (size_t c = 0; c < t->channels; c++) {
            int32_t acc = e->offset[c];
            for (size_t k = 0; k < t->depth; k++)
                acc = tare__add_wrapping(
                    acc, tare__dot4(t->x[n * t->depth + k], t->w[c * t->depth + k]));
            const int64_t channel = e->first_channel + (int64_t)c;
            t->y[n * t->y_stride + c] = (uint8_t)tare__requantize(e->requant, channel, acc);
        }
}
