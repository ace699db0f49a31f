// SPDX-License-Identifier: Apache-2.0
// Runs a bound call. Float and integer tensors are passed to the row directly. The general rule for
// quantized tensors, y = quantize(op(dequantize(x))), is implemented here once for all rows, and so
// is the rule for half-precision tensors, which are computed in float32 and rounded.
#include <string.h>

#include "core/math/requant.h"
#include "ops/composed.h"
#include "ops/memory_order.h"
#include "ops/op.h"
#include "ops/quantized/layer.h"
#include "ops/quantized/quantize.h"
#include "ops/quantized/table.h"

typedef enum run_path {
    AS_IT_IS,      // the row's reference, or its own quantized form
    THROUGH_FLOAT, // convert inputs to float32, run, convert the result
} run_path;

static tare_status shape_of_row(op_call *call) {
    const op_info *op = call->op;
    return op->forward != NULL ? tare__composed_shape(call, op->forward) : op->shape(call);
}

static tare_status compute_row(op_call *call) {
    const op_info *op = call->op;
    if (op->forward != NULL) return tare__composed_forward(call, op->forward);
    return op->reference != NULL ? op->reference(call) : TARE_OK;
}

typedef void (*tensor_visitor)(void *user, const tare_tensor *t);

static void each_tensor(const value *v, tensor_visitor visit, void *user) {
    if (v->kind == VALUE_TENSOR)
        visit(user, v->as.tensor);
    else if (tare__value_has_items(v))
        for (uint32_t i = 0; i < v->count; i++) each_tensor(&v->as.items[i], visit, user);
}

typedef struct inputs {
    const tare_tensor *quantized, *half; // the first of each
} inputs;

static void note_input(void *user, const tare_tensor *t) {
    inputs *found = user;
    if (t->q != NULL && found->quantized == NULL) found->quantized = t;
    const bool is_half = t->dtype == TARE_FLOAT16 || t->dtype == TARE_BFLOAT16;
    if (is_half && found->half == NULL) found->half = t;
}

static inputs find_inputs(const op_call *call) {
    inputs found = {0};
    for (size_t i = 0; i < call->param_count; i++)
        if (call->param[i] != NULL) each_tensor(call->param[i], note_input, &found);
    return found;
}

static tare_status choose_path(op_call *call, const inputs *in, run_path *out) {
    const unsigned traits = call->op->traits;
    *out = AS_IT_IS;
    if (traits & (OP_NOT_ON_TENSORS | OP_ANY_DTYPE)) return TARE_OK;
    // Rows that only move data cannot move the parameters of groups.
    if (in->quantized != NULL && tare__qscheme_is_per_group(in->quantized->q->scheme))
        return tare__call_fail(call, "has no form for tensors quantized per group");
    if (traits & OP_MOVES_DATA) return TARE_OK;
    if (in->quantized == NULL) {
        if (in->half != NULL) *out = THROUGH_FLOAT;
        return TARE_OK;
    }
    if (call->op->quantized != NULL) return TARE_OK;
    if (!(traits & OP_KEEPS_QPARAMS) && call->op->fixed_scale == 0)
        return tare__call_fail(call, "has no quantized form, but its input is %s",
                               tare_dtype_name(in->quantized->dtype));
    *out = THROUGH_FLOAT;
    return TARE_OK;
}

// --- through float ---

// The qparams of the result; NULL when it is not quantized. The caller releases *out.
static tare_status result_qparams(op_call *call, const inputs *in, const qparams **out) {
    *out = NULL;
    if (in->quantized == NULL) return TARE_OK;
    const qparams *q = in->quantized->q;
    if (call->op->fixed_scale == 0) {
        *out = tare__qparams_retain(q);
        return TARE_OK;
    }
    if (q->dtype != TARE_QUINT8 && q->dtype != TARE_QINT8)
        return tare__call_fail(call, "has no quantized form for %s", tare_dtype_name(q->dtype));
    const int zero_point = call->op->fixed_zero_point - (q->dtype == TARE_QINT8 ? 128 : 0);
    *out = tare__qparams_per_tensor(q->dtype, (double)call->op->fixed_scale, zero_point);
    return *out != NULL ? TARE_OK : tare__out_of_memory(call->err);
}

