// SPDX-License-Identifier: Apache-2.0
// Lookup tables over quantized values.
#include "ops/quantized/table.h"

#include <string.h>

#include "ops/quantized/layer.h"
#include "ops/rules.h"

enum { LEAST_WORTH = 4 * QUANTIZED_COUNT };

static bool has_tensor(const value *v) {
    if (v == NULL) return false;
    if (v->kind == VALUE_TENSOR) return true;
    if (!tare__value_has_items(v)) return false;
    for (uint32_t i = 0; i < v->count; i++)
        if (has_tensor(&v->as.items[i])) return true;
    return false;
}

bool tare__op_is_by_element(const op_info *op) {
    return (op->traits & OP_ELEMENTWISE) || op->shape == tare__shape_identity;
}

bool tare__quantized_table_fits(const op_info *op, const value *const *param, size_t count,
                                const value *y) {
    if (!tare__op_is_by_element(op) || param[0] == NULL || param[0]->kind != VALUE_TENSOR ||
        y->kind != VALUE_TENSOR)
        return false;
    for (size_t i = 1; i < count; i++)
        if (has_tensor(param[i])) return false;
    const tare_tensor *x = param[0]->as.tensor, *out = y->as.tensor;
    return x->count >= LEAST_WORTH && x->count == out->count && tare__is_byte_quantized(x) &&
           tare__is_byte_quantized(out);
}

// Tensors of all quantized values of x, and of as many of y.
static tare_status make_tensors(const tare_tensor *x, const tare_tensor *y, value *quantized,
                                value *results, tare_error *err) {
    const int64_t shape[] = {QUANTIZED_COUNT};
    *quantized = *results = (value){.kind = VALUE_TENSOR};
    TARE_TRY(tare__tensor_meta(x->dtype, 1, shape, x->q, &quantized->as.tensor, err));
    TARE_TRY(tare__tensor_meta(y->dtype, 1, shape, y->q, &results->as.tensor, err));
    TARE_TRY(tare__tensor_allocate(quantized->as.tensor, err));
    TARE_TRY(tare__tensor_allocate(results->as.tensor, err));
    uint8_t *each = quantized->as.tensor->data; // signed quantized values by their bytes too
    for (int i = 0; i < QUANTIZED_COUNT; i++) each[i] = (uint8_t)i;
    return TARE_OK;
}

tare_status tare__quantized_table_make(const tare_tensor *x, const tare_tensor *y,
                                       quantized_function compute, void *user,
                                       uint8_t table[QUANTIZED_COUNT], tare_error *err) {
    value quantized, results;
    tare_status status = make_tensors(x, y, &quantized, &results, err);
    if (status == TARE_OK) status = compute(user, &quantized, &results);
    if (status == TARE_OK) memcpy(table, results.as.tensor->data, QUANTIZED_COUNT);
    tare_tensor_release(quantized.as.tensor);
    tare_tensor_release(results.as.tensor);
    return status;
}

tare_status tare__quantized_table_run(const tare_tensor *x, tare_tensor *y,
                                      quantized_function compute, void *user, tare_error *err) {
    uint8_t table[QUANTIZED_COUNT];
    TARE_TRY(tare__quantized_table_make(x, y, compute, user, table, err));
    const uint8_t *from = x->data;
    uint8_t *to = y->data;
    for (int64_t i = 0; i < x->count; i++) to[i] = table[from[i]];
    return TARE_OK;
}
