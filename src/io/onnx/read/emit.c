// SPDX-License-Identifier: Apache-2.0
// Adds constants and calls to the draft graph. Dtype and shape of a call's result are inferred when
// it is added.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/text/text.h"
#include "io/onnx/read/sizes.h"
#include "ops/classes/module_call.h"
#include "ops/rules.h"

// --- constants ---

typedef struct tensor_key {
    char text[32];
} tensor_key;

static tensor_key key_of(const tare_tensor *t) {
    tensor_key key;
    snprintf(key.text, sizeof key.text, "%p", (const void *)t);
    return key;
}

onnx_constant *tare__onnx_constant_of(const onnx_import *in, const tare_tensor *t) {
    return tare__map_get(&in->constants, key_of(t).text);
}

static tare_status remember(onnx_import *in, tare_tensor *t, const char *name) {
    onnx_constant *c = tare__arena_alloc(&in->memory, sizeof *c);
    if (c == NULL || !tare__arena_copy_text(&in->memory, name, &c->name) ||
        !tare__map_set(&in->constants, key_of(t).text, c))
        return tare__out_of_memory(in->err);
    return TARE_OK;
}

tare_status tare__onnx_add_constant(onnx_import *in, tare_tensor *t, const char *name) {
    if (!tare__grow((void **)&in->tensors, &in->tensor_capacity, in->tensor_count,
                    sizeof(tare_tensor *))) {
        tare_tensor_release(t);
        return tare__out_of_memory(in->err);
    }
    in->tensors[in->tensor_count++] = t;
    if (tare__onnx_constant_of(in, t) != NULL) return TARE_OK;
    return remember(in, t, name);
}

// The quantization parameters of the transposed matrix.
static qparams *turned_params(const qparams *q) {
    const int axis = tare__qscheme_is_per_channel(q->scheme) ? 1 - q->axis : 0;
    return tare__qparams_create(q->scheme, q->dtype, axis, q->count, q->scale, q->zero_point);
}

tare_status tare__onnx_transpose_quantized(onnx_import *in, const tare_tensor *from,
                                           const tare_tensor *to) {
    const onnx_constant *c = tare__onnx_constant_of(in, from);
    const tare_tensor *quantized = c->quantized;
    tare__onnx_constant_of(in, to)->quantized = c->turned;
    if (quantized == NULL || quantized->ndim != 2) return TARE_OK;
    if (tare__qscheme_is_per_group(quantized->q->scheme)) {
        tare__onnx_constant_of(in, to)->turned = c->quantized;
        return TARE_OK;
    }
    const int64_t rows = quantized->shape[0], columns = quantized->shape[1];
    const int64_t shape[] = {columns, rows};
    qparams *q = turned_params(quantized->q);
    tare_tensor *transposed = NULL;
    if (q == NULL) return tare__out_of_memory(in->err);
    const tare_status status = tare__tensor_quantized(2, shape, q, &transposed, in->err);
    tare__qparams_release(q);
    TARE_TRY(status);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++)
            tare__tensor_set_int(transposed, k * rows + i,
                                 tare__tensor_get_int(quantized, i * columns + k));
    TARE_TRY(tare__onnx_add_constant(in, transposed, NULL));
    tare__onnx_constant_of(in, to)->quantized = transposed;
    return TARE_OK;
}

// --- what is known of nodes ---

draft_info *tare__onnx_info(onnx_import *in, const node *n) {
    return &in->info[n->id];
}

tare_status tare__onnx_add_info(onnx_import *in, const node *n, const onnx_scope *scope,
                                const char *file_name) {
    while (n->id >= in->info_capacity) {
        const size_t before = in->info_capacity;
        if (!tare__grow((void **)&in->info, &in->info_capacity, before, sizeof *in->info))
            return tare__out_of_memory(in->err);
        memset(in->info + before, 0, (in->info_capacity - before) * sizeof *in->info);
    }
    in->info[n->id] = (draft_info){.scope = scope, .file_name = file_name};
    return TARE_OK;
}

