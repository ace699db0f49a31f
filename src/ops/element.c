// SPDX-License-Identifier: Apache-2.0
// Functions of one float element, applied to a tensor.
#include "ops/element.h"

tare_status tare__element_parameters(op_call *call, const op_element *element,
                                     float p[ELEMENT_MAX_PARAMETERS]) {
    for (size_t i = 0; i < element->count; i++) {
        double number;
        TARE_TRY(tare__call_double(call, i + 1, element->defaults[i], &number));
        p[i] = (float)number;
    }
    return TARE_OK;
}

tare_status tare__element_apply(op_call *call, const op_element *element) {
    const tare_tensor *x;
    float p[ELEMENT_MAX_PARAMETERS] = {0};
    TARE_TRY(tare__need_float(call, 0, &x));
    TARE_TRY(tare__element_parameters(call, element, p));
    element->loop(tare__f32(x), tare__f32(tare__call_out(call)), x->count, p);
    return TARE_OK;
}
