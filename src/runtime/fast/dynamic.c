// SPDX-License-Identifier: Apache-2.0
// The fast way of linear layers that quantize their input on the fly: weights packed once, the
// input's codes and its parameters in every run.
#include <string.h>

#include "core/memory/alloc.h"
#include "ops/quantized/dynamic.h"
#include "ops/quantized/engine_rules.h"
#include "runtime/fast/fast.h"
#include "runtime/gemm/qlayer.h"

typedef struct dynamic_state {
    const module *layer; // that the plan was made of
    qlayer *packed;      // NULL: no kernel covers it
} dynamic_state;

static void destroy(void *state) {
    dynamic_state *s = state;
    if (s == NULL) return;
    tare__qlayer_destroy(s->packed);
    tare__free(s);
}

static const module *layer_of(const op_call *call) {
    const module *m = tare__call_layer_module(call);
    const bool fits = m != NULL && tare__class_op(m->class) == TARE_OP_LINEAR &&
                      (m->class->role == ROLE_DYNAMIC || m->class->role == ROLE_PACKED);
    return fits ? m : NULL;
}

static bool is_dynamic(const op_call *call) {
    const tare_tensor *x = tare__call_layer_input(call);
    return layer_of(call) != NULL && call->result.kind == VALUE_TENSOR &&
           call->result.as.tensor->dtype == TARE_FLOAT32 && x != NULL && x->dtype == TARE_FLOAT32;
}

// Any parameters do: each run sets its own.
tare_status tare__dynamic_pack(const module *m, const dynamic_weights *w, const tare_tensor *y,
                               isa_level isa, struct qlayer **out, tare_error *err) {
    const quantized_layer layer = {.module = m,
                                   .weight = w->weight,
                                   .bias = w->bias,
                                   .out_channels = w->weight->shape[0],
                                   .rule = REQUANT_O,
                                   .is_plain = true,
                                   .gives_floats = true};
    const int64_t shape[] = {1, w->weight->shape[1]};
    tare_tensor *x = NULL;
    const qparams *q = tare__qparams_per_tensor(TARE_QUINT8, 1, 0);
    *out = NULL;
    if (q == NULL) return tare__out_of_memory(err);
    tare_status status = tare__tensor_meta(TARE_QUINT8, 2, shape, q, &x, err);
    if (status == TARE_OK) status = tare__qlayer_create(&layer, x, y, isa, out, err);
    tare_tensor_release(x);
    tare__qparams_release(q);
    return status;
}

static tare_status prepare(fast_context *context, void **state, const dynamic_weights *w,
                           op_call *call, dynamic_state **out) {
    dynamic_state *s = *state;
    if (s == NULL) *state = s = tare__alloc_zeroed(1, sizeof *s);
    if (s == NULL) return tare__out_of_memory(call->err);
    *out = s;
    if (s->layer == layer_of(call)) return TARE_OK;
    tare__qlayer_destroy(s->packed);
    s->packed = NULL;
    s->layer = NULL;
    const bool fits = w->weight->dtype == TARE_QINT8 && !tare__has_zero_points(w->weight) &&
                      w->weight->shape[1] > 0;
    const module *layer = layer_of(call);
    if (fits)
        TARE_TRY(tare__dynamic_pack(layer, w, tare__call_out(call), context->isa, &s->packed,
                                    call->err));
    s->layer = layer;
    return TARE_OK;
}

// NaNs are left out, but for the first number, as in the reference.
void tare__dynamic_range(const scan_kernels *k, const float *x, size_t count, float *min,
                         float *max) {
    bool has_nan = false;
    k->extremes(x, count, min, max, &has_nan);
    if (!has_nan) return;
    *min = *max = x[0];
    for (size_t i = 1; i < count; i++) {
        *min = x[i] < *min ? x[i] : *min;
        *max = x[i] > *max ? x[i] : *max;
    }
}

code_scheme tare__dynamic_scheme(const dynamic_weights *w, float min, float max, double *scale) {
    int32_t least, most;
    tare__dynamic_bounds(w, &least, &most);
    const dynamic_qparams q = tare__dynamic_choose(w, min, max);
    const int32_t shift = least < 0 ? 128 : 0;
    *scale = q.scale;
    return (code_scheme){.scale = (float)q.scale,
                         .inverse = tare__inverse_scale(q.scale),
                         .zero_point = q.zero_point + shift,
                         .least = least + shift,
                         .most = most + shift};
}

tare_status tare__dynamic_product_run(fast_context *context, const dynamic_product *p,
                                      tare_error *err) {
    const size_t count = p->rows * (size_t)p->w->weight->shape[1];
    const size_t code_bytes = tare__round_up(count, 64);
    const size_t threads = tare__thread_count(context->space.pool);
    uint8_t *codes = tare__scratch_reserve(
        &context->space.memory, code_bytes + tare__qlayer_scratch_bytes(p->layer, threads));
    float min, max;
    double scale;
    if (codes == NULL) return tare__out_of_memory(err);
    tare__dynamic_range(tare__scan_choose(context->isa), p->x, count, &min, &max);
    const code_scheme scheme = tare__dynamic_scheme(p->w, min, max, &scale);
    context->elementwise->quantize(&scheme, p->x, count, codes);
    tare__qlayer_set_input(p->layer, p->w->weight->q, scale, scheme.zero_point);
    const qlayer_run of_layer = {.batch = p->rows,
                                 .x = codes,
                                 .real = p->y,
                                 .fuses = p->w->rule == REQUANT_F,
                                 .scratch = codes + code_bytes,
                                 .space = &context->space};
    tare__qlayer_run(p->layer, &of_layer);
    return TARE_OK;
}

static tare_status run(fast_context *context, void **state, op_call *call, bool *handled) {
    const tare_tensor *x = tare__call_layer_input(call);
    tare_tensor *y = tare__call_out(call);
    dynamic_weights w;
    dynamic_state *s = NULL;
    bool relu;
    TARE_TRY(tare__dynamic_linear_read(call, &w, &relu));
    if (x->count == 0) return TARE_OK;
    TARE_TRY(prepare(context, state, &w, call, &s));
    if (s->packed == NULL) return TARE_OK;
    const dynamic_product product = {.layer = s->packed,
                                     .w = &w,
                                     .x = tare__f32(x),
                                     .rows = (size_t)(x->count / w.weight->shape[1]),
                                     .y = tare__f32(y)};
    TARE_TRY(tare__dynamic_product_run(context, &product, call->err));
    float *values = tare__f32(y);
    for (int64_t i = 0; relu && i < y->count; i++) values[i] = values[i] < 0 ? 0.0F : values[i];
    *handled = true;
    return TARE_OK;
}

const fast_path tare__fast_dynamic = {"dynamic", is_dynamic, run, destroy};