tare_status tare__onnx_constant_node(onnx_import *in, tare_tensor *t, const onnx_scope *scope,
                                     node **out) {
    onnx_constant *c = tare__onnx_constant_of(in, t);
    if (c->attr != NULL) {
        *out = c->attr;
        return TARE_OK;
    }
    char name[40];
    snprintf(name, sizeof name, "constant_%zu", in->draft->next_id);
    TARE_TRY(tare__module_set_tensor(in->root, name, t, false, in->err));
    const node_spec spec = {.op = NODE_GET_ATTR, .target = name};
    TARE_TRY(tare__graph_insert(in->draft, &spec, NULL, &c->attr, in->err));
    TARE_TRY(tare__onnx_add_info(in, c->attr, scope, ""));
    draft_info *info = tare__onnx_info(in, c->attr);
    info->constant = t;
    info->meta = (value){.kind = VALUE_TENSOR, .as.tensor = tare_tensor_retain(t)};
    info->other = (value){.kind = VALUE_TENSOR, .as.tensor = tare_tensor_retain(t)};
    *out = c->attr;
    return TARE_OK;
}

// --- running shape rules ---

typedef struct inference {
    onnx_import *in;
    arena *memory;
    bool other; // infer for the other batch or stand-in sizes
    tare_error *err;
} inference;

// Copies v with each node replaced by what is known of its result. Tensors are not retained.
static tare_status resolve(const inference *i, const value *v, value *out) {
    *out = *v;
    if (v->kind == VALUE_NODE) {
        const draft_info *info = tare__onnx_info(i->in, v->as.node);
        *out = i->other ? info->other : info->meta;
        if (i->other && out->kind == VALUE_NONE)
            return tare__fail(i->err, TARE_UNSUPPORTED, "an input works for one batch size only");
        return TARE_OK;
    }
    if (!tare__value_has_items(v)) return TARE_OK;
    *out = tare__value_sequence(i->memory, v->kind, v->count);
    if (out->as.items == NULL && v->count > 0) return tare__out_of_memory(i->err);
    for (uint32_t k = 0; k < v->count; k++)
        TARE_TRY(resolve(i, &v->as.items[k], &out->as.items[k]));
    return TARE_OK;
}

static tare_status resolve_call(const inference *i, const node *n, op_call *call) {
    value *args = tare__arena_array(i->memory, n->arg_count + 1, sizeof *args);
    keyword *kwargs = tare__arena_array(i->memory, n->kwarg_count + 1, sizeof *kwargs);
    if (args == NULL || kwargs == NULL) return tare__out_of_memory(i->err);
    for (size_t k = 0; k < n->arg_count; k++) TARE_TRY(resolve(i, &n->args[k], &args[k]));
    for (size_t k = 0; k < n->kwarg_count; k++) {
        kwargs[k].name = n->kwargs[k].name;
        TARE_TRY(resolve(i, &n->kwargs[k].value, &kwargs[k].value));
    }
    call->args = args;
    call->arg_count = n->arg_count;
    call->kwargs = kwargs;
    call->kwarg_count = n->kwarg_count;
    return TARE_OK;
}

static const op_info *row_of(node_op op, const char *target) {
    return op == NODE_CALL_METHOD ? tare__op_method(target) : tare__op_function(target);
}

static tare_status run_shapes(const inference *i, const node *n, value *out) {
    op_call call = {.node_name = n->name, .memory = i->memory, .thread_count = 1, .err = i->err};
    TARE_TRY(resolve_call(i, n, &call));
    if (n->op == NODE_CALL_MODULE) {
        call.module = tare__module_find(i->in->root, n->target);
        TARE_TRY(tare__module_run(&call, true));
    } else {
        TARE_TRY(tare__call_bind(&call, row_of(n->op, n->target)));
        TARE_TRY(tare__op_run(&call, true));
    }
    const tare_status status = tare__value_share(&i->in->memory, &call.result, out, i->err);
    tare__value_release_tensors(&call.result);
    return status;
}

// True if a size is 1 for one stand-in size and not for the other: broadcasting would then depend
// on it.
static bool shrinks(const value *meta, const value *other) {
    if (meta->kind != VALUE_TENSOR || other->kind != VALUE_TENSOR) return false;
    const tare_tensor *t = meta->as.tensor, *o = other->as.tensor;
    for (int d = 0; d < t->ndim && d < o->ndim; d++)
        if ((t->shape[d] <= 1) != (o->shape[d] <= 1)) return true;
    return t->ndim != o->ndim;
}

