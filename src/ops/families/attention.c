// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention: softmax(query key^T * scale + mask) value.
// query [..][L][E], key [..][S][E], value [..][S][V], mask broadcast to [..][L][S]; a bool mask is
// true where a query may attend to a key. A query that may attend to none gets zeros.
// Source: torch.nn.functional.scaled_dot_product_attention (PyTorch 2.15).
#include <math.h>
#include <string.h>

#include "core/math/exp_quantized.h"
#include "core/math/rows.h"
#include "core/memory/alloc.h"
#include "ops/compose.h"
#include "ops/families/element.h"
#include "ops/families/families.h"
#include "ops/layer_call.h"
#include "ops/quantized/layer.h"

enum { QUERY, KEY, VALUE, MASK, DROPOUT, IS_CAUSAL, SCALE, ENABLE_GQA };

#define OF_QUANTIZED "quantized.scaled_dot_product_attention"

bool tare__attention_is_of_quantized(const op_call *call) {
    return call->op != NULL && strcmp(call->op->id, OF_QUANTIZED) == 0;
}

// Computes the strides of k's or v's matrices over q's batch. With groups the index in the last
// batch dimension is divided by the group size.
static tare_status fit_batch(op_call *call, attention_call *a, const tare_tensor *t,
                             int64_t *stride) {
    int64_t step = 1;
    if (t->ndim < 2 || t->ndim - 2 > a->batch_ndim)
        return tare__call_fail(call, "query of shape %s does not fit %s",
                               tare__call_shape_text(call, a->q), tare__call_shape_text(call, t));
    for (int d = a->batch_ndim - 1, from = t->ndim - 3; d >= 0; d--, from--) {
        const int64_t size = from >= 0 ? t->shape[from] : 1;
        const int64_t shared = d == a->batch_ndim - 1 ? a->group : 1;
        if (size != 1 && size * shared != a->batch[d])
            return tare__call_fail(call, "query of shape %s does not fit %s",
                                   tare__call_shape_text(call, a->q),
                                   tare__call_shape_text(call, t));
        stride[d] = size == 1 ? 0 : step;
        step *= size;
    }
    return TARE_OK;
}

static tare_status read_group(op_call *call, attention_call *a) {
    bool has_groups;
    TARE_TRY(tare__call_bool(call, ENABLE_GQA, false, &has_groups));
    a->group = 1;
    if (!has_groups || a->q->ndim < 3 || a->k->ndim < 3) return TARE_OK;
    const int64_t heads = a->q->shape[a->q->ndim - 3], shared = a->k->shape[a->k->ndim - 3];
    if (shared < 1 || heads % shared != 0)
        return tare__call_fail(call, "%lld heads of queries do not divide into %lld of keys",
                               (long long)heads, (long long)shared);
    a->group = heads / shared;
    return TARE_OK;
}

static tare_status read_mask(op_call *call, attention_call *a) {
    if (!tare__call_given(call, MASK)) return TARE_OK;
    TARE_TRY(tare__call_need_tensor(call, MASK, &a->mask));
    const bool is_mask = a->mask->dtype == TARE_FLOAT32 || a->mask->dtype == TARE_BOOL;
    const int ndim = a->batch_ndim + 2;
    bool fits = is_mask && a->mask->ndim <= ndim;
    memcpy(a->mask_shape, a->batch, sizeof a->batch);
    a->mask_shape[ndim - 2] = a->queries;
    a->mask_shape[ndim - 1] = a->keys;
    for (int d = 1; fits && d <= a->mask->ndim; d++) {
        const int64_t size = a->mask->shape[a->mask->ndim - d];
        fits = size == 1 || size == a->mask_shape[ndim - d];
    }
    if (!fits)
        return tare__call_fail(call, "a mask of %s %s does not fit %lld queries and %lld keys",
                               tare_dtype_name(a->mask->dtype),
                               tare__call_shape_text(call, a->mask), (long long)a->queries,
                               (long long)a->keys);
    tare__broadcast_strides(a->mask, ndim, a->mask_shape, a->mask_stride);
    return TARE_OK;
}

static tare_status need_operand(op_call *call, size_t i, const tare_tensor **out) {
    if (!tare__attention_is_of_quantized(call)) return tare__need_float(call, i, out);
    TARE_TRY(tare__call_need_tensor(call, i, out));
    if (tare__is_byte_quantized(*out)) return TARE_OK;
    return tare__call_fail(call, "takes 8-bit quantized values with one scale, found %s",
                           tare_dtype_name((*out)->dtype));
}

