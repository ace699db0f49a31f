// SPDX-License-Identifier: Apache-2.0
// Recurrent modules and functions: gate functions are vectorized, and weights are packed once.
// Dynamically quantized products use the packed layers of linear layers. Float products have one
// row per sample and use gemm/floats/panels.h, which threads share.
#include <stdio.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "ops/classes/recurrent.h"
#include "ops/quantized/engine_rules.h"
#include "runtime/gemm/dynamic_product.h"
#include "runtime/gemm/floats/panels.h"
#include "runtime/plan/records.h"
#include "runtime/steps/call.h"
#include "runtime/steps/steps.h"

enum { NAME_SIZE = 80 };

// The product of one weight with the input or with the hidden state.
typedef struct packed_gate {
    struct packed_gate *next;
    char suffix[NAME_SIZE / 2];
    bool of_hidden;
    // Of quantized values:
    dynamic_weights w;
    qlayer *layer; // NULL: no kernel supports it
    // Of floats:
    panel_weights *panels;
    float *bias; // of all panels
} packed_gate;

typedef struct recurrent_step {
    call_step base;
    packed_gate *gates; // created at the first run
    scratch memory;     // for quantized inputs
} recurrent_step;

static void free_gate(packed_gate *g) {
    tare__qlayer_destroy(g->layer);
    tare__panel_weights_release(g->panels);
    tare__free(g->bias);
    tare__free(g);
}

static void destroy(void *state) {
    recurrent_step *s = state;
    for (packed_gate *g = s->gates, *next; g != NULL; g = next) {
        next = g->next;
        free_gate(g);
    }
    tare__scratch_release(&s->memory);
}

static bool is_dynamic(const op_call *call) {
    const module *m = call->module;
    return m != NULL && m->class->role == ROLE_DYNAMIC &&
           OP_IS_ANY(tare__class_op(m->class), TARE_OP_LSTM, TARE_OP_GRU, TARE_OP_LSTM_CELL,
                     TARE_OP_GRU_CELL, TARE_OP_RNN_CELL);
}

// --- products ---

typedef struct recurrent_run {
    const kernel_context *kernels;
    recurrent_step *step;
    op_call *call;
} recurrent_run;

static tare_status pack(const recurrent_run *r, packed_gate *g) {
    const module *m = r->call->module;
    TARE_TRY(tare__dynamic_gate_read(m, g->suffix, g->of_hidden, &g->w, r->call->err));
    const tare_tensor *w = g->w.weight;
    if (w->dtype != TARE_QINT8 || tare__has_zero_points(w) || w->shape[1] == 0) return TARE_OK;
    tare_tensor *y = NULL; // shaped like a product's result
    const int64_t shape[] = {1, w->shape[0]};
    TARE_TRY(tare__tensor_meta(TARE_FLOAT32, 2, shape, NULL, &y, r->call->err));
    const tare_status status =
        tare__dynamic_pack(m, &g->w, y, r->kernels->isa, &g->layer, r->call->err);
    tare_tensor_release(y);
    return status;
}

static tare_status refuse(const recurrent_run *r, const gate_request *request) {
    return tare__call_fail(r->call, "the weights '%s' do not fit the module", request->suffix);
}

static const tare_tensor *tensor_of(const recurrent_run *r, const packed_gate *g,
                                    const char *kind) {
    char name[NAME_SIZE];
    snprintf(name, sizeof name, "%s_%s%s", kind, g->of_hidden ? "hh" : "ih", g->suffix);
    return tare__module_tensor(r->call->module, name);
}

static tare_status pack_floats(const recurrent_run *r, const gate_request *request,
                               packed_gate *g) {
    const tare_tensor *w = tensor_of(r, g, "weight"), *bias = tensor_of(r, g, "bias");
    if (w == NULL || w->dtype != TARE_FLOAT32 || w->ndim != 2 || w->shape[0] != request->width ||
        w->shape[1] != request->inner ||
        (bias != NULL && (bias->dtype != TARE_FLOAT32 || bias->count != request->width)))
        return refuse(r, request);
    TARE_TRY(tare__panel_weights_get(w, &g->panels, r->call->err));
    g->bias = tare__alloc_zeroed(tare__panel_bias_count(g->panels), sizeof *g->bias);
    if (g->bias == NULL) return tare__out_of_memory(r->call->err);
    if (bias != NULL) memcpy(g->bias, tare__f32(bias), (size_t)bias->count * sizeof *g->bias);
    return TARE_OK;
}