// With open dimensions, a call must work for both stand-in sizes.
static tare_status check_open(onnx_import *in, tare_status works, const value *meta,
                              const value *other) {
    if (works == TARE_OUT_OF_MEMORY) return tare__out_of_memory(in->err);
    if (in->open == NULL || (works == TARE_OK && !shrinks(meta, other))) return TARE_OK;
    return works == TARE_OK ? tare__fail(in->err, TARE_UNSUPPORTED,
                                         "a size of its result is 1 for some open sizes only")
                            : works;
}

tare_status tare__onnx_infer(onnx_import *in, node *n) {
    arena scratch = {0};
    value meta = tare__none(), other = tare__none();
    const inference now = {.in = in, .memory = &scratch, .err = in->err};
    const inference otherwise = {
        .in = in, .memory = &scratch, .other = true, .err = in->open != NULL ? in->err : NULL};
    tare_status status = run_shapes(&now, n, &meta);
    if (status == TARE_OK) {
        const tare_status works = run_shapes(&otherwise, n, &other);
        status = check_open(in, works, &meta, &other);
    }
    tare__arena_release(&scratch);
    if (status != TARE_OK) {
        tare__value_release_tensors(&meta);
        tare__value_release_tensors(&other);
        return status;
    }
    draft_info *info = tare__onnx_info(in, n);
    info->meta = meta;
    info->other = other;
    return TARE_OK;
}

// --- computing constants ---

// A few nodes of a small file can describe a constant that would take very long to compute, so the
// total cost of constants is limited. False: the call stays in the graph.
static bool take_work(onnx_import *in, const op_call *call) {
    const int64_t macs = call->op->macs != NULL ? call->op->macs(call) : 0;
    if (macs < 0 || macs > in->folded_macs_left) return false;
    in->folded_macs_left -= macs;
    return true;
}

// The import takes over the references of a result.
static tare_status keep_result(onnx_import *in, value *v) {
    if (v->kind == VALUE_TENSOR) {
        tare_tensor *t = v->as.tensor;
        return tare__onnx_add_constant(in, t, NULL);
    }
    tare_status status = TARE_OK;
    if (!tare__value_has_items(v)) return TARE_OK;
    for (uint32_t k = 0; k < v->count; k++) {
        if (status == TARE_OK)
            status = keep_result(in, &v->as.items[k]);
        else
            tare__value_release_tensors(&v->as.items[k]);
    }
    return status;
}

static tare_status compute(onnx_import *in, op_call *call, bool *done) {
    tare_status status = tare__op_shape(call);
    *done = status == TARE_OK && tare__value_has_data(&call->result);
    if (*done) return TARE_OK;
    *done = status == TARE_OK && take_work(in, call);
    if (*done) status = tare__call_allocate(call);
    if (*done && status == TARE_OK) status = tare__op_compute(call);
    if (!*done || status != TARE_OK) tare__value_release_tensors(&call->result);
    return status;
}

// Shape arithmetic works on a few numbers, or on a range as long as the other batch. Larger
// constants are not shapes.
enum { MOST_OTHER_ELEMENTS = 4096 };

static bool depends_on_batch(const onnx_import *in, const value *v) {
    if (v->kind == VALUE_TENSOR) return tare__onnx_constant_of(in, v->as.tensor)->other != NULL;
    if (tare__value_has_items(v))
        for (uint32_t k = 0; k < v->count; k++)
            if (depends_on_batch(in, &v->as.items[k])) return true;
    return false;
}

// Copies v with each constant replaced by its value for the other batch size.
static tare_status swap_others(const onnx_import *in, arena *scratch, const value *v, value *out) {
    *out = *v;
    if (v->kind == VALUE_TENSOR) {
        tare_tensor *other = tare__onnx_constant_of(in, v->as.tensor)->other;
        if (other != NULL) out->as.tensor = other;
        return TARE_OK;
    }
    if (!tare__value_has_items(v)) return TARE_OK;
    *out = tare__value_sequence(scratch, v->kind, v->count);
    if (out->as.items == NULL && v->count > 0) return TARE_OUT_OF_MEMORY;
    for (uint32_t k = 0; k < v->count; k++)
        TARE_TRY(swap_others(in, scratch, &v->as.items[k], &out->as.items[k]));
    return TARE_OK;
}

