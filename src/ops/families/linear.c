// SPDX-License-Identifier: Apache-2.0
// Linear layers and matrix products.
#include <string.h>

#include "dnnl/float_kernels.h"
#include "ops/families/families.h"
#include "ops/layer_call.h"
#include "ops/quantized/layer.h"
#include "ops/rules.h"

// --- linear: x [..][in], weight [out][in], bias [out] ---

static tare_status read_linear(op_call *call, const tare_tensor **x, const tare_tensor **w,
                               const tare_tensor **bias) {
    TARE_TRY(tare__need_float(call, 0, x));
    TARE_TRY(tare__need_float(call, 1, w));
    *bias = NULL;
    if (tare__call_given(call, 2)) TARE_TRY(tare__need_float(call, 2, bias));
    const bool weight_fits =
        (*w)->ndim == 2 && (*x)->ndim >= 1 && (*x)->shape[(*x)->ndim - 1] == (*w)->shape[1];
    if (!weight_fits)
        return tare__call_fail(call, "input of shape %s does not fit weight of shape %s",
                               tare__call_shape_text(call, *x), tare__call_shape_text(call, *w));
    if (*bias != NULL && ((*bias)->ndim != 1 || (*bias)->count != (*w)->shape[0]))
        return tare__call_fail(call, "bias of shape %s does not fit weight of shape %s",
                               tare__call_shape_text(call, *bias), tare__call_shape_text(call, *w));
    return TARE_OK;
}

static tare_status linear_shape(op_call *call) {
    const tare_tensor *x, *w, *bias;
    TARE_TRY(read_linear(call, &x, &w, &bias));
    int64_t shape[TARE_MAX_DIMS];
    memcpy(shape, x->shape, sizeof shape);
    shape[x->ndim - 1] = w->shape[0];
    return tare__call_result(call, x->dtype, x->ndim, shape, NULL);
}

static tare_status linear_reference(op_call *call) {
    const tare_tensor *x, *w, *bias;
    TARE_TRY(read_linear(call, &x, &w, &bias));
    const int64_t inner = w->shape[1];
    const int64_t columns = w->shape[0]; // > 0: an empty result is not computed
    const float_product p = {.rows = tare__call_out(call)->count / columns,
                             .inner = inner,
                             .columns = columns,
                             .transposed = true};
    return tare__float_multiply(call->kernels, &p, tare__f32(x), tare__f32(w),
                                bias != NULL ? tare__f32(bias) : NULL,
                                tare__f32(tare__call_out(call)), call->err);
}

tare_status tare__linear_read(op_call *call, linear_call *out) {
    return read_linear(call, &out->x, &out->w, &out->bias);
}

static int64_t linear_macs(const op_call *call) {
    const value *x = call->param[0], *w = call->param[1];
    if (x == NULL || w == NULL || x->kind != VALUE_TENSOR || w->kind != VALUE_TENSOR) return 0;
    return tare__size_product(x->as.tensor->count, w->as.tensor->shape[0]);
}

// --- matmul, with the batch dimensions broadcast ---

// A tensor with the batch shape of t: without its last two dimensions (or the only one).
static tare_tensor batch_of(const tare_tensor *t) {
    tare_tensor batch = {.ndim = t->ndim > 2 ? t->ndim - 2 : 0};
    for (int d = 0; d < batch.ndim; d++) batch.shape[d] = t->shape[d];
    return batch;
}

static tare_status need_operand(op_call *call, size_t i, const tare_tensor **out) {
    TARE_TRY(tare__call_need_tensor(call, i, out));
    const bool of_quantized = tare__matmul_is_of_quantized(call);
    if (of_quantized ? tare__is_byte_quantized(*out)
                     : (*out)->q == NULL && (*out)->dtype != TARE_BOOL)
        return TARE_OK;
    return tare__call_fail(call, "takes %s, found %s",
                           of_quantized ? "8-bit quantized values with one scale"
                                        : "floats or integers",
                           tare_dtype_name((*out)->dtype));
}

