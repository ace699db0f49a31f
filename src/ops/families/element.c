// SPDX-License-Identifier: Apache-2.0
// Functions of one float element, applied to a tensor.
#include "ops/families/element.h"

const op_element *tare__element_of(const op_call *call) {
    const op_element *element = call->op->element;
    return element->choose != NULL ? element->choose(call) : element;
}

element_loop tare__element_loop(const op_element *element) {
    return element->kind != ELEMENT_OTHER ? f32_elements__scalar[element->kind] : element->loop;
}

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
    tare__element_loop(element)(tare__f32(x), tare__f32(tare__call_out(call)), x->count, p);
    return TARE_OK;
}
