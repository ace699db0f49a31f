// SPDX-License-Identifier: Apache-2.0
// Shape rules and checks that operator families share.
#include "ops/rules.h"

tare_status tare__shape_same(op_call *call) {
    const tare_tensor *x;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    return tare__call_result(call, x->dtype, x->ndim, x->shape, x->q);
}

tare_status tare__shape_same_float(op_call *call) {
    const tare_tensor *x;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    const bool is_float = tare__dtype(x->dtype)->is_float || x->q != NULL;
    return tare__call_result(call, is_float ? x->dtype : TARE_FLOAT32, x->ndim, x->shape, x->q);
}

tare_status tare__shape_identity(op_call *call) {
    const tare_tensor *x;
    TARE_TRY(tare__call_need_tensor(call, 0, &x));
    tare__call_result_tensor(call, call->param[0]->as.tensor);
    return TARE_OK;
}

const char *tare__call_shape_text(op_call *call, const tare_tensor *t) {
    char shape[200];
    tare__shape_text(t->ndim, t->shape, shape, sizeof shape);
    const char *copy = tare__arena_strdup(call->memory, shape);
    return copy != NULL ? copy : "";
}

tare_status tare__broadcast(op_call *call, const tare_tensor *a, const tare_tensor *b, int *ndim,
                            int64_t *shape) {
    *ndim = a->ndim > b->ndim ? a->ndim : b->ndim;
    for (int d = 1; d <= *ndim; d++) { // from the last dimension
        const int64_t m = d <= a->ndim ? a->shape[a->ndim - d] : 1;
        const int64_t n = d <= b->ndim ? b->shape[b->ndim - d] : 1;
        if (m != n && m != 1 && n != 1)
            return tare__call_fail(call, "shapes %s and %s do not broadcast",
                                   tare__call_shape_text(call, a), tare__call_shape_text(call, b));
        shape[*ndim - d] = m == 1 ? n : m;
    }
    return TARE_OK;
}

void tare__broadcast_strides(const tare_tensor *from, int ndim, const int64_t *shape,
                             int64_t *stride) {
    int64_t step = 1;
    for (int d = 1; d <= ndim; d++) {
        const int64_t size = d <= from->ndim ? from->shape[from->ndim - d] : 1;
        stride[ndim - d] = size == shape[ndim - d] && size != 1 ? step : 0;
        step *= size;
    }
}

int64_t tare__strided_offset(int ndim, const int64_t *shape, const int64_t *stride, int64_t i) {
    int64_t offset = 0;
    for (int d = ndim - 1; d >= 0; d--) {
        offset += i % shape[d] * stride[d];
        i /= shape[d];
    }
    return offset;
}

int64_t tare__inner_count(const tare_tensor *x, int dim) {
    int64_t inner = 1;
    for (int d = dim + 1; d < x->ndim; d++) inner *= x->shape[d];
    return inner;
}

tare_status tare__rows_along(op_call *call, size_t dim_at, int64_t otherwise, rows_along *out) {
    TARE_TRY(tare__call_need_tensor(call, 0, &out->x));
    TARE_TRY(tare__call_dim(call, dim_at, otherwise, out->x->ndim, &out->dim));
    out->length = out->x->ndim > 0 ? out->x->shape[out->dim] : 1;
    out->inner = tare__inner_count(out->x, out->dim);
    return TARE_OK;
}

int64_t tare__row_start(const rows_along *r, int64_t row) {
    return row / r->inner * r->length * r->inner + row % r->inner;
}

int tare__row_shape(const rows_along *r, bool keeps, int64_t *shape) {
    int ndim = 0;
    for (int d = 0; d < r->x->ndim; d++) {
        if (d != r->dim) shape[ndim++] = r->x->shape[d];
        if (d == r->dim && keeps) shape[ndim++] = 1;
    }
    return ndim;
}

int64_t tare__size_product(int64_t a, int64_t b) {
    return b != 0 && a > INT64_MAX / b ? INT64_MAX : a * b;
}

tare_status tare__need_float(op_call *call, size_t i, const tare_tensor **out) {
    TARE_TRY(tare__call_need_tensor(call, i, out));
    if ((*out)->dtype == TARE_FLOAT32) return TARE_OK;
    char name[64] = "";
    tare__op_param_name(call->op, i, name, sizeof name);
    return tare__call_fail(call, "argument '%s' must be torch.float32, found %s", name,
                           tare_dtype_name((*out)->dtype));
}

void tare__find_range(const tare_tensor *x, float *low, float *high) {
    const float *data = tare__f32(x);
    *low = *high = x->count > 0 ? data[0] : 0;
    for (int64_t i = 1; i < x->count; i++) {
        if (data[i] < *low) *low = data[i];
        if (data[i] > *high) *high = data[i];
    }
}