tare_status tare__matmul_read(op_call *call, matmul_call *p) {
    *p = (matmul_call){0};
    TARE_TRY(need_operand(call, 0, &p->a));
    TARE_TRY(need_operand(call, 1, &p->b));
    const tare_tensor *a = p->a, *b = p->b;
    if (a->dtype != b->dtype && a->q == NULL)
        return tare__call_fail(call, "takes tensors of one dtype, found %s and %s",
                               tare_dtype_name(a->dtype), tare_dtype_name(b->dtype));
    if (a->ndim == 0 || b->ndim == 0) return tare__call_fail(call, "needs at least one dimension");
    p->rows = a->ndim > 1 ? a->shape[a->ndim - 2] : 1;
    p->inner = a->shape[a->ndim - 1];
    p->columns = b->ndim > 1 ? b->shape[b->ndim - 1] : 1;
    const int64_t found = b->ndim > 1 ? b->shape[b->ndim - 2] : b->shape[0];
    if (found != p->inner)
        return tare__call_fail(call, "shapes %s and %s do not multiply",
                               tare__call_shape_text(call, a), tare__call_shape_text(call, b));
    const tare_tensor a_batch = batch_of(a), b_batch = batch_of(b);
    TARE_TRY(tare__broadcast(call, &a_batch, &b_batch, &p->batch_ndim, p->batch));
    tare__broadcast_strides(&a_batch, p->batch_ndim, p->batch, p->a_stride);
    tare__broadcast_strides(&b_batch, p->batch_ndim, p->batch, p->b_stride);
    return TARE_OK;
}

void tare__matmul_join_batch(matmul_call *p) {
    int kept = 0;
    for (int d = 0; d < p->batch_ndim; d++) {
        const int64_t size = p->batch[d], a = p->a_stride[d], b = p->b_stride[d];
        if (size == 1) continue;
        const bool joins =
            kept > 0 && p->a_stride[kept - 1] == a * size && p->b_stride[kept - 1] == b * size;
        if (!joins) p->batch[kept++] = 1;
        p->batch[kept - 1] *= size;
        p->a_stride[kept - 1] = a;
        p->b_stride[kept - 1] = b;
    }
    p->batch_ndim = kept;
}

tare_status tare__matmul_result(op_call *call, const matmul_call *p) {
    int64_t shape[TARE_MAX_DIMS + 2];
    int ndim = p->batch_ndim;
    memcpy(shape, p->batch, sizeof p->batch);
    if (p->a->ndim > 1) shape[ndim++] = p->rows;
    if (p->b->ndim > 1) shape[ndim++] = p->columns;
    return tare__call_result(call, p->a->q != NULL ? TARE_FLOAT32 : p->a->dtype, ndim, shape, NULL);
}

// The product of one matrix of doubles or integers; sums of integers wrap around, as torch's do.
static void multiply_plain(const matmul_call *p, int64_t a, int64_t b, int64_t at,
                           tare_tensor *out) {
    const dtype_info *info = tare__dtype(out->dtype);
    for (int64_t i = 0; i < p->rows * p->columns; i++) {
        const int64_t row = a + i / p->columns * p->inner, column = b + i % p->columns;
        double sum = 0;
        uint64_t bits = 0;
        for (int64_t k = 0; k < p->inner; k++) {
            const int64_t other = column + k * p->columns;
            if (info->is_float)
                sum += tare__tensor_get(p->a, row + k) * tare__tensor_get(p->b, other);
            else
                bits += (uint64_t)tare__tensor_get_int(p->a, row + k) *
                        (uint64_t)tare__tensor_get_int(p->b, other);
        }
        if (info->is_float)
            tare__tensor_set(out, at + i, sum);
        else
            tare__tensor_set_int(out, at + i, tare__dtype_wrap(bits, info));
    }
}

static tare_status matmul_compute(op_call *call, const matmul_call *p) {
    const float_product product = {.rows = p->rows, .inner = p->inner, .columns = p->columns};
    tare_tensor *y = tare__call_out(call);
    const int64_t each = p->rows * p->columns;
    float_kernels *kernels = tare__float_kernels_for(call->kernels, &product);
    int64_t count = 1;
    for (int d = 0; d < p->batch_ndim; d++) count *= p->batch[d];
    for (int64_t i = 0; i < count; i++) {
        const int64_t a =
            p->rows * p->inner * tare__strided_offset(p->batch_ndim, p->batch, p->a_stride, i);
        const int64_t b =
            p->inner * p->columns * tare__strided_offset(p->batch_ndim, p->batch, p->b_stride, i);
        if (y->dtype != TARE_FLOAT32)
            multiply_plain(p, a, b, i * each, y);
        else
            TARE_TRY(tare__float_multiply(kernels, &product, tare__f32(p->a) + a,
                                          tare__f32(p->b) + b, NULL, tare__f32(y) + i * each,
                                          call->err));
    }
    return TARE_OK;
}

static tare_status matmul_shape(op_call *call) {
    matmul_call p;
    TARE_TRY(tare__matmul_read(call, &p));
    return tare__matmul_result(call, &p);
}

static tare_status matmul_reference(op_call *call) {
    matmul_call p;
    TARE_TRY(tare__matmul_read(call, &p));
    return matmul_compute(call, &p);
}

