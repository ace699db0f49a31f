// SPDX-License-Identifier: Apache-2.0
// Embeddings: rows of a table, and bags of rows. A table is float32, or 8-bit or 4-bit integers
// with a scale and a zero point for each row.
#include <string.h>

#include "core/tensor/half.h"
#include "ops/families/families.h"
#include "ops/layer_call.h"
#include "ops/quantized/quantized.h"
#include "ops/rules.h"

enum { INDICES, WEIGHT };

// --- tables ---

static bool is_quantized_table(const tare_tensor *w) {
    return w->q != NULL && w->ndim == 2 && tare__qscheme_is_per_channel(w->q->scheme) &&
           w->q->axis == 0 && tare_dtype_size(w->dtype) == 1;
}

static tare_status read_table(op_call *call, const tare_tensor **indices,
                              const tare_tensor **weight) {
    TARE_TRY(tare__call_need_tensor(call, INDICES, indices));
    TARE_TRY(tare__call_need_tensor(call, WEIGHT, weight));
    if (!is_quantized_table(*weight)) TARE_TRY(tare__need_float(call, WEIGHT, weight));
    const tare_dtype dtype = (*indices)->dtype;
    if (dtype != TARE_INT64 && dtype != TARE_INT32)
        return tare__call_fail(call, "indices must be torch.int64 or torch.int32, found %s",
                               tare_dtype_name(dtype));
    if ((*weight)->ndim != 2)
        return tare__call_fail(call, "weight must have 2 dimensions, found shape %s",
                               tare__call_shape_text(call, *weight));
    return TARE_OK;
}

static tare_status index_at(op_call *call, const tare_tensor *indices, int64_t i, int64_t rows,
                            int64_t *out) {
    *out = indices->dtype == TARE_INT64 ? ((const int64_t *)indices->data)[i]
                                        : ((const int32_t *)indices->data)[i];
    if (*out >= 0 && *out < rows) return TARE_OK;
    return tare__call_fail(call, "index %lld is outside of a table of %lld rows", (long long)*out,
                           (long long)rows);
}

// torch stores scale and bias of 4-bit rows in half precision.
static float stored(const tare_tensor *w, float number) {
    return w->dtype == TARE_QUINT4X2 ? tare__float16_to_float(tare__float_to_float16(number))
                                     : number;
}

void tare__embedding_factors(const tare_tensor *table, int64_t row, float *scale, float *bias) {
    const float factor = (float)table->q->scale[row];
    const float zero_point = (float)table->q->zero_point[row];
    *scale = stored(table, factor);
    *bias = stored(table, -zero_point * factor);
}

// Dequantizes row `row` to out[width].
static void read_row(const tare_tensor *w, int64_t row, float *out) {
    const int64_t width = w->shape[1];
    float scale, bias;
    if (w->q == NULL) {
        memcpy(out, tare__f32(w) + row * width, (size_t)width * sizeof *out);
        return;
    }
    tare__embedding_factors(w, row, &scale, &bias);
    for (int64_t k = 0; k < width; k++)
        out[k] =
            tare__dequantize_embedding((int64_t)tare__tensor_get(w, row * width + k), scale, bias);
}

// --- embedding ---

static tare_status embedding_shape(op_call *call) {
    const tare_tensor *indices, *weight;
    int64_t shape[TARE_MAX_DIMS + 1];
    TARE_TRY(read_table(call, &indices, &weight));
    if (tare__call_given(call, 3)) return tare__call_fail(call, "max_norm is not supported");
    memcpy(shape, indices->shape, sizeof indices->shape);
    shape[indices->ndim] = weight->shape[1];
    return tare__call_result(call, TARE_FLOAT32, indices->ndim + 1, shape, NULL);
}

tare_status tare__embedding_read(op_call *call, embedding_call *out) {
    return read_table(call, &out->indices, &out->table);
}

tare_status tare__embedding_row(op_call *call, const embedding_call *e, int64_t i, int64_t *out) {
    return index_at(call, e->indices, i, e->table->shape[0], out);
}

static tare_status embedding_reference(op_call *call) {
    const tare_tensor *indices, *weight;
    TARE_TRY(read_table(call, &indices, &weight));
    const int64_t width = weight->shape[1];
    float *y = tare__f32(tare__call_out(call));
    for (int64_t i = 0; i < indices->count; i++) {
        int64_t row;
        TARE_TRY(index_at(call, indices, i, weight->shape[0], &row));
        read_row(weight, row, y + i * width);
    }
    return TARE_OK;
}

// --- bags, which begin at `offsets`; indices of two dimensions are bags of equal length ---

enum { OFFSETS = 2, MODE, SAMPLE_WEIGHTS, LAST_OFFSET, PADDING_INDEX, MAX_NORM };

static tare_status read_mode(op_call *call, embedding_bags *b) {
    const char *mode;
    TARE_TRY(tare__call_text(call, MODE, "mean", &mode));
    if (strcmp(mode, "sum") == 0)
        b->mode = BAG_SUM;
    else if (strcmp(mode, "mean") == 0)
        b->mode = BAG_MEAN;
    else if (strcmp(mode, "max") == 0)
        b->mode = BAG_MAX;
    else
        return tare__call_fail(call, "mode must be 'sum', 'mean' or 'max', found '%s'", mode);
    return TARE_OK;
}

