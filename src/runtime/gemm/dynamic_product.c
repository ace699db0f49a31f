// SPDX-License-Identifier: Apache-2.0
// Dynamically quantized products: weights are packed once; the input's parameters and quantized
// values are computed in every run.
#include "runtime/gemm/dynamic_product.h"

#include "ops/quantized/engine_rules.h"

// The parameters are arbitrary here: each run sets its own.
tare_status tare__dynamic_pack(const module *m, const dynamic_weights *w, const tare_tensor *y,
                               isa_level isa, qlayer **out, tare_error *err) {
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

// NaNs are ignored, except as the first number, as in the reference.
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

quantized_scheme tare__dynamic_scheme(const dynamic_weights *w, float min, float max,
                                      double *scale) {
    int32_t least, most;
    tare__dynamic_bounds(w, &least, &most);
    const dynamic_qparams q = tare__dynamic_choose(w, min, max);
    const int32_t shift = least < 0 ? 128 : 0;
    *scale = q.scale;
    return (quantized_scheme){.scale = (float)q.scale,
                              .inverse = tare__inverse_scale(q.scale),
                              .zero_point = q.zero_point + shift,
                              .least = least + shift,
                              .most = most + shift};
}

tare_status tare__dynamic_product_run(const kernel_context *kernels, scratch *memory,
                                      const dynamic_product *p, tare_error *err) {
    const size_t count = p->rows * (size_t)p->w->weight->shape[1];
    const size_t quantized_bytes = tare__round_up(count, 64);
    const size_t threads = tare__thread_count(kernels->space.pool);
    uint8_t *quantized = tare__scratch_reserve(
        memory, quantized_bytes + tare__qlayer_scratch_bytes(p->layer, threads, p->rows));
    float min, max;
    double scale;
    if (quantized == NULL) return tare__out_of_memory(err);
    tare__dynamic_range(tare__scan_choose(kernels->isa), p->x, count, &min, &max);
    const quantized_scheme scheme = tare__dynamic_scheme(p->w, min, max, &scale);
    kernels->elementwise->quantize(&scheme, p->x, count, quantized);
    tare__qlayer_set_input(p->layer, p->w->weight->q, scale, scheme.zero_point);
    const qlayer_run of_layer = {.batch = p->rows,
                                 .x = quantized,
                                 .real = p->y,
                                 .fuses = p->w->rule == REQUANT_F,
                                 .scratch = quantized + quantized_bytes,
                                 .space = &kernels->space};
    tare__qlayer_run(p->layer, &of_layer);
    return TARE_OK;
}