static tare_status read_tensors(op_call *call, attention_call *a) {
    TARE_TRY(need_operand(call, QUERY, &a->q));
    TARE_TRY(need_operand(call, KEY, &a->k));
    TARE_TRY(need_operand(call, VALUE, &a->v));
    const tare_tensor *q = a->q, *k = a->k, *v = a->v;
    if (q->ndim < 2 || k->ndim < 2 || v->ndim < 2 ||
        q->shape[q->ndim - 1] != k->shape[k->ndim - 1] ||
        k->shape[k->ndim - 2] != v->shape[v->ndim - 2])
        return tare__call_fail(call, "query %s, key %s and value %s do not fit each other",
                               tare__call_shape_text(call, q), tare__call_shape_text(call, k),
                               tare__call_shape_text(call, v));
    a->queries = q->shape[q->ndim - 2];
    a->width = q->shape[q->ndim - 1];
    a->keys = k->shape[k->ndim - 2];
    a->value_width = v->shape[v->ndim - 1];
    a->batch_ndim = q->ndim - 2;
    for (int d = 0; d < a->batch_ndim; d++) a->batch[d] = q->shape[d];
    return TARE_OK;
}

tare_status tare__attention_read(op_call *call, attention_call *a) {
    *a = (attention_call){0};
    double scale, dropout;
    TARE_TRY(read_tensors(call, a));
    TARE_TRY(read_group(call, a));
    TARE_TRY(fit_batch(call, a, a->k, a->k_stride));
    TARE_TRY(fit_batch(call, a, a->v, a->v_stride));
    TARE_TRY(read_mask(call, a));
    TARE_TRY(tare__call_double(call, DROPOUT, 0, &dropout));
    TARE_TRY(tare__call_bool(call, IS_CAUSAL, false, &a->is_causal));
    TARE_TRY(tare__call_double(call, SCALE, 1 / sqrt((double)a->width), &scale));
    a->scale = (float)scale;
    if (a->is_causal && a->mask != NULL)
        return tare__call_fail(call, "takes a mask or is_causal, found both");
    return TARE_OK;
}

static tare_status attention_shape(op_call *call) {
    attention_call a;
    TARE_TRY(tare__attention_read(call, &a));
    int64_t shape[TARE_MAX_DIMS];
    memcpy(shape, a.q->shape, sizeof shape);
    shape[a.q->ndim - 1] = a.value_width;
    return tare__call_result(call, TARE_FLOAT32, a.q->ndim, shape, NULL);
}

// Adds the row of a mask that begins at element `at`.
static void add_mask(const attention_call *a, int64_t at, const row_functions *k, float *scores) {
    const int64_t step = a->mask_stride[a->batch_ndim + 1];
    const bool is_float = a->mask->dtype == TARE_FLOAT32;
    if (is_float && step == 1) {
        k->add(tare__f32(a->mask) + at, (size_t)a->keys, scores);
        return;
    }
    for (int64_t s = 0; s < a->keys; s++)
        if (is_float)
            scores[s] += tare__f32(a->mask)[at + s * step];
        else if (((const uint8_t *)a->mask->data)[at + s * step] == 0)
            scores[s] = -INFINITY;
}

// Scales the scores of one query, and masks them.
static void scale_scores(const attention_call *a, int64_t mask_at, int64_t query,
                         const row_functions *k, float *scores) {
    k->scale_shift(scores, (size_t)a->keys, a->scale, 0.0F, scores);
    if (a->is_causal)
        for (int64_t s = query + 1; s < a->keys; s++) scores[s] = -INFINITY;
    if (a->mask != NULL) add_mask(a, mask_at, k, scores);
}

static bool sees_nothing(const float *scores, int64_t count) {
    bool sees = false;
    for (int64_t i = 0; i < count; i++) sees |= scores[i] != -INFINITY;
    return !sees;
}

// Softmax; zeros if the query may attend to no key.
static void weigh(const row_functions *k, float *scores, int64_t count) {
    float top, sum;
    k->greatest(scores, (size_t)count, &top);
    if (top == -INFINITY && sees_nothing(scores, count)) {
        memset(scores, 0, (size_t)count * sizeof *scores);
        return;
    }
    k->exponentials(scores, (size_t)count, top, scores, &sum);
    k->divide(scores, (size_t)count, sum, scores);
}

void tare__attention_weigh(const attention_call *a, const attention_offsets *offsets, int64_t first,
                           int64_t end, const row_functions *k, float *scores) {
    const int64_t step = a->mask != NULL ? a->mask_stride[a->batch_ndim] : 0;
    for (int64_t i = first; i < end; i++, scores += a->keys) {
        scale_scores(a, offsets->mask + i * step, i, k, scores);
        weigh(k, scores, a->keys);
    }
}