static tare_status find_gate(const recurrent_run *r, const gate_request *request,
                             packed_gate **out) {
    packed_gate *g = r->step->gates;
    while (g != NULL &&
           (g->of_hidden != request->of_hidden || strcmp(g->suffix, request->suffix) != 0))
        g = g->next;
    *out = g;
    if (g != NULL) return TARE_OK;
    g = tare__alloc_zeroed(1, sizeof *g);
    if (g == NULL) return tare__out_of_memory(r->call->err);
    snprintf(g->suffix, sizeof g->suffix, "%s", request->suffix);
    g->of_hidden = request->of_hidden;
    const tare_status status = is_dynamic(r->call) ? pack(r, g) : pack_floats(r, request, g);
    if (status != TARE_OK) {
        free_gate(g);
        return status;
    }
    g->next = r->step->gates;
    r->step->gates = *out = g;
    return TARE_OK;
}

static tare_status gate_product(void *user, const gate_request *request) {
    const recurrent_run *r = user;
    packed_gate *g;
    TARE_TRY(find_gate(r, request, &g));
    if (g->w.weight->shape[0] != request->width || g->w.weight->shape[1] != request->inner)
        return refuse(r, request);
    const dynamic_product product = {.layer = g->layer,
                                     .w = &g->w,
                                     .x = request->x,
                                     .rows = (size_t)request->rows,
                                     .y = request->y};
    if (g->layer != NULL && request->rows > 0)
        return tare__dynamic_product_run(r->kernels, &r->step->memory, &product, r->call->err);
    dynamic_operand operand = {0}; // float16 weights, and layers without a kernel
    tare_status status = tare__dynamic_operand_create(&g->w, &operand, r->call->err);
    if (status == TARE_OK)
        status = tare__dynamic_multiply(r->call, &operand, request->x, request->rows, request->y);
    tare__dynamic_operand_release(&operand);
    return status;
}

// --- of floats ---

static tare_status float_product_of(void *user, const gate_request *request) {
    const recurrent_run *r = user;
    packed_gate *g;
    TARE_TRY(find_gate(r, request, &g));
    const panel_weights *w = g->panels;
    if ((int64_t)w->columns != request->width || (int64_t)w->inner != request->inner)
        return refuse(r, request);
    const panel_product product = {.functions = &r->kernels->rows->functions,
                                   .weights = w,
                                   .bias = g->bias,
                                   .rows = (size_t)request->rows,
                                   .x = request->x,
                                   .y = request->y};
    tare__panels_multiply(&product, r->kernels->space.pool);
    return TARE_OK;
}

// --- the step ---

static tare_status compute(const plan_run_state *run, call_step *base, op_call *call) {
    recurrent_run r = {run->kernels, (recurrent_step *)base, call};
    const element_loop *functions = run->kernels->rows->elements;
    if (call->module == NULL)
        return tare__recurrent_compute(call, functions); // the module holds the weights
    const gate_source source = {.user = &r,
                                .product = is_dynamic(call) ? gate_product : float_product_of,
                                .functions = functions};
    return tare__recurrent_run(call, &source);
}

static tare_status run_recurrent(const plan_run_state *run, void *state) {
    return tare__call_step_run(run, state, compute);
}

// A library multiplies by float16 weights, and by weights that are arguments.
static void describe(const plan *p, const void *state, step_note *out) {
    const recurrent_step *s = state;
    const module *m = s->base.call.module;
    out->bits_may_differ = p->setting.layers != NULL && s->base.result_count > 0 &&
                           s->base.results[0]->dtype == TARE_FLOAT32 &&
                           (m == NULL || tare__module_has_halves(m));
}

static bool heads(const plan_builder *b, const plan_record *r) {
    return b->setting->kernels != NULL && !r->is_observer &&
           !tare__value_is_empty(&r->call.result) &&
           (is_dynamic(&r->call) || tare__recurrent_is_float(&r->call));
}

static tare_status plan_call(plan_builder *b, size_t head, bool *done) {
    recurrent_step *s = tare__arena_alloc(&b->plan->memory, sizeof *s);
    if (s == NULL) return tare__out_of_memory(b->err);
    *s = (recurrent_step){0};
    *done = true;
    return tare__plan_call_step(b, head, &tare__recurrent_step, &s->base);
}

const step_class tare__recurrent_step = {
    .name = "recurrent",
    .heads = heads,
    .plan = plan_call,
    .run = run_recurrent,
    .destroy = destroy,
    .describe = describe,
};