static tare_status items_to_float(const value *v, bool meta, arena *memory, value *out,
                                  tare_error *err) {
    const value list = tare__value_sequence(memory, v->kind, v->count);
    if (list.as.items == NULL && v->count > 0) return tare__out_of_memory(err);
    *out = list;
    for (uint32_t i = 0; i < v->count; i++)
        TARE_TRY(tare__value_to_float(&v->as.items[i], meta, memory, &list.as.items[i], err));
    return TARE_OK;
}

tare_status tare__value_to_float(const value *v, bool meta, arena *memory, value *out,
                                 tare_error *err) {
    *out = tare__none();
    if (tare__value_has_items(v)) return items_to_float(v, meta, memory, out, err);
    if (v->kind != VALUE_TENSOR) {
        *out = *v;
        return TARE_OK;
    }
    tare_tensor *t = v->as.tensor, *made = NULL;
    if (t->q == NULL && t->dtype != TARE_FLOAT16 && t->dtype != TARE_BFLOAT16)
        made = tare_tensor_retain(t);
    else if (meta)
        TARE_TRY(tare__tensor_meta(TARE_FLOAT32, t->ndim, t->shape, NULL, &made, err));
    else
        TARE_TRY(tare_tensor_to_float(t, &made, err));
    *out = (value){.kind = VALUE_TENSOR, .as.tensor = made};
    return TARE_OK;
}

tare_status tare__float_call_begin(const op_call *call, bool meta, float_call *out) {
    memset(out, 0, sizeof *out);
    out->call = *call;
    out->call.result = tare__none();
    for (size_t i = 0; i < call->param_count; i++) {
        if (call->param[i] == NULL) continue;
        out->call.param[i] = &out->params[i];
        TARE_TRY(
            tare__value_to_float(call->param[i], meta, call->memory, &out->params[i], call->err));
    }
    return TARE_OK;
}

void tare__float_call_end(float_call *f) {
    tare__value_release_tensors(&f->call.result);
    for (size_t i = 0; i < OP_MAX_PARAMS; i++) tare__value_release_tensors(&f->params[i]);
}

// Meta tensors like those of a float result, with the dtype and qparams of the call's result.
static tare_status qualify(const value *from, tare_dtype dtype, const qparams *q, arena *memory,
                           value *out, tare_error *err) {
    if (from->kind == VALUE_TENSOR) {
        const tare_tensor *t = from->as.tensor;
        const bool is_float = t->dtype == TARE_FLOAT32; // a comparison's result stays bool
        tare_tensor *made = NULL;
        TARE_TRY(tare__tensor_meta(is_float ? dtype : t->dtype, t->ndim, t->shape,
                                   is_float ? q : NULL, &made, err));
        *out = (value){.kind = VALUE_TENSOR, .as.tensor = made};
        return TARE_OK;
    }
    if (!tare__value_has_items(from)) {
        *out = *from;
        return TARE_OK;
    }
    *out = tare__value_sequence(memory, from->kind, from->count);
    if (out->as.items == NULL && from->count > 0) return tare__out_of_memory(err);
    for (uint32_t i = 0; i < from->count; i++)
        TARE_TRY(qualify(&from->as.items[i], dtype, q, memory, &out->as.items[i], err));
    return TARE_OK;
}

static tare_status shape_through_float(op_call *call, const inputs *in) {
    const qparams *q = NULL;
    TARE_TRY(result_qparams(call, in, &q));
    float_call f;
    tare_status status = tare__float_call_begin(call, true, &f);
    if (status == TARE_OK) status = shape_of_row(&f.call);
    const tare_dtype half = in->half != NULL ? in->half->dtype : TARE_FLOAT32;
    if (status == TARE_OK)
        status = qualify(&f.call.result, q != NULL ? q->dtype : half, q, call->memory,
                         &call->result, call->err);
    tare__float_call_end(&f);
    tare__qparams_release(q);
    return status;
}