static bool is_small(const value *v) {
    return v->kind == VALUE_TENSOR && v->as.tensor->count <= MOST_OTHER_ELEMENTS;
}

static tare_status compute_other(op_call *call) {
    TARE_TRY(tare__op_shape(call));
    tare_status status = is_small(&call->result) ? TARE_OK : TARE_UNSUPPORTED;
    if (status == TARE_OK && !tare__value_has_data(&call->result)) {
        status = tare__call_allocate(call);
        if (status == TARE_OK) status = tare__op_compute(call);
    }
    if (status != TARE_OK) tare__value_release_tensors(&call->result);
    return status;
}

// Computes the call for the other batch size, too. If that fails, the result counts as independent
// of the batch.
static tare_status fold_other(onnx_import *in, const op_info *op, const onnx_emit *e,
                              arena *scratch, const value *result) {
    value *args = tare__arena_array(scratch, e->arg_count + 1, sizeof *args);
    op_call call = {.node_name = e->target,
                    .memory = scratch,
                    .thread_count = 1,
                    .args = args,
                    .arg_count = e->arg_count,
                    .kwargs = e->kwargs,
                    .kwarg_count = e->kwarg_count};
    bool depends = false;
    for (size_t i = 0; i < e->arg_count; i++) depends |= depends_on_batch(in, &e->args[i]);
    if (!depends || !is_small(result)) return TARE_OK;
    tare_status status = args != NULL ? TARE_OK : TARE_OUT_OF_MEMORY;
    for (size_t i = 0; i < e->arg_count && status == TARE_OK; i++)
        status = swap_others(in, scratch, &e->args[i], &args[i]);
    if (status == TARE_OK) status = tare__call_bind(&call, op);
    if (status == TARE_OK) status = compute_other(&call);
    if (status == TARE_OUT_OF_MEMORY) return tare__out_of_memory(in->err);
    if (status != TARE_OK) return TARE_OK;
    tare_tensor *other = call.result.as.tensor;
    TARE_TRY(tare__onnx_add_constant(in, other, NULL));
    tare__onnx_constant_of(in, result->as.tensor)->other = other;
    return TARE_OK;
}

// True if the call transposes a matrix.
static bool transposes(const op_call *call) {
    const value *x = call->param[0], *order = call->param[1];
    if (x == NULL || x->kind != VALUE_TENSOR || x->as.tensor->ndim != 2) return false;
    if (tare__op_id(call->op) == TARE_OP_T) return true;
    return tare__op_id(call->op) == TARE_OP_PERMUTE && order != NULL &&
           tare__value_has_items(order) && order->count == 2 &&
           order->as.items[0].kind == VALUE_INT && order->as.items[0].as.integer == 1;
}

// Computes a call on constants now, unless it is too expensive. The import owns the results.
static tare_status fold_call(onnx_import *in, node_op op, const onnx_emit *e, arena *scratch,
                             value *out, bool *done) {
    op_call call = {.node_name = e->target,
                    .memory = scratch,
                    .thread_count = 1,
                    .args = e->args,
                    .arg_count = e->arg_count,
                    .kwargs = e->kwargs,
                    .kwarg_count = e->kwarg_count,
                    .budget = &in->data_files.budget,
                    .err = in->err};
    TARE_TRY(tare__call_bind(&call, row_of(op, e->target)));
    TARE_TRY(compute(in, &call, done));
    if (!*done) return TARE_OK;
    value kept;
    const tare_status status = tare__value_share(&in->memory, &call.result, &kept, in->err);
    tare__value_release_tensors(&call.result);
    TARE_TRY(status);
    TARE_TRY(keep_result(in, &kept));
    *out = kept;
    if (transposes(&call) && kept.kind == VALUE_TENSOR)
        TARE_TRY(tare__onnx_transpose_quantized(in, e->args[0].as.tensor, kept.as.tensor));
    return fold_other(in, row_of(op, e->target), e, scratch, &kept);
}

