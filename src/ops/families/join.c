// SPDX-License-Identifier: Apache-2.0
// Operators that concatenate or stack tensors.
#include <string.h>

#include "ops/families/families.h"
#include "ops/layer_call.h"
#include "ops/quantized/layer.h"
#include "ops/quantized/quantize.h"
#include "ops/quantized/table.h"
#include "ops/rules.h"

typedef struct join_plan {
    const tare_tensor **x;
    size_t count;
    int dim;
    bool stacks; // along a new dimension
    int64_t shape[TARE_MAX_DIMS];
    int ndim;
} join_plan;

static bool same_but(const tare_tensor *a, const tare_tensor *b, int dim) {
    if (a->ndim != b->ndim || a->dtype != b->dtype) return false;
    for (int d = 0; d < a->ndim; d++)
        if (d != dim && a->shape[d] != b->shape[d]) return false;
    return true;
}

// torch's cat ignores empty tensors of one dimension, regardless of the others' shapes: for example
// a cache before the first token.
tare_status tare__cat_inputs(op_call *call, const tare_tensor ***out, size_t *count) {
    size_t kept = 0;
    TARE_TRY(tare__call_tensor_list(call, 0, out, count));
    const tare_tensor **x = *out;
    for (size_t i = 0; i < *count; i++)
        if (x[i]->ndim != 1 || x[i]->count > 0) x[kept++] = x[i];
    if (kept > 0) *count = kept;
    return TARE_OK;
}

static tare_status read_join(op_call *call, bool stacks, join_plan *p) {
    *p = (join_plan){.stacks = stacks};
    TARE_TRY(stacks ? tare__call_tensor_list(call, 0, &p->x, &p->count)
                    : tare__cat_inputs(call, &p->x, &p->count));
    const tare_tensor *first = p->x[0];
    p->ndim = first->ndim + (stacks ? 1 : 0);
    TARE_TRY(tare__call_dim(call, 1, 0, p->ndim, &p->dim));
    if (p->ndim == 0 || p->ndim > TARE_MAX_DIMS)
        return tare__call_fail(call, "tensors of %d dimensions cannot be joined", first->ndim);
    for (size_t i = 1; i < p->count; i++)
        if (!same_but(first, p->x[i], stacks ? -1 : p->dim))
            return tare__call_fail(call, "shapes %s and %s (or their dtypes) do not fit",
                                   tare__call_shape_text(call, first),
                                   tare__call_shape_text(call, p->x[i]));
    for (int d = 0; d < p->ndim; d++)
        p->shape[d] = !stacks || d < p->dim ? first->shape[d]
                      : d == p->dim         ? 1
                                            : first->shape[d - 1];
    p->shape[p->dim] = 0;
    for (size_t i = 0; i < p->count; i++) {
        const int64_t more = stacks ? 1 : p->x[i]->shape[p->dim];
        if (more > INT64_MAX - p->shape[p->dim])
            return tare__call_fail(call, "the tensors are too large to be joined");
        p->shape[p->dim] += more;
    }
    return TARE_OK;
}

// The result has the first input's quantization parameters.
static tare_status join_shape(op_call *call, bool stacks) {
    join_plan p;
    TARE_TRY(read_join(call, stacks, &p));
    return tare__call_result(call, p.x[0]->dtype, p.ndim, p.shape, p.x[0]->q);
}

// Copies one input to the result. `before`: the size of the inputs before it along the dimension.
static void put(const join_plan *p, const tare_tensor *x, int64_t before, tare_tensor *y) {
    const size_t size = tare_dtype_size(y->dtype);
    int64_t inner = 1;
    for (int d = p->dim + 1; d < p->ndim; d++) inner *= p->shape[d];
    const int64_t own = (p->stacks ? 1 : x->shape[p->dim]) * inner, row = p->shape[p->dim] * inner;
    if (own == 0) return;
    const char *from = x->data;
    char *to = (char *)y->data + (size_t)(before * inner) * size;
    for (int64_t at = 0; at < x->count; at += own) {
        memcpy(to, from, (size_t)own * size);
        from += (size_t)own * size;
        to += (size_t)row * size;
    }
}

static tare_status requantize_quantized(void *user, const value *in, value *out) {
    tare_tensor *real = NULL;
    TARE_TRY(tare_tensor_to_float(in->as.tensor, &real, user));
    tare__quantize_into(real, out->as.tensor);
    tare_tensor_release(real);
    return TARE_OK;
}

// Dequantizes x and quantizes it with other parameters.
static tare_status requantized(const tare_tensor *x, const qparams *q, tare_tensor **out,
                               tare_error *err) {
    enum { LEAST_WORTH = 1024 }; // elements for which a table of all quantized values is worth it
    tare_tensor *real = NULL;
    if (x->count >= LEAST_WORTH && tare__is_byte_quantized(x)) {
        TARE_TRY(tare__tensor_quantized(x->ndim, x->shape, q, out, err));
        return tare__quantized_table_run(x, *out, requantize_quantized, err, err);
    }
    TARE_TRY(tare_tensor_to_float(x, &real, err));
    const tare_status status = tare__quantize_tensor(real, q, out, err);
    tare_tensor_release(real);
    return status;
}

static tare_status join_reference(op_call *call, bool stacks) {
    join_plan p;
    TARE_TRY(read_join(call, stacks, &p));
    tare_tensor *y = tare__call_out(call);
    int64_t before = 0;
    for (size_t i = 0; i < p.count; i++) {
        tare_tensor *fitted = NULL;
        const bool differs = y->q != NULL && !tare__qparams_equal(p.x[i]->q, y->q);
        if (differs) TARE_TRY(requantized(p.x[i], y->q, &fitted, call->err));
        put(&p, fitted != NULL ? fitted : p.x[i], before, y);
        before += stacks ? 1 : p.x[i]->shape[p.dim];
        tare_tensor_release(fitted);
    }
    return TARE_OK;
}

static tare_status cat_shape(op_call *call) {
    return join_shape(call, false);
}
static tare_status cat_reference(op_call *call) {
    return join_reference(call, false);
}
tare_status tare__join_quantized(op_call *call) {
    return join_reference(call, false);
}
static tare_status stack_shape(op_call *call) {
    return join_shape(call, true);
}
static tare_status stack_reference(op_call *call) {
    return join_reference(call, true);
}

#define JOIN(name, names)                                                                          \
    {                                                                                              \
        .id = #name, .functions = names, .params = "tensors|dim/axis",                             \
        .traits = OP_KEEPS_QPARAMS | OP_ANY_DTYPE | OP_BY_SAMPLE, .shape = name##_shape,           \
        .reference = name##_reference, .quantized = name##_reference                               \
    }

static const op_info rows[] = {
    JOIN(cat, "torch.cat|torch.concat|torch.concatenate|torch.ops.aten.cat.default|torch.ops.aten."
              "concat.default|torch.ops.aten.concatenate.default"),
    JOIN(stack, "torch.stack|torch.ops.aten.stack.default"),
};

const op_table tare__join_ops = OP_TABLE(rows);