static void store(const value *from, value *to) {
    if (from->kind == VALUE_TENSOR) {
        const tare_tensor *x = from->as.tensor;
        tare_tensor *y = to->as.tensor;
        if (y->q != NULL)
            tare__quantize_into(x, y);
        else if (x->dtype == y->dtype)
            memcpy(y->data, x->data, tare__tensor_bytes(x));
        else
            for (int64_t i = 0; i < x->count; i++) tare__tensor_set(y, i, tare__tensor_get(x, i));
    } else if (tare__value_has_items(from)) {
        for (uint32_t i = 0; i < from->count; i++) store(&from->as.items[i], &to->as.items[i]);
    }
}

static tare_status compute_each(op_call *call) {
    float_call f;
    tare_status status = tare__float_call_begin(call, false, &f);
    if (status == TARE_OK) status = shape_of_row(&f.call);
    if (status == TARE_OK && !tare__value_has_data(&f.call.result)) {
        status = tare__call_allocate(&f.call);
        if (status == TARE_OK) status = compute_row(&f.call);
    }
    if (status == TARE_OK) store(&f.call.result, &call->result);
    tare__float_call_end(&f);
    return status;
}

static tare_status compute_quantized(void *user, const value *in, value *out) {
    op_call inner = *(const op_call *)user;
    inner.param[0] = in;
    inner.result = *out;
    return compute_each(&inner);
}

static tare_status compute_through_float(op_call *call) {
    if (!tare__quantized_table_fits(call->op, call->param, call->param_count, &call->result))
        return compute_each(call);
    return tare__quantized_table_run(call->param[0]->as.tensor, call->result.as.tensor,
                                     compute_quantized, call, call->err);
}

// Quantizes averages as torch does when its sum includes the zero point: the zero point is added
// before rounding.
static void store_with_zero_point(const tare_tensor *x, tare_tensor *y) {
    const float zero_point = (float)y->q->zero_point[0];
    for (int64_t i = 0; i < x->count; i++) {
        const int64_t q =
            tare__quantize(tare__f32(x)[i] + zero_point, 1.0F, 0, y->q->quant_min, y->q->quant_max);
        tare__store_quantized(y, i, (int32_t)q);
    }
}

// Computes an average in float and stores it as the quantized result of the call.
static tare_status compute_averages(op_call *call) {
    float_call f;
    tare_status status = tare__float_call_begin(call, false, &f);
    if (status == TARE_OK) status = shape_of_row(&f.call);
    if (status == TARE_OK) status = tare__call_allocate(&f.call);
    if (status == TARE_OK) status = compute_row(&f.call);
    if (status == TARE_OK) store_with_zero_point(f.call.result.as.tensor, call->result.as.tensor);
    tare__float_call_end(&f);
    return status;
}

// Averages of integers have ties; averages of dequantized values miss them by rounding errors. So
// the first input and the result are treated as tensors of scale 1 with the same zero point and
// bounds.
static tare_status compute_on_quantized(op_call *call, const tare_tensor *x) {
    value in = {.kind = VALUE_TENSOR}, out = {.kind = VALUE_TENSOR};
    qparams *q = tare__qparams_per_tensor(x->dtype, 1.0, (int64_t)x->q->zero_point[0]);
    if (q == NULL) return tare__out_of_memory(call->err);
    q->quant_min = x->q->quant_min;
    q->quant_max = x->q->quant_max;
    tare_status status = tare__tensor_requalify(x, q, &in.as.tensor, call->err);
    if (status == TARE_OK)
        status = tare__tensor_requalify(call->result.as.tensor, q, &out.as.tensor, call->err);
    if (status == TARE_OK) {
        op_call inner = *call;
        inner.param[0] = &in;
        inner.result = out;
        const bool with_zero_point =
            tare__is_byte_quantized(x) && tare__rounds_with_zero_point(call, x);
        status = with_zero_point ? compute_averages(&inner) : compute_through_float(&inner);
    }
    tare_tensor_release(in.as.tensor);
    tare_tensor_release(out.as.tensor);
    tare__qparams_release(q);
    return status;
}