tare_status tare__embedding_bags_read(op_call *call, embedding_bags *b) {
    bool last_offset;
    *b = (embedding_bags){0};
    TARE_TRY(read_table(call, &b->rows.indices, &b->rows.table));
    TARE_TRY(read_mode(call, b));
    TARE_TRY(tare__call_bool(call, LAST_OFFSET, false, &last_offset));
    TARE_TRY(tare__call_int(call, PADDING_INDEX, -1, &b->padding_index));
    if (tare__call_given(call, MAX_NORM)) return tare__call_fail(call, "max_norm is not supported");
    if (tare__call_given(call, SAMPLE_WEIGHTS)) {
        TARE_TRY(tare__need_float(call, SAMPLE_WEIGHTS, &b->sample_weights));
        if (b->sample_weights->count != b->rows.indices->count || b->mode != BAG_SUM)
            return tare__call_fail(call,
                                   "per_sample_weights need mode 'sum' and one for each index");
    }
    b->offsets = tare__call_tensor(call, OFFSETS);
    if (b->rows.indices->ndim == 2 && b->offsets == NULL) {
        b->count = b->rows.indices->shape[0];
        return TARE_OK;
    }
    const bool fits = b->rows.indices->ndim == 1 && b->offsets != NULL && b->offsets->ndim == 1 &&
                      (b->offsets->dtype == TARE_INT64 || b->offsets->dtype == TARE_INT32);
    if (!fits) return tare__call_fail(call, "needs indices of 2 dimensions, or 1 with offsets");
    b->count = b->offsets->count - (last_offset ? 1 : 0);
    return b->count >= 0 ? TARE_OK : tare__call_fail(call, "offsets are empty");
}

static tare_status embedding_bag_shape(op_call *call) {
    embedding_bags b;
    TARE_TRY(tare__embedding_bags_read(call, &b));
    const int64_t shape[] = {b.count, b.rows.table->shape[1]};
    return tare__call_result(call, TARE_FLOAT32, 2, shape, NULL);
}

tare_status tare__embedding_bag_at(op_call *call, const embedding_bags *b, int64_t i,
                                   int64_t *begin, int64_t *end) {
    if (b->offsets == NULL) {
        const int64_t length = b->rows.indices->shape[1];
        *begin = i * length;
        *end = *begin + length;
        return TARE_OK;
    }
    *begin = tare__tensor_get_int(b->offsets, i);
    *end = i + 1 < b->offsets->count ? tare__tensor_get_int(b->offsets, i + 1)
                                     : b->rows.indices->count;
    if (*begin >= 0 && *begin <= *end && *end <= b->rows.indices->count) return TARE_OK;
    return tare__call_fail(call, "offsets of bag %lld are out of order", (long long)i);
}

static tare_status add_bag(op_call *call, const embedding_bags *b, int64_t begin, int64_t end,
                           float *from, float *y) {
    const int64_t width = b->rows.table->shape[1];
    int64_t used = 0;
    for (int64_t i = begin; i < end; i++) {
        int64_t row;
        TARE_TRY(tare__embedding_row(call, &b->rows, i, &row));
        if (row == b->padding_index) continue;
        read_row(b->rows.table, row, from);
        const float share = b->sample_weights != NULL ? tare__f32(b->sample_weights)[i] : 1;
        for (int64_t k = 0; k < width; k++) {
            const bool first = b->mode == BAG_MAX && used == 0;
            if (b->mode == BAG_MAX)
                y[k] = first || from[k] > y[k] ? from[k] : y[k];
            else
                y[k] += from[k] * share;
        }
        used++;
    }
    for (int64_t k = 0; b->mode == BAG_MEAN && used > 0 && k < width; k++) y[k] /= (float)used;
    return TARE_OK;
}

static tare_status embedding_bag_reference(op_call *call) {
    embedding_bags b;
    TARE_TRY(tare__embedding_bags_read(call, &b));
    float *y = tare__f32(tare__call_out(call));
    float *row = tare__arena_array(call->memory, (size_t)b.rows.table->shape[1] + 1, sizeof *row);
    if (row == NULL) return tare__out_of_memory(call->err);
    for (int64_t i = 0; i < b.count; i++) {
        int64_t begin, end;
        TARE_TRY(tare__embedding_bag_at(call, &b, i, &begin, &end));
        TARE_TRY(add_bag(call, &b, begin, end, row, y + i * b.rows.table->shape[1]));
    }
    return TARE_OK;
}

// --- modules ---

tare_status tare__quantized_embedding_check(const module *m, tare_error *err) {
    const tare_tensor *w = tare__module_tensor(m, "weight");
    if (w != NULL && w->data != NULL && is_quantized_table(w)) return TARE_OK;
    return tare__fail(err, TARE_INVALID_ARGUMENT,
                      "%s: expected a quint8 or quint4x2 tensor 'weight' with parameters for each "
                      "row",
                      m->class->name);
}

static const op_info rows[] = {
    {.id = "embedding",
     .functions = "torch.nn.functional.embedding",
     .overloads = "torch.ops.aten.embedding.default",
     .params = "input/indices|weight|padding_idx|max_norm|norm_type|scale_grad_by_freq|sparse",
     .shape = embedding_shape,
     .reference = embedding_reference,
     .quantized = embedding_reference},
    {.id = "embedding_bag",
     .params =
         "input|weight|offsets|mode|per_sample_weights|include_last_offset|padding_idx|max_norm",
     .module_inputs = "input|offsets|per_sample_weights",
     .shape = embedding_bag_shape,
     .reference = embedding_bag_reference,
     .quantized = embedding_bag_reference},
};

const op_table tare__embedding_ops = OP_TABLE(rows);