// --- calls ---

static bool holds_node(const value *v) {
    if (v->kind == VALUE_NODE) return true;
    if (tare__value_has_items(v))
        for (uint32_t k = 0; k < v->count; k++)
            if (holds_node(&v->as.items[k])) return true;
    return false;
}

static bool is_constant_call(const onnx_emit *e) {
    for (size_t i = 0; i < e->arg_count; i++)
        if (holds_node(&e->args[i])) return false;
    for (size_t i = 0; i < e->kwarg_count; i++)
        if (holds_node(&e->kwargs[i].value)) return false;
    return true;
}

// The number as Python code would write it: the shortest double that gives this float.
static value number_of(const tare_tensor *t) {
    const double number = tare__tensor_get(t, 0);
    if (t->dtype == TARE_BOOL) return tare__bool(number != 0);
    if (t->dtype == TARE_INT64) return tare__int(*(const int64_t *)t->data);
    if (!tare__dtype(t->dtype)->is_float) return tare__int((int64_t)number);
    return tare__float(t->dtype == TARE_FLOAT64 ? number : tare__double_of_float((float)number));
}

static tare_status materialize(onnx_call *c, const value *v, value *out) {
    *out = *v;
    if (v->kind == VALUE_TENSOR) {
        tare_tensor *t = v->as.tensor;
        if (tare__onnx_is_open(c->in, t)) return tare__onnx_open_tensor(c, t, out);
        if (t->ndim == 0 && t->q == NULL) {
            *out = number_of(t);
            return TARE_OK;
        }
        node *n = NULL;
        TARE_TRY(tare__onnx_constant_node(c->in, t, c->scope, &n));
        *out = tare__node_value(n);
        return TARE_OK;
    }
    if (!tare__value_has_items(v)) return TARE_OK;
    *out = tare__value_sequence(&c->scratch, v->kind, v->count);
    if (out->as.items == NULL && v->count > 0) return tare__out_of_memory(c->in->err);
    for (uint32_t k = 0; k < v->count; k++)
        TARE_TRY(materialize(c, &v->as.items[k], &out->as.items[k]));
    return TARE_OK;
}

// True if `other` is t broadcast along dimensions where t has size 1.
static bool repeats(const tare_tensor *t, const tare_tensor *other) {
    int64_t stride[TARE_MAX_DIMS];
    if (t->ndim != other->ndim || t->dtype != other->dtype || other->data == NULL) return false;
    for (int d = 0; d < t->ndim; d++)
        if (t->shape[d] != other->shape[d] && t->shape[d] != 1) return false;
    tare__broadcast_strides(t, other->ndim, other->shape, stride);
    for (int64_t i = 0; i < other->count; i++) {
        const int64_t at = tare__strided_offset(other->ndim, other->shape, stride, i);
        if (tare__tensor_get(t, at) != tare__tensor_get(other, i)) return false;
    }
    return true;
}

// True if v contains a constant that the file computes from the batch size and that other batch
// sizes would change.
static bool is_of_one_batch(const onnx_import *in, const value *v) {
    if (v->kind == VALUE_TENSOR) {
        const tare_tensor *other = tare__onnx_constant_of(in, v->as.tensor)->other;
        return other != NULL && !repeats(v->as.tensor, other);
    }
    if (tare__value_has_items(v))
        for (uint32_t k = 0; k < v->count; k++)
            if (is_of_one_batch(in, &v->as.items[k])) return true;
    return false;
}

// A call with such a constant works only for the batch size that the file was read for.
static void note_one_batch(onnx_import *in, const onnx_emit *e, const node *n) {
    bool is_fixed = false;
    if (in->open != NULL) return;
    for (size_t i = 0; i < e->arg_count; i++) is_fixed |= is_of_one_batch(in, &e->args[i]);
    for (size_t i = 0; i < e->kwarg_count; i++)
        is_fixed |= is_of_one_batch(in, &e->kwargs[i].value);
    if (!is_fixed) return;
    value *other = &tare__onnx_info(in, n)->other;
    tare__value_release_tensors(other);
    *other = tare__none();
}

