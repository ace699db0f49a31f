// SPDX-License-Identifier: Apache-2.0
// Applies elementwise functions of one float to tensors.
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

// The elements of x as floats; integers and bools are converted.
static tare_status floats_of(op_call *call, const tare_tensor *x, const float **out) {
    *out = x->data;
    if (x->dtype == TARE_FLOAT32) return TARE_OK;
    if (tare__dtype(x->dtype)->is_float || x->q != NULL) return tare__need_float(call, 0, &x);
    float *copy = tare__arena_array(call->memory, (size_t)x->count + 1, sizeof *copy);
    if (copy == NULL) return tare__out_of_memory(call->err);
    for (int64_t i = 0; i < x->count; i++) copy[i] = (float)tare__tensor_get(x, i);
    *out = copy;
    return TARE_OK;
}

tare_status tare__element_apply(op_call *call, const op_element *element) {
    const tare_tensor *x;
    const float *from;
    float p[ELEMENT_MAX_PARAMETERS] = {0};
    tare_tensor *y = tare__call_out(call);
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    if (y->dtype != TARE_FLOAT32) return tare__need_float(call, 0, &x);
    TARE_TRY(floats_of(call, x, &from));
    TARE_TRY(tare__element_parameters(call, element, p));
    tare__element_loop(element)(from, tare__f32(y), x->count, p);
    return TARE_OK;
}
