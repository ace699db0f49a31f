// SPDX-License-Identifier: Apache-2.0
// The fast way of integer linear and convolution modules where there is no plan: the layer, packed,
// per input shape and parameters seen. Codes are moved to channels last and back.
#include <string.h>

#include "core/memory/alloc.h"
#include "runtime/fast/fast.h"
#include "runtime/gemm/qlayer.h"
#include "runtime/gemm/transpose.h"

enum { MOST_PLANS = 4 }; // of one node; more shapes than that in turn are planned anew

typedef struct layer_plan {
    struct layer_plan *next;
    int ndim;
    int64_t shape[TARE_MAX_DIMS]; // of the input; the first one is free
    const qparams *in, *out;
    const module *layer; // a function's packed weights may be others at its next call
    bool adds, is_linear, has_batch;
    qlayer *packed; // NULL: no kernel covers the layer
} layer_plan;

static void destroy_plan(layer_plan *plan) {
    if (plan == NULL) return;
    tare__qlayer_destroy(plan->packed);
    tare__qparams_release(plan->in);
    tare__qparams_release(plan->out);
    tare__free(plan);
}

static void destroy_plans(void *state) {
    layer_plan *plan = state;
    while (plan != NULL) {
        layer_plan *next = plan->next;
        destroy_plan(plan);
        plan = next;
    }
}

bool tare__fast_layer_is_linear(const op_call *call) {
    return tare__class_op(tare__call_layer_module(call)->class) == TARE_OP_LINEAR;
}

static bool is_layer(const op_call *call) {
    const module *m = tare__call_layer_module(call);
    if (m == NULL || (m->class->role != ROLE_QUANTIZED && m->class->role != ROLE_PACKED))
        return false;
    const tare_tensor *x = tare__call_layer_input(call);
    if (call->result.kind != VALUE_TENSOR || x == NULL || x->q == NULL) return false; // dynamic
    const op_info *op = tare__class_row(m->class);
    return tare__op_id(op) == TARE_OP_LINEAR || tare__op_has(op, OP_CONVOLUTION | OP_TRANSPOSED);
}

static bool fits(const layer_plan *plan, const op_call *call) {
    const tare_tensor *x = tare__call_layer_input(call), *y = call->result.as.tensor;
    if (plan->layer != tare__call_layer_module(call) || plan->ndim != x->ndim) return false;
    for (int d = 1; d < x->ndim; d++)
        if (plan->shape[d] != x->shape[d]) return false;
    return tare__qparams_equal(plan->in, x->q) && tare__qparams_equal(plan->out, y->q);
}

static layer_plan *find_plan(layer_plan *plan, const op_call *call) {
    while (plan != NULL && !fits(plan, call)) plan = plan->next;
    return plan;
}

static tare_status pack(layer_plan *plan, isa_level isa, op_call *call) {
    quantized_layer layer;
    TARE_TRY(tare__call_layer_read(call, &layer));
    plan->adds = layer.adds;
    plan->is_linear = tare__fast_layer_is_linear(call);
    plan->has_batch = tare__call_layer_input(call)->ndim == layer.weight->ndim;
    return tare__qlayer_create(&layer, tare__call_layer_input(call), call->result.as.tensor, isa,
                               &plan->packed, call->err);
}

static void drop_oldest(layer_plan **list) {
    for (int count = 1; *list != NULL; count++, list = &(*list)->next)
        if (count == MOST_PLANS) {
            destroy_plans(*list);
            *list = NULL;
            return;
        }
}

static tare_status make_plan(fast_context *context, layer_plan **list, op_call *call) {
    const tare_tensor *x = tare__call_layer_input(call), *y = call->result.as.tensor;
    layer_plan *plan = tare__alloc_zeroed(1, sizeof *plan);
    if (plan == NULL) return tare__out_of_memory(call->err);
    plan->ndim = x->ndim;
    memcpy(plan->shape, x->shape, sizeof plan->shape);
    plan->in = tare__qparams_retain(x->q);
    plan->out = tare__qparams_retain(y->q);
    plan->layer = tare__call_layer_module(call);
    const tare_status status = pack(plan, context->isa, call);
    if (status != TARE_OK) {
        destroy_plan(plan);
        return status;
    }
    drop_oldest(list);
    plan->next = *list;
    *list = plan;
    return TARE_OK;
}

