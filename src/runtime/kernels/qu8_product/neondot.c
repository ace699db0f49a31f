// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Products with Arm's dot product of signed bytes. Quantized values are converted to signed ones.
#include <arm_neon.h>

#define DOT_MOVED                 0x80
#define DOT(acc, w, x)            vdotq_s32(acc, w, vreinterpretq_s8_u8(x))
#define DOT_LANE(acc, w, x, lane) vdotq_laneq_s32(acc, w, vreinterpretq_s8_u8(x), lane)
#include "runtime/kernels/qu8_product/neon_dot.h"

void qu8_product__neondot(const product_tile *t) {
    switch (t->rows) {
    case 1:
        run_dots(t, 1);
        return;
    case 2:
        run_dots(t, 2);
        return;
    case 3:
        run_dots(t, 3);
        return;
    case 4:
        run_dots(t, 4);
        return;
    case 5:
        run_dots(t, 5);
        return;
    default:
        run_dots(t, DOT_ROWS);
        return;
    }
}