// If k and v have fewer heads, several heads of q in the last batch dimension share one of theirs.
attention_offsets tare__attention_offsets_of(const attention_call *a, int64_t i) {
    attention_offsets offsets = {0};
    for (int d = a->batch_ndim - 1; d >= 0; d--) {
        const int64_t at = i % a->batch[d];
        const int64_t shared = d == a->batch_ndim - 1 ? at / a->group : at;
        offsets.k += shared * a->k_stride[d];
        offsets.v += shared * a->v_stride[d];
        offsets.mask += at * a->mask_stride[d];
        i /= a->batch[d];
    }
    return offsets;
}

static tare_status multiply(op_call *call, const float_product *p, const float *x, const float *w,
                            float *y) {
    return tare__float_multiply(tare__float_kernels_for(call->kernels, p), p, x, w, NULL, y,
                                call->err);
}

static tare_status attend(op_call *call, const attention_call *a, float *scores) {
    const float_product qk = {
        .rows = a->queries, .inner = a->width, .columns = a->keys, .transposed = true};
    const float_product pv = {.rows = a->queries, .inner = a->keys, .columns = a->value_width};
    const row_functions *k = &tare__scalar_rows;
    float *y = tare__f32(tare__call_out(call));
    const int64_t count = tare__call_out(call)->count / (a->queries * a->value_width);
    for (int64_t i = 0; i < count; i++, y += a->queries * a->value_width) {
        const attention_offsets offsets = tare__attention_offsets_of(a, i);
        const float *queries = tare__f32(a->q) + i * a->queries * a->width;
        const float *keys = tare__f32(a->k) + offsets.k * a->keys * a->width;
        if (a->queries == 1)
            k->dots(queries, keys, (size_t)a->width, (size_t)a->keys, (size_t)a->width, scores);
        else
            TARE_TRY(multiply(call, &qk, queries, keys, scores));
        tare__attention_weigh(a, &offsets, 0, a->queries, k, scores);
        TARE_TRY(
            multiply(call, &pv, scores, tare__f32(a->v) + offsets.v * a->keys * a->value_width, y));
    }
    return TARE_OK;
}

static tare_status attention_reference(op_call *call) {
    attention_call a;
    TARE_TRY(tare__attention_read(call, &a));
    const int64_t count = tare__size_product(a.queries, a.keys);
    if (a.keys == 0) {
        memset(tare__call_out(call)->data, 0, tare__tensor_bytes(tare__call_out(call)));
        return TARE_OK;
    }
    float *scores = (uint64_t)count <= SIZE_MAX / sizeof(float)
                        ? tare__alloc_zeroed((size_t)count, sizeof *scores)
                        : NULL;
    if (scores == NULL) return tare__out_of_memory(call->err);
    const tare_status status = attend(call, &a, scores);
    tare__free(scores);
    return status;
}

// --- quantized attention ---

int32_t tare__signed_shift(const tare_tensor *t) {
    return t->dtype == TARE_QINT8 ? 0 : 0x80;
}

quantized_attention tare__quantized_attention_of(const attention_call *a) {
    const qparams *q = a->q->q, *k = a->k->q, *v = a->v->q;
    const double scale = q->scale[0] * k->scale[0] * (double)a->scale;
    return (quantized_attention){
        .factor = (float)(scale * (double)EXP_LOG2_E),
        .query_zero = (int32_t)(q->zero_point[0] - tare__signed_shift(a->q)),
        .value_scale = (float)v->scale[0],
        .offset = -((float)(v->zero_point[0] - tare__signed_shift(a->v)) * (float)v->scale[0]),
    };
}

static int32_t quantized_at(const tare_tensor *t, int64_t i) {
    return (int8_t)(((const uint8_t *)t->data)[i] ^ tare__signed_shift(t));
}

// The zero point of k is left out: it shifts all scores of a query equally, which softmax ignores.
static void multiply_keys_quantized(const attention_call *a, const quantized_attention *c,
                                    int64_t q, int64_t k, float *scores) {
    for (int64_t j = 0; j < a->keys; j++) {
        int64_t sum = 0;
        for (int64_t i = 0; i < a->width; i++)
            sum += (int64_t)(quantized_at(a->q, q + i) - c->query_zero) *
                   quantized_at(a->k, k + j * a->width + i);
        scores[j] = (float)tare__wrap_int32(sum) * c->factor;
    }
}

void tare__quantized_attention_mask(const attention_call *a, const attention_offsets *offsets,
                                    int64_t query, float *scores) {
    const int64_t step = a->mask != NULL ? a->mask_stride[a->batch_ndim + 1] : 0;
    int64_t at = offsets->mask + (a->mask != NULL ? query * a->mask_stride[a->batch_ndim] : 0);
    for (int64_t s = 0; s < a->keys; s++, at += step) {
        if (a->is_causal && s > query) scores[s] = -INFINITY;
        if (a->mask == NULL) continue;
        if (a->mask->dtype == TARE_FLOAT32)
            scores[s] += tare__f32(a->mask)[at] * EXP_LOG2_E;
        else if (tare__tensor_get(a->mask, at) == 0)
            scores[s] = -INFINITY;
    }
}

