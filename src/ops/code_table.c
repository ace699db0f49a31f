// SPDX-License-Identifier: Apache-2.0
// Look-up tables over codes.
#include "ops/code_table.h"

#include "ops/quantized_layer.h"
#include "ops/rules.h"

enum { CODES = 256, LEAST_WORTH = 4 * CODES };

static bool has_tensor(const value *v) {
    if (v == NULL) return false;
    if (v->kind == VALUE_TENSOR) return true;
    if (!tare__value_has_items(v)) return false;
    for (uint32_t i = 0; i < v->count; i++)
        if (has_tensor(&v->as.items[i])) return true;
    return false;
}

bool tare__code_table_fits(const op_info *op, const value *const *param, size_t count,
                           const value *y) {
    const bool is_by_element = (op->traits & OP_ELEMENTWISE) || op->shape == tare__shape_identity;
    if (!is_by_element || param[0] == NULL || param[0]->kind != VALUE_TENSOR ||
        y->kind != VALUE_TENSOR)
        return false;
    for (size_t i = 1; i < count; i++)
        if (has_tensor(param[i])) return false;
    const tare_tensor *x = param[0]->as.tensor, *out = y->as.tensor;
    return x->count >= LEAST_WORTH && x->count == out->count && tare__is_byte_quantized(x) &&
           tare__is_byte_quantized(out);
}

tare_status tare__code_table_run(const tare_tensor *x, tare_tensor *y, code_function compute,
                                 void *user, tare_error *err) {
    const int64_t shape[] = {CODES};
    tare_tensor *codes = NULL, *results = NULL;
    tare_status status = tare__tensor_meta(x->dtype, 1, shape, x->q, &codes, err);
    if (status == TARE_OK) status = tare__tensor_meta(y->dtype, 1, shape, y->q, &results, err);
    if (status == TARE_OK) status = tare__tensor_allocate(codes, err);
    if (status == TARE_OK) status = tare__tensor_allocate(results, err);
    if (status == TARE_OK) {
        uint8_t *each = codes->data; // signed codes by their bytes too
        for (int i = 0; i < CODES; i++) each[i] = (uint8_t)i;
        const value in = {.kind = VALUE_TENSOR, .as.tensor = codes};
        value out = {.kind = VALUE_TENSOR, .as.tensor = results};
        status = compute(user, &in, &out);
    }
    if (status == TARE_OK) {
        const uint8_t *from = x->data, *table = results->data;
        uint8_t *to = y->data;
        for (int64_t i = 0; i < x->count; i++) to[i] = table[from[i]];
    }
    tare_tensor_release(codes);
    tare_tensor_release(results);
    return status;
}