static tare_status insert_call(onnx_call *c, node_op op, const onnx_emit *e, value *out) {
    onnx_import *in = c->in;
    value *args = tare__arena_array(&c->scratch, e->arg_count + 1, sizeof *args);
    keyword *kwargs = tare__arena_array(&c->scratch, e->kwarg_count + 1, sizeof *kwargs);
    if (args == NULL || kwargs == NULL) return tare__out_of_memory(in->err);
    for (size_t i = 0; i < e->arg_count; i++) TARE_TRY(materialize(c, &e->args[i], &args[i]));
    for (size_t i = 0; i < e->kwarg_count; i++) {
        kwargs[i].name = e->kwargs[i].name;
        TARE_TRY(materialize(c, &e->kwargs[i].value, &kwargs[i].value));
    }
    const node_spec spec = {.op = op,
                            .target = op == NODE_CALL_FUNCTION ? tare__function_canonical(e->target)
                                                               : e->target,
                            .args = args,
                            .arg_count = e->arg_count,
                            .kwargs = kwargs,
                            .kwarg_count = e->kwarg_count};
    node *n = NULL;
    TARE_TRY(tare__graph_insert(in->draft, &spec, NULL, &n, in->err));
    TARE_TRY(tare__onnx_add_info(in, n, c->scope, c->node->name != NULL ? c->node->name : ""));
    TARE_TRY(tare__onnx_infer(in, n));
    note_one_batch(in, e, n);
    *out = tare__node_value(n);
    return TARE_OK;
}

// --- joining with the batch ---

// The first item of a list whose dimension 0 is the batch; NULL if there is none.
static const value *find_batched(const onnx_import *in, const value *list) {
    for (uint32_t i = 0; i < list->count; i++) {
        const value *v = &list->as.items[i];
        if (v->kind != VALUE_NODE) continue;
        const draft_info *info = &in->info[v->as.node->id];
        if (info->meta.kind != VALUE_TENSOR || info->other.kind != VALUE_TENSOR) continue;
        const tare_tensor *t = info->meta.as.tensor, *other = info->other.as.tensor;
        if (t->ndim > 0 && t->shape[0] == in->batch && other->shape[0] == in->other_batch) return v;
    }
    return NULL;
}

// Repeats a constant for each sample: constant.expand(x.size(0), -1, ..).
static tare_status repeat_constant(onnx_call *c, const value *x, value *constant) {
    const value size_args[] = {*x, tare__int(0)};
    const onnx_emit size = {.target = "size", .args = size_args, .arg_count = 2};
    const int ndim = constant->as.tensor->ndim;
    value args[1 + TARE_MAX_DIMS] = {*constant};
    TARE_TRY(insert_call(c, NODE_CALL_METHOD, &size, &args[1]));
    for (int d = 1; d < ndim; d++) args[1 + d] = tare__int(-1);
    const onnx_emit expand = {.target = "expand", .args = args, .arg_count = 1 + (size_t)ndim};
    return insert_call(c, NODE_CALL_METHOD, &expand, constant);
}

// A model exported for a batch of 1 may concatenate its samples with a constant of one row (a class
// token). The constant is repeated for each sample, so that other batch sizes work, too.
static tare_status repeat_constants(onnx_call *c, const op_info *op, const onnx_emit *e,
                                    value *args) {
    if (e->arg_count > 0) memcpy(args, e->args, e->arg_count * sizeof *args);
    if (c->in->open != NULL || strcmp(op->id, "cat") != 0 || e->arg_count != 2 ||
        c->in->batch != 1 || !tare__value_has_items(&args[0]) || args[1].kind != VALUE_INT ||
        args[1].as.integer == 0)
        return TARE_OK;
    const value *x = find_batched(c->in, &args[0]);
    value list = tare__value_sequence(&c->scratch, args[0].kind, args[0].count);
    if (x == NULL) return TARE_OK;
    if (list.as.items == NULL) return tare__out_of_memory(c->in->err);
    for (uint32_t i = 0; i < list.count; i++) {
        list.as.items[i] = args[0].as.items[i];
        value *v = &list.as.items[i];
        if (v->kind != VALUE_TENSOR || v->as.tensor->ndim == 0 || v->as.tensor->shape[0] != 1)
            continue;
        if (args[1].as.integer == -v->as.tensor->ndim) continue;
        TARE_TRY(repeat_constant(c, x, v));
    }
    args[0] = list;
    return TARE_OK;
}