// True if torch averages the quantized values directly: along the innermost dimensions. Along
// others it computes in float, where ties round differently.
static bool averages_inside(const op_call *call, const tare_tensor *x) {
    const size_t i = tare__op_param_index(call->op, "dim");
    if (i >= call->param_count) return true; // a pooling operator
    const value *dim = call->param[i];
    if (dim == NULL || dim->kind == VALUE_NONE) return false;
    const uint32_t count = tare__value_has_items(dim) ? dim->count : 1;
    for (uint32_t k = 0; k < count; k++) {
        int64_t d;
        if (!tare__call_integer(tare__value_has_items(dim) ? &dim->as.items[k] : dim, &d))
            return false;
        d += d < 0 ? x->ndim : 0;
        if (d < x->ndim - (int64_t)count) return false;
    }
    return true;
}

static bool averages_quantized(const op_call *call, const inputs *in) {
    return (call->op->traits & OP_ON_QUANTIZED) && in->quantized != NULL &&
           call->result.kind == VALUE_TENSOR && call->param[0] != NULL &&
           call->param[0]->kind == VALUE_TENSOR && call->param[0]->as.tensor == in->quantized &&
           tare__qscheme_is_per_tensor(in->quantized->q->scheme) &&
           averages_inside(call, in->quantized);
}

bool tare__op_goes_through_float(const op_call *call) {
    op_call asked = *call;
    const inputs in = find_inputs(call);
    run_path chosen;
    asked.err = NULL;
    return in.quantized != NULL && choose_path(&asked, &in, &chosen) == TARE_OK &&
           chosen == THROUGH_FLOAT && !averages_quantized(call, &in);
}

// --- steps ---

// A tensor that is written in place keeps its dtype in torch.
static tare_status check_written(op_call *call) {
    if (call->function == NULL || call->param_count == 0 ||
        !tare__is_in_place_overload(call->function))
        return TARE_OK;
    const tare_tensor *x = tare__call_tensor(call, 0);
    const value *y = &call->result;
    if (x == NULL || y->kind != VALUE_TENSOR || x->dtype == y->as.tensor->dtype) return TARE_OK;
    return tare__call_fail(call, "cannot write a result of %s into a tensor of %s",
                           tare_dtype_name(y->as.tensor->dtype), tare_dtype_name(x->dtype));
}

tare_status tare__op_shape(op_call *call) {
    const inputs in = find_inputs(call);
    run_path chosen;
    TARE_TRY(choose_path(call, &in, &chosen));
    tare_status status =
        chosen == THROUGH_FLOAT ? shape_through_float(call, &in) : shape_of_row(call);
    if (status == TARE_OK) status = check_written(call);
    if (status != TARE_OK) tare__value_release_tensors(&call->result);
    return status;
}

tare_status tare__op_compute(op_call *call) {
    if (tare__value_is_empty(&call->result)) return TARE_OK;
    const inputs in = find_inputs(call);
    run_path chosen;
    TARE_TRY(choose_path(call, &in, &chosen));
    if (chosen == THROUGH_FLOAT && averages_quantized(call, &in))
        return compute_on_quantized(call, in.quantized);
    if (chosen == THROUGH_FLOAT) return compute_through_float(call);
    const bool own =
        in.quantized != NULL && call->op->quantized != NULL && !(call->op->traits & OP_MOVES_DATA);
    if (own) return call->op->quantized(call);
    return compute_row(call);
}

tare_status tare__op_run(op_call *call, bool shapes_only) {
    TARE_TRY(tare__op_shape(call));
    if (shapes_only || tare__value_has_data(&call->result)) return TARE_OK;
    tare_status status = tare__call_allocate(call);
    if (status == TARE_OK) status = tare__op_compute(call);
    if (status != TARE_OK) tare__value_release_tensors(&call->result);
    return status;
}
