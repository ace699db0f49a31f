// SPDX-License-Identifier: Apache-2.0
// build: -O3
// Folding a batch norm into the weighted module before it.
#include "flow/fold.h"

#include <math.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/tensor/tensor.h"
#include "ops/op.h"

typedef struct fold {
    const norm_fold_values *values;
    int64_t channels;
    int64_t group_inputs, group_channels; // of one group of a transposed convolution
    int channel_axis;     // of the weight
    float *scale, *shift; // [channels]; W' = W * scale, b' = shift
} fold;

static float element(const tare_tensor *t, int64_t i, float otherwise) {
    return t == NULL ? otherwise : tare__f32(t)[t->count == 1 ? 0 : i];
}

static tare_status check(const fold *f, tare_error *err) {
    const norm_fold_values *v = f->values;
    const struct {
        const char *name;
        const tare_tensor *t;
    } tensors[] = {{"running_mean", v->mean},
                   {"running_var", v->var},
                   {"weight", v->gamma},
                   {"bias", v->beta}};
    for (size_t i = 0; i < 4; i++) {
        const tare_tensor *t = tensors[i].t;
        if (t == NULL && i < 2)
            return tare__fail(err, TARE_INVALID_ARGUMENT,
                              "cannot fold %s: expected a tensor '%s', found none", v->norm,
                              tensors[i].name);
        if (t != NULL && (t->dtype != TARE_FLOAT32 || (t->count != f->channels && t->count != 1)))
            return tare__fail(err, TARE_INVALID_ARGUMENT,
                              "cannot fold %s: expected %lld float32 values in '%s', found %lld %s",
                              v->norm, (long long)f->channels, tensors[i].name, (long long)t->count,
                              tare_dtype_name(t->dtype));
    }
    return TARE_OK;
}

static void compute(const fold *f) {
    const norm_fold_values *v = f->values;
    const float eps = (float)v->eps;
    for (int64_t c = 0; c < f->channels; c++) {
        const float r = 1.0f / sqrtf(element(v->var, c, 1.0f) + eps);
        const float g = element(v->gamma, c, 1.0f);
        const float centred = element(v->bias, c, 0.0f) - element(v->mean, c, 0.0f);
        f->scale[c] = g * r;
        // torch multiplies in another order for linear layers.
        const float scaled = v->is_linear ? centred * f->scale[c] : (centred * r) * g;
        f->shift[c] = scaled + element(v->beta, c, 0.0f);
    }
}

static void scale_channel(const float *restrict from, int64_t count, float scale,
                          float *restrict to) {
    for (int64_t i = 0; i < count; i++) to[i] = from[i] * scale;
}

// The output channel of row i of the weight: one element of the dimensions up to the channels'.
static int64_t channel_of(const fold *f, int64_t i) {
    if (f->channel_axis == 0) return i;
    const int64_t group = i / f->group_channels / f->group_inputs;
    return group * f->group_channels + i % f->group_channels;
}

static void scale_weight(const fold *f, tare_tensor *to) {
    const tare_tensor *from = f->values->weight;
    int64_t inner = 1;
    for (int d = f->channel_axis + 1; d < from->ndim; d++) inner *= from->shape[d];
    const float *w = tare__f32(from);
    float *out = tare__f32(to);
    for (int64_t start = 0, i = 0; start < from->count; start += inner, i++)
        scale_channel(w + start, inner, f->scale[channel_of(f, i)], out + start);
}

static tare_status make_tensors(const fold *f, tare_tensor **weight, tare_tensor **bias,
                                tare_error *err) {
    const tare_tensor *like = f->values->weight;
    tare_tensor *scaled = NULL;
    TARE_TRY(tare_tensor_create(TARE_FLOAT32, like->ndim, like->shape, &scaled, err));
    scale_weight(f, scaled);
    tare__tensor_forget(like);
    const tare_status status =
        tare_tensor_from_data(TARE_FLOAT32, 1, &f->channels, f->shift, bias, err);
    if (status == TARE_OK)
        *weight = scaled;
    else
        tare_tensor_release(scaled);
    return status;
}

tare_status tare__fold_norm_values(const norm_fold_values *values, tare_tensor **weight,
                                   tare_tensor **bias, tare_error *err) {
    const tare_tensor *w = values->weight;
    fold f = {.values = values, .channel_axis = values->is_transposed ? 1 : 0};
    if (w == NULL || w->dtype != TARE_FLOAT32 || w->ndim <= f.channel_axis)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "cannot fold into %s: it has no float32 weight", values->layer);
    const int64_t groups = values->is_transposed && values->groups > 1 ? values->groups : 1;
    if (w->shape[0] % groups != 0)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "cannot fold into %s: %lld input channels in %lld groups", values->layer,
                          (long long)w->shape[0], (long long)groups);
    f.group_inputs = w->shape[0] / groups;
    f.group_channels = w->shape[f.channel_axis];
    f.channels = w->count > 0 ? f.group_channels * groups : f.group_channels; // at most w->count
    TARE_TRY(check(&f, err));
    f.scale = tare__alloc_zeroed((size_t)f.channels + 1, 2 * sizeof *f.scale);
    if (f.scale == NULL) return tare__out_of_memory(err);
    f.shift = f.scale + f.channels;
    compute(&f);
    const tare_status status = make_tensors(&f, weight, bias, err);
    tare__free(f.scale);
    return status;
}

static tare_status install(module *made, tare_tensor *weight, tare_tensor *bias, tare_error *err) {
    TARE_TRY(tare__module_set_tensor(made, "weight", weight, true, err));
    return tare__module_set_tensor(made, "bias", bias, true, err);
}

tare_status tare__fold_batch_norm(const module *weighted, const module *bn, module **out,
                                  tare_error *err) {
    const norm_fold_values values = {
        .layer = weighted->class->name,
        .norm = bn->class->name,
        .weight = tare__module_tensor(weighted, "weight"),
        .bias = tare__module_tensor(weighted, "bias"),
        .mean = tare__module_tensor(bn, "running_mean"),
        .var = tare__module_tensor(bn, "running_var"),
        .gamma = tare__module_tensor(bn, "weight"),
        .beta = tare__module_tensor(bn, "bias"),
        .eps = tare__module_double(bn, "eps", 1e-5),
        .groups = tare__module_int(weighted, "groups", 1),
        .is_transposed = tare__op_has(tare__class_row(weighted->class), OP_TRANSPOSED),
        .is_linear = tare__class_op(weighted->class) == TARE_OP_LINEAR,
    };
    tare_tensor *weight = NULL, *bias = NULL;
    module *made = NULL;
    TARE_TRY(tare__fold_norm_values(&values, &weight, &bias, err));
    tare_status status = tare__module_clone(weighted, &made, err);
    if (status == TARE_OK) status = install(made, weight, bias, err);
    tare_tensor_release(weight);
    tare_tensor_release(bias);
    return tare__module_hand_out(made, status, out);
}
