// SPDX-License-Identifier: Apache-2.0
// Folding a batch norm into the weighted module before it.
#include "quant/fold.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/tensor.h"

typedef struct fold {
    const module *weighted, *bn;
    int64_t channels;
    int channel_axis;     // of the weight: 0, but 1 for transposed convolutions
    bool is_linear;       // torch associates the two products differently there
    float *scale, *shift; // [channels]; W' = W * scale, b' = shift
} fold;

static float element(const tare_tensor *t, int64_t i, float otherwise) {
    return t == NULL ? otherwise : tare__f32(t)[t->count == 1 ? 0 : i];
}

static tare_status check(const fold *f, tare_error *err) {
    static const char *const names[] = {"running_mean", "running_var", "weight", "bias"};
    for (size_t i = 0; i < 4; i++) {
        const tare_tensor *t = tare__module_tensor(f->bn, names[i]);
        if (t == NULL && i < 2)
            return tare__fail(err, TARE_INVALID_ARGUMENT,
                              "cannot fold %s: expected a tensor '%s', found none",
                              f->bn->class->name, names[i]);
        if (t != NULL && (t->dtype != TARE_FLOAT32 || (t->count != f->channels && t->count != 1)))
            return tare__fail(err, TARE_INVALID_ARGUMENT,
                              "cannot fold %s: expected %lld float32 values in '%s', found %lld %s",
                              f->bn->class->name, (long long)f->channels, names[i],
                              (long long)t->count, tare_dtype_name(t->dtype));
    }
    return TARE_OK;
}

static void compute(const fold *f) {
    const tare_tensor *mean = tare__module_tensor(f->bn, "running_mean");
    const tare_tensor *var = tare__module_tensor(f->bn, "running_var");
    const tare_tensor *gamma = tare__module_tensor(f->bn, "weight");
    const tare_tensor *beta = tare__module_tensor(f->bn, "bias");
    const tare_tensor *bias = tare__module_tensor(f->weighted, "bias");
    const float eps = (float)tare__module_double(f->bn, "eps", 1e-5);
    for (int64_t c = 0; c < f->channels; c++) {
        const float r = 1.0f / sqrtf(element(var, c, 1.0f) + eps);
        const float g = element(gamma, c, 1.0f);
        const float centred = element(bias, c, 0.0f) - element(mean, c, 0.0f);
        f->scale[c] = g * r;
        const float scaled = f->is_linear ? centred * f->scale[c] : (centred * r) * g;
        f->shift[c] = scaled + element(beta, c, 0.0f);
    }
}

static void scale_weight(const fold *f, const tare_tensor *from, tare_tensor *to) {
    int64_t inner = 1;
    for (int d = f->channel_axis + 1; d < from->ndim; d++) inner *= from->shape[d];
    const float *w = tare__f32(from);
    float *out = tare__f32(to);
    for (int64_t start = 0, c = 0; start < from->count; start += inner, c = (c + 1) % f->channels)
        for (int64_t i = start; i < start + inner; i++) out[i] = w[i] * f->scale[c];
}

static tare_status install(const fold *f, const tare_tensor *weight, module *made,
                           tare_error *err) {
    tare_tensor *scaled = NULL, *bias = NULL;
    tare_status status =
        tare_tensor_create(TARE_FLOAT32, weight->ndim, weight->shape, &scaled, err);
    if (status == TARE_OK) {
        scale_weight(f, weight, scaled);
        tare__tensor_forget(weight);
        status = tare_tensor_from_data(TARE_FLOAT32, 1, &f->channels, f->shift, &bias, err);
    }
    if (status == TARE_OK) status = tare__module_set_tensor(made, "weight", scaled, true, err);
    if (status == TARE_OK) status = tare__module_set_tensor(made, "bias", bias, true, err);
    tare_tensor_release(scaled);
    tare_tensor_release(bias);
    return status;
}

tare_status tare__fold_batch_norm(const module *weighted, const module *bn, module **out,
                                  tare_error *err) {
    const tare_tensor *weight = tare__module_tensor(weighted, "weight");
    const bool is_transposed = strcmp(weighted->class->op, "conv_transpose") == 0;
    if (weight == NULL || weight->dtype != TARE_FLOAT32 || weight->ndim <= (is_transposed ? 1 : 0))
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "cannot fold into %s: it has no float32 weight", weighted->class->name);
    fold f = {.weighted = weighted, .bn = bn, .channel_axis = is_transposed ? 1 : 0};
    f.channels = weight->shape[f.channel_axis];
    f.is_linear = strcmp(weighted->class->op, "linear") == 0;
    TARE_TRY(check(&f, err));
    f.scale = tare__alloc_zeroed((size_t)f.channels + 1, 2 * sizeof *f.scale);
    if (f.scale == NULL) return tare__out_of_memory(err);
    f.shift = f.scale + f.channels;
    compute(&f);
    module *made = NULL;
    tare_status status = tare__module_clone(weighted, &made, err);
    if (status == TARE_OK) status = install(&f, weight, made, err);
    tare__free(f.scale);
    if (status == TARE_OK)
        *out = made;
    else
        tare__module_release(made);
    return status;
}
