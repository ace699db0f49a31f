// SPDX-License-Identifier: Apache-2.0
// Functions of one float element, applied to a tensor.
#include "ops/element.h"

tare_status tare__element_apply(op_call *call, element_loop loop, const double *defaults,
                                size_t count) {
    const tare_tensor *x;
    TARE_TRY(tare__need_float(call, 0, &x));
    float p[ELEMENT_MAX_PARAMETERS] = {0};
    for (size_t i = 0; i < count; i++) {
        double number;
        TARE_TRY(tare__call_double(call, i + 1, defaults[i], &number));
        p[i] = (float)number;
    }
    loop(tare__f32(x), tare__f32(tare__call_out(call)), x->count, p);
    return TARE_OK;
}