// To channels last, or back.
static void move_channels(const elementwise_kernels *k, const tare_tensor *t, const void *from,
                          const layer_plan *plan, bool to_last, void *to) {
    const transposition images = tare__channels_moved(t, plan->has_batch, to_last);
    tare__transpose(k, &images, from, to);
}

// Where a run's tensors lie, channels last.
typedef struct moved_tensors {
    unsigned char *x, *addend, *y, *scratch;
} moved_tensors;

static tare_status reserve(fast_context *context, const qlayer *layer, const tare_tensor *x,
                           const tare_tensor *y, moved_tensors *out, tare_error *err) {
    const size_t own = tare__qlayer_scratch_bytes(layer, tare__thread_count(context->space.pool));
    const size_t x_bytes = tare__round_up((size_t)x->count, 64);
    const size_t y_bytes = tare__round_up(tare__tensor_bytes(y), 64);
    unsigned char *memory =
        tare__scratch_reserve(&context->space.memory, own + x_bytes + 2 * y_bytes);
    if (memory == NULL) return tare__out_of_memory(err);
    *out = (moved_tensors){.scratch = memory,
                           .x = memory + own,
                           .y = memory + own + x_bytes,
                           .addend = memory + own + x_bytes + y_bytes};
    return TARE_OK;
}

product_addend tare__value_addend_of(const tare_tensor *t) {
    return (product_addend){.kind = ADDEND_OF_VALUES,
                            .scale = (float)t->q->scale[0],
                            .zero_point = (int32_t)t->q->zero_point[0],
                            .is_signed = t->dtype == TARE_QINT8,
                            .codes = t->data};
}

static size_t batch_of(const layer_plan *plan, const tare_tensor *x, const tare_tensor *y) {
    if (plan->is_linear) return (size_t)(y->count / y->shape[y->ndim - 1]);
    return plan->has_batch ? (size_t)x->shape[0] : 1;
}

// A linear layer's channels are innermost anyway.
static tare_status run_packed(fast_context *context, const layer_plan *plan, const tare_tensor *x,
                              const tare_tensor *other, tare_tensor *y, tare_error *err) {
    moved_tensors at = {0};
    TARE_TRY(reserve(context, plan->packed, x, y, &at, err));
    product_addend addend;
    if (other != NULL) addend = tare__value_addend_of(other);
    const bool is_plain = plan->is_linear;
    const elementwise_kernels *k = context->elementwise;
    void *result = is_plain ? y->data : at.y;
    const qlayer_run run = {.batch = batch_of(plan, x, y),
                            .x = is_plain ? x->data : at.x,
                            .y = y->q != NULL ? result : NULL,
                            .real = y->q != NULL ? NULL : result,
                            .addend = other != NULL ? &addend : NULL,
                            .scratch = at.scratch,
                            .space = &context->space};
    if (!is_plain) move_channels(k, x, x->data, plan, true, at.x);
    if (!is_plain && other != NULL) {
        move_channels(k, other, other->data, plan, true, at.addend);
        addend.codes = at.addend;
    }
    tare__qlayer_run(plan->packed, &run);
    if (!is_plain) move_channels(k, y, at.y, plan, false, y->data);
    return TARE_OK;
}

static tare_status run_layer(fast_context *context, void **state, op_call *call, bool *handled) {
    const tare_tensor *x = tare__call_layer_input(call);
    tare_tensor *y = tare__call_out(call);
    layer_plan *list = *state, *plan = find_plan(list, call);
    if (plan == NULL) {
        const tare_status status = make_plan(context, &list, call);
        *state = list;
        TARE_TRY(status);
        plan = list;
    }
    if (plan->packed == NULL || y->count == 0) return TARE_OK;
    *handled = true;
    const tare_tensor *other = plan->adds ? tare__call_layer_addend(call) : NULL;
    return run_packed(context, plan, x, other, y, call->err);
}

const fast_path tare__fast_layer = {"layer", is_layer, run_layer, destroy_plans};
