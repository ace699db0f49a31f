// SPDX-License-Identifier: Apache-2.0
// The fast way of integer linear and convolution modules: a plan, with packed weights, per input
// shape and parameters seen.
#include <string.h>

#include "core/alloc.h"
#include "runtime/fast.h"
#include "runtime/kernels/qconv.h"
#include "runtime/kernels/qdepthwise.h"
#include "runtime/kernels/qlinear.h"

enum { MOST_PLANS = 4 }; // of one node; more shapes than that in turn are planned anew

typedef struct layer_plan {
    struct layer_plan *next;
    int ndim;
    int64_t shape[TARE_MAX_DIMS]; // of the input; the first one is free
    const qparams *in, *out;
    const module *layer; // a function's packed weights may be others at its next call
    bool adds;
    qconv_plan *conv; // all NULL: no kernel covers the layer
    qdepthwise_plan *depthwise;
    qlinear_plan *linear;
} layer_plan;

static void destroy_plan(layer_plan *plan) {
    if (plan == NULL) return;
    tare__qconv_plan_destroy(plan->conv);
    tare__qdepthwise_plan_destroy(plan->depthwise);
    tare__qlinear_plan_destroy(plan->linear);
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

static bool is_linear(const op_call *call) {
    return strcmp(tare__call_layer_module(call)->class->op, "linear") == 0;
}

static bool is_layer(const op_call *call) {
    const module *m = tare__call_layer_module(call);
    if (m == NULL || m->class->op == NULL ||
        (m->class->role != ROLE_QUANTIZED && m->class->role != ROLE_PACKED))
        return false;
    const tare_tensor *x = tare__call_layer_input(call);
    if (call->result.kind != VALUE_TENSOR || x == NULL || x->q == NULL) return false; // dynamic
    return strcmp(m->class->op, "linear") == 0 || strcmp(m->class->op, "conv") == 0;
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
    const tare_tensor *x = tare__call_layer_input(call), *y = call->result.as.tensor;
    TARE_TRY(tare__call_layer_read(call, &layer));
    // Without a batch dimension the first size is the channels'; such inputs are rare.
    if (!is_linear(call) && x->ndim != layer.conv.dims + 2) return TARE_OK;
    if (is_linear(call))
        return tare__qlinear_plan_create(&layer, x, y, isa, &plan->linear, call->err);
    TARE_TRY(tare__qdepthwise_plan_create(&layer, x, y, isa, &plan->depthwise, call->err));
    if (plan->depthwise != NULL) return TARE_OK;
    plan->adds = layer.adds;
    return tare__qconv_plan_create(&layer, x, y, isa, &plan->conv, call->err);
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
    *handled = plan->conv != NULL || plan->depthwise != NULL || plan->linear != NULL;
    const tare_tensor *addend = plan->adds ? tare__call_layer_addend(call) : NULL;
    if (plan->conv != NULL)
        return tare__qconv_run(plan->conv, x, addend, y, &context->space, call->err);
    if (plan->depthwise != NULL)
        return tare__qdepthwise_run(plan->depthwise, x, y, &context->space, call->err);
    if (plan->linear != NULL)
        return tare__qlinear_run(plan->linear, x, y, &context->space, call->err);
    return TARE_OK;
}

const fast_path tare__fast_layer = {"layer", is_layer, run_layer, destroy_plans};
