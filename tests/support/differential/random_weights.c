// SPDX-License-Identifier: Apache-2.0
// Weights, biases and statistics that fit the input of a call, read by get_attr or a module's own.
#include <math.h>
#include <string.h>

#include "support/differential/random_graph.h"

int64_t random_channels(const call_draft *d) {
    const tare_tensor *x = d->x;
    if (x == NULL || x->ndim == 0) return 1;
    if (d->dims > 0 && x->ndim == d->dims + 1) return x->shape[0];
    return x->ndim > 1 ? x->shape[1] : x->shape[0];
}

// One that divides the channels: one, two, or all of them.
bool random_groups(call_draft *d) {
    const int64_t channels = random_channels(d);
    const uint32_t way = choose(d->g->choices, 4);
    d->groups = way == 0 ? channels : way == 1 && channels % 2 == 0 ? 2 : 1;
    return d->groups > 0;
}

static bool give_tensor(call_draft *d, const char *name, int ndim, const int64_t *shape,
                        value *out) {
    return random_constant(d, name, random_tensor(d->g, TARE_FLOAT32, ndim, shape), out);
}

static const value *config_of(const call_draft *d, const char *key) {
    return d->module != NULL ? tare__module_config(d->module, key) : NULL;
}

static int64_t config_int(const call_draft *d, const char *key, int64_t otherwise) {
    return config_of(d, key) != NULL ? tare__module_int(d->module, key, otherwise) : otherwise;
}

static bool is_transposed(const call_draft *d) {
    return strstr(d->id, "transpose") != NULL;
}

static bool make_conv_weight(call_draft *d, value *out) {
    const int dims = d->dims > 0 ? d->dims : 2;
    const int64_t in = random_channels(d);
    int64_t shape[5], kernel[3], outputs = 1 + choose(d->g->choices, 20);
    if (d->module != NULL)
        d->groups = config_int(d, "groups", 1);
    else if (!random_groups(d))
        return false;
    if (d->module == NULL && outputs % d->groups != 0)
        outputs = d->groups * (1 + choose(d->g->choices, 2));
    outputs = config_int(d, "out_channels", outputs);
    if (d->groups < 1 || in % d->groups != 0 || outputs % d->groups != 0) return false;
    for (int i = 0; i < dims; i++) kernel[i] = 1 + choose(d->g->choices, 3);
    if (d->module != NULL && !tare__module_ints(d->module, "kernel_size", (size_t)dims, kernel))
        return false;
    shape[0] = is_transposed(d) ? in : outputs;
    shape[1] = (is_transposed(d) ? outputs : in) / d->groups;
    memcpy(shape + 2, kernel, (size_t)dims * sizeof *kernel);
    return give_tensor(d, "weight", dims + 2, shape, out);
}

bool random_weight(call_draft *d, value *out) {
    const tare_tensor *x = d->x;
    int64_t channels = random_channels(d);
    if (tare__starts_with(d->id, "embedding")) {
        const int64_t shape[] = {config_int(d, "num_embeddings", 5),
                                 config_int(d, "embedding_dim", 4)};
        return give_tensor(d, "weight", 2, shape, out);
    }
    if (x == NULL || x->ndim == 0) return false;
    if (tare__starts_with(d->id, "conv") || tare__starts_with(d->id, "integer_conv"))
        return make_conv_weight(d, out);
    if (tare__starts_with(d->id, "linear") || tare__starts_with(d->id, "integer_linear")) {
        const int64_t shape[] = {config_int(d, "out_features", 1 + choose(d->g->choices, 20)),
                                 x->shape[x->ndim - 1]};
        return give_tensor(d, "weight", 2, shape, out);
    }
    if (strstr(d->id, "layer_norm") != NULL || strstr(d->id, "rms_norm") != NULL)
        return give_tensor(d, "weight", d->normalized, x->shape + x->ndim - d->normalized, out);
    if (strstr(d->id, "prelu") != NULL && choose(d->g->choices, 2) == 0) channels = 1;
    channels = config_int(d, "num_parameters", channels);
    return give_tensor(d, "weight", 1, &channels, out);
}

// As long as the weight gives outputs; where there is none, as there are channels.
bool random_bias(call_draft *d, value *out) {
    const tare_tensor *weight = d->module != NULL ? tare__module_tensor(d->module, "weight") : NULL;
    int64_t outputs = random_channels(d);
    if (weight == NULL && d->module == NULL && d->g->count > 0) {
        const drawn_value *last = &d->g->values[d->g->count - 1];
        if (last->node->op == NODE_GET_ATTR) weight = last->value.as.tensor;
    }
    if (strstr(d->id, "layer_norm") != NULL && d->x != NULL)
        return give_tensor(d, "bias", d->normalized, d->x->shape + d->x->ndim - d->normalized, out);
    if (weight != NULL && (d->op->traits & OP_WEIGHTED))
        outputs = is_transposed(d) ? weight->shape[1] * d->groups : weight->shape[0];
    return give_tensor(d, "bias", 1, &outputs, out);
}

bool random_mean(call_draft *d, value *out) {
    const int64_t channels = random_channels(d);
    return give_tensor(d, "running_mean", 1, &channels, out);
}

bool random_variance(call_draft *d, value *out) {
    const int64_t channels = random_channels(d);
    tare_tensor *t = random_tensor(d->g, TARE_FLOAT32, 1, &channels);
    for (int64_t i = 0; t != NULL && i < t->count; i++)
        tare__tensor_set(t, i, fabs(tare__tensor_get(t, i)) + 0.25);
    return random_constant(d, "running_var", t, out);
}