static bool reads_open(const onnx_import *in, const onnx_emit *e) {
    for (size_t i = 0; i < e->arg_count; i++)
        if (tare__onnx_holds_open(in, &e->args[i])) return true;
    for (size_t i = 0; i < e->kwarg_count; i++)
        if (tare__onnx_holds_open(in, &e->kwargs[i].value)) return true;
    return false;
}

static tare_status emit(onnx_call *c, node_op op, const onnx_emit *e, value *out) {
    if (row_of(op, e->target) == NULL)
        return tare__onnx_fail(c, "it would become '%s', which tare does not have", e->target);
    bool is_folded = false;
    if (is_constant_call(e)) TARE_TRY(fold_call(c->in, op, e, &c->scratch, out, &is_folded));
    if (is_folded && reads_open(c->in, e))
        TARE_TRY(tare__onnx_fold_open(c, row_of(op, e->target), e, out, &is_folded));
    if (is_folded) return TARE_OK;
    onnx_emit fitting = *e;
    value *args = tare__arena_array(&c->scratch, e->arg_count + 1, sizeof *args);
    if (args == NULL) return tare__out_of_memory(c->in->err);
    TARE_TRY(repeat_constants(c, row_of(op, e->target), e, args));
    for (size_t i = 0; i < e->arg_count; i++)
        if (args[i].kind == VALUE_TENSOR) TARE_TRY(tare__onnx_follow_batch(c, &args[i]));
    fitting.args = args;
    return insert_call(c, op, &fitting, out);
}

tare_status tare__onnx_function(onnx_call *c, const onnx_emit *e, value *out) {
    return emit(c, NODE_CALL_FUNCTION, e, out);
}

tare_status tare__onnx_method(onnx_call *c, const onnx_emit *e, value *out) {
    return emit(c, NODE_CALL_METHOD, e, out);
}

tare_status tare__onnx_item(onnx_call *c, const value *tuple, int64_t i, value *out) {
    const value args[] = {*tuple, tare__int(i)};
    const bool is_list = tuple->kind == VALUE_TUPLE || tuple->kind == VALUE_LIST;
    if (is_list && i >= 0 && i < tuple->count) {
        *out = tuple->as.items[i];
        return TARE_OK;
    }
    const onnx_emit e = {.target = "operator.getitem", .args = args, .arg_count = 2};
    return emit(c, NODE_CALL_FUNCTION, &e, out);
}

// --- modules ---

static tare_status fill_module(onnx_call *c, const onnx_module *m, module *made) {
    tare_error *err = c->in->err;
    for (size_t i = 0; i < m->config_count; i++)
        TARE_TRY(tare__module_set_config(made, m->config[i].name, &m->config[i].value, err));
    for (size_t i = 0; i < m->tensor_count; i++)
        TARE_TRY(tare__module_set_tensor(made, m->tensors[i].name, m->tensors[i].value.as.tensor,
                                         true, err));
    if (made->class->check != NULL) TARE_TRY(made->class->check(made, err));
    return TARE_OK;
}

static tare_status bind_module(onnx_call *c, const onnx_module *m, char path[40]) {
    const module_class *class = tare__class_find(c->in->classes, m->class_name);
    if (class == NULL)
        return tare__onnx_fail(c, "it would become a %s, which tare does not have", m->class_name);
    module *made = NULL;
    TARE_TRY(tare__module_create(class, &made, c->in->err));
    snprintf(path, 40, "module_%zu", c->in->module_count++);
    tare_status status = fill_module(c, m, made);
    if (status == TARE_OK) status = tare__module_set_child(c->in->root, path, made, c->in->err);
    tare__module_release(made);
    return status;
}

tare_status tare__onnx_module(onnx_call *c, const onnx_module *m, value *out) {
    char path[40];
    TARE_TRY(bind_module(c, m, path));
    const onnx_emit e = {.target = path, .args = m->args, .arg_count = m->arg_count};
    return insert_call(c, NODE_CALL_MODULE, &e, out);
}