static void multiply_values_quantized(const attention_call *a, const quantized_attention *c,
                                      const float *scores, int64_t v, float *y) {
    float top = -INFINITY;
    int64_t total = 0;
    for (int64_t j = 0; j < a->keys; j++) top = scores[j] > top ? scores[j] : top;
    for (int64_t j = 0; j < a->keys; j++) total += tare__exp2_quantized(scores[j] - top);
    const float inverse = total > 0 ? 1.0F / (float)total : 0;
    for (int64_t i = 0; i < a->value_width; i++) {
        int64_t sum = 0;
        for (int64_t j = 0; j < a->keys; j++)
            sum += (int64_t)tare__exp2_quantized(scores[j] - top) *
                   quantized_at(a->v, v + j * a->value_width + i);
        const float mixed = (float)tare__wrap_int32(sum) * c->value_scale;
        y[i] = total > 0 ? mixed * inverse + c->offset : 0;
    }
}

static tare_status quantized_attention_reference(op_call *call) {
    attention_call a;
    TARE_TRY(tare__attention_read(call, &a));
    tare_tensor *result = tare__call_out(call);
    const int64_t matrix = tare__size_product(a.queries, a.value_width);
    if (a.keys == 0 || result->count == 0) {
        memset(result->data, 0, tare__tensor_bytes(result));
        return TARE_OK;
    }
    float *scores = tare__alloc_zeroed((size_t)a.keys, sizeof *scores), *y = tare__f32(result);
    if (scores == NULL) return tare__out_of_memory(call->err);
    const quantized_attention c = tare__quantized_attention_of(&a);
    for (int64_t i = 0; i < result->count / matrix; i++) {
        const attention_offsets offsets = tare__attention_offsets_of(&a, i);
        for (int64_t r = 0; r < a.queries; r++, y += a.value_width) {
            multiply_keys_quantized(&a, &c, (i * a.queries + r) * a.width,
                                    offsets.k * a.keys * a.width, scores);
            tare__quantized_attention_mask(&a, &offsets, r, scores);
            multiply_values_quantized(&a, &c, scores, offsets.v * a.keys * a.value_width, y);
        }
    }
    tare__free(scores);
    return TARE_OK;
}

static int64_t attention_macs(const op_call *call) {
    const value *q = call->param[QUERY], *k = call->param[KEY], *y = &call->result;
    if (q == NULL || k == NULL || q->kind != VALUE_TENSOR || k->kind != VALUE_TENSOR ||
        y->kind != VALUE_TENSOR || k->as.tensor->ndim < 2)
        return 0;
    const int64_t keys = k->as.tensor->shape[k->as.tensor->ndim - 2];
    return tare__size_product(q->as.tensor->count + y->as.tensor->count, keys);
}

// The form in core aten, with its order of parameters. The second result is only used by a backward
// pass.
static value flash_attention(composer *c) {
    const value made =
        COMPOSE(c, "scaled_dot_product_attention", tare__compose_param(c, 0),
                tare__compose_param(c, 1), tare__compose_param(c, 2), tare__compose_param(c, 5),
                tare__float(tare__compose_double(c, 3, 0)),
                tare__bool(tare__compose_bool(c, 4, false)), tare__compose_param(c, 6));
    return tare__compose_with_nones(c, made, 2);
}

#define PARAMETERS "query|key|value|attn_mask|dropout_p|is_causal|scale|enable_gqa"

static const op_info rows[] = {
    {.id = "scaled_dot_product_attention",
     .functions = "torch._C._nn.scaled_dot_product_attention|"
                  "torch.ops.aten.scaled_dot_product_attention.default",
     .params = PARAMETERS,
     .traits = OP_BY_MATRIX,
     .shape = attention_shape,
     .reference = attention_reference,
     .macs = attention_macs},
    COMPOSED_ROW(flash_attention,
                 "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default", NULL,
                 "query|key|value|dropout_p|is_causal|attn_mask|scale"),
    // tare's own operator on quantized values: scores are exact sums, and weights of keys are 8-bit
    // integers (core/math/exp_quantized.h).
    {.id = OF_QUANTIZED,
     .functions = "torch.ops.tare.scaled_dot_product_attention",
     .params = PARAMETERS,
     .traits = OP_ANY_DTYPE,
     .quantized_inputs = 3,
     .shape = attention_shape,
     .reference = quantized_attention_reference,
     .macs = attention_macs},
};

const op_table tare__attention_ops = OP_TABLE(rows);