int64_t tare__matmul_macs(const op_call *call) {
    const value *a = call->param[0], *y = &call->result;
    if (a == NULL || a->kind != VALUE_TENSOR || y->kind != VALUE_TENSOR) return 0;
    const tare_tensor *t = a->as.tensor;
    return t->ndim > 0 ? tare__size_product(y->as.tensor->count, t->shape[t->ndim - 1]) : 0;
}

// --- grouped_mm: x [S][K], in groups of rows that end at offs [E], times w [E][K][N] ---

tare_status tare__grouped_mm_read(op_call *call, grouped_mm_call *g) {
    TARE_TRY(tare__need_float(call, 0, &g->x));
    TARE_TRY(tare__need_float(call, 1, &g->w));
    TARE_TRY(tare__call_need_tensor(call, 2, &g->ends));
    if (tare__call_given(call, 3) || tare__call_given(call, 4))
        return tare__call_fail(call, "has no form with a bias or another dtype");
    const bool fits = g->x->ndim == 2 && g->w->ndim == 3 && g->ends->ndim == 1 &&
                      g->x->shape[1] == g->w->shape[1] && g->ends->count == g->w->shape[0] &&
                      !tare__dtype(g->ends->dtype)->is_float && g->ends->q == NULL;
    return fits ? TARE_OK
                : tare__call_fail(call, "shapes %s and %s and the ends %s of groups do not fit",
                                  tare__call_shape_text(call, g->x),
                                  tare__call_shape_text(call, g->w),
                                  tare__call_shape_text(call, g->ends));
}

static tare_status grouped_mm_shape(op_call *call) {
    grouped_mm_call g;
    TARE_TRY(tare__grouped_mm_read(call, &g));
    const int64_t shape[] = {g.x->shape[0], g.w->shape[2]};
    return tare__call_result(call, TARE_FLOAT32, 2, shape, NULL);
}

tare_status tare__grouped_mm_end(op_call *call, const grouped_mm_call *g, int64_t e, int64_t from,
                                 int64_t *end) {
    *end = tare__tensor_get_int(g->ends, e);
    if (*end >= from && *end <= g->x->shape[0]) return TARE_OK;
    return tare__call_fail(call, "group %lld ends at row %lld of %lld, expected %lld or more",
                           (long long)e, (long long)*end, (long long)g->x->shape[0],
                           (long long)from);
}

// Rows after the last group are set to 0.
static tare_status grouped_mm_reference(op_call *call) {
    grouped_mm_call g;
    TARE_TRY(tare__grouped_mm_read(call, &g));
    const int64_t inner = g.x->shape[1], columns = g.w->shape[2];
    float *y = tare__f32(tare__call_out(call));
    memset(y, 0, (size_t)tare__call_out(call)->count * sizeof *y);
    for (int64_t e = 0, from = 0, end; e < g.ends->count; e++, from = end) {
        TARE_TRY(tare__grouped_mm_end(call, &g, e, from, &end));
        const float_product p = {.rows = end - from, .inner = inner, .columns = columns};
        if (end > from)
            TARE_TRY(tare__float_multiply(
                tare__float_kernels_for(call->kernels, &p), &p, tare__f32(g.x) + from * inner,
                tare__f32(g.w) + e * inner * columns, NULL, y + from * columns, call->err));
    }
    return TARE_OK;
}

// --- rows ---

// clang-format off
static const op_info rows[] = {
    {.id = "grouped_mm", .functions = "torch.nn.functional.grouped_mm|torch._grouped_mm|torch.ops.aten._grouped_mm.default|torch.ops.transformers.grouped_mm_fallback.default",
     .params = "input/self|weight/mat2|offs|bias|out_dtype", .shape = grouped_mm_shape, .reference = grouped_mm_reference, .macs = tare__matmul_macs},
    {.id = "linear", .functions = "torch._C._nn.linear|torch.ops.aten.linear.default", .params = "input/self|weight|bias",
     .traits = OP_WEIGHTED | OP_BY_SAMPLE, .shape = linear_shape, .reference = linear_reference, .macs = linear_macs},
    {.id = "matmul", .functions = "torch.matmul|operator.matmul|torch.bmm|torch.mm|torch.ops.aten.matmul.default|torch.ops.aten.mm.default|torch.ops.aten.bmm.default|torch.mv|torch.ops.aten.mv.default|torch.dot|torch.ops.aten.dot.default",
     .methods = "matmul|bmm|mm|mv|dot", .params = "input/self|other/mat2/vec/tensor", .traits = OP_BY_MATRIX, .shape = matmul_shape, .reference = matmul_reference, .macs = tare__matmul_macs},
};
// clang-format on

const op_table tare__linear_ops = OP_TABLE(rows);
