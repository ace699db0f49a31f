// SPDX-License-Identifier: Apache-2.0
// Values with a scale per channel, as NNCF writes them for depthwise convolutions. The scales are
// moved into the weights of the layer that computes the values and of those that read them: with
//
//   x[c] = scale[c] * q[c] = (scale[c]
// S) * (S * q[c])
//
// the integers q[c] have the single scale S.
#include <math.h>
#include <string.h>

#include "flow/lower/export/lower.h"
#include "ops/quantized/quantize.h"

enum { MOST_BOUNDS = 2 }; // between the layer and the quantize

typedef struct channel_site {
    lowering *l;
    node *quantize, *bounds[MOST_BOUNDS];
    function_call layer; // that computes the values
    size_t bound_count;
    int64_t count; // number of channels
    const tare_tensor *scales;
    double zero_point, largest; // common to all channels
    tare_dtype dtype;
} channel_site;

// --- a layer's constants ---

static const tare_tensor *constant_of(const lowering *l, const node *n) {
    return n != NULL && n->op == NODE_GET_ATTR
               ? tare__module_find_tensor(l->p->model->root, n->target)
               : NULL;
}

// The integers if they have one scale, or one per output channel; else NULL.
static const tare_tensor *weight_of(const lowering *l, const function_call *w) {
    const node *dequantize = tare__function_argument_node(w, "weight");
    const tare_tensor *t =
        tare__is_dequantize_node(dequantize) ? constant_of(l, tare__node_arg(dequantize, 0)) : NULL;
    if (t == NULL || t->q == NULL || t->ndim < 3) return NULL;
    const bool is_affine = t->q->scheme == TARE_PER_CHANNEL_AFFINE && t->q->axis == 0;
    return t->q->count == 1 || (is_affine && t->q->count == t->shape[0]) ? t : NULL;
}

static bool is_convolution(const lowering *l, node *n, function_call *out) {
    return n != NULL && tare__weighted_bind(&l->p->scratch, n, out) &&
           tare__op_has(out->bound.op, OP_CONVOLUTION) && weight_of(l, out) != NULL;
}

// True if each filter reads one input channel.
static bool is_depthwise(const channel_site *s, node *n, const node *input, function_call *out) {
    if (!is_convolution(s->l, n, out) || tare__function_argument_node(out, "input") != input)
        return false;
    const tare_tensor *weight = weight_of(s->l, out);
    const value *groups = tare__function_argument(out, "groups");
    return groups != NULL && groups->kind == VALUE_INT && groups->as.integer == s->count &&
           weight->shape[1] == 1 && weight->shape[0] % s->count == 0;
}

// --- the pattern ---

// True if the bounds clip no value of any channel, apart from what a ReLU clips.
static bool cuts_nothing(const channel_site *s, const node *bound) {
    const dtype_info *info = tare__dtype(s->dtype);
    function_call w;
    double least = 0, most = INFINITY;
    if (!tare__function_bind(&s->l->p->scratch, (node *)bound, &w) || bound->input_count != 1)
        return false;
    if (tare__op_id(w.bound.op) == TARE_OP_RELU) return true;
    const value *low = tare__function_argument(&w, "min_val");
    const value *high = tare__function_argument(&w, "max_val");
    if (tare__op_id(w.bound.op) == TARE_OP_RELU6)
        most = 6;
    else if (low == NULL || high == NULL || !tare__value_number(low, &least) ||
             !tare__value_number(high, &most))
        return false;
    // The least integer represents 0, or the ReLU, which stays, clips it.
    if (least != 0) return false;
    for (int64_t i = 0; i < s->count; i++) {
        const double end = ((double)info->max - s->zero_point) * tare__tensor_get(s->scales, i);
        if (end > most * (1 + 0x1p-20)) return false;
    }
    return true;
}

static bool find_layer(channel_site *s) {
    node *n = tare__node_arg(s->quantize, 0);
    while (n != NULL && tare__op_has(tare__function_row(n), OP_BOUNDS)) {
        if (tare__only_reader(n) == NULL || s->bound_count == MOST_BOUNDS || !cuts_nothing(s, n))
            return false;
        s->bounds[s->bound_count++] = n;
        n = tare__node_arg(n, 0);
    }
    return n != NULL && tare__only_reader(n) != NULL && is_convolution(s->l, n, &s->layer) &&
           weight_of(s->l, &s->layer)->shape[0] == s->count;
}

static bool has_depthwise_readers(const channel_site *s) {
    for (size_t i = 0; i < s->quantize->user_count; i++) {
        node *dequantize = s->quantize->users[i];
        function_call w;
        if (!tare__is_dequantize_node(dequantize)) return false;
        for (size_t k = 0; k < dequantize->user_count; k++)
            if (!is_depthwise(s, dequantize->users[k], dequantize, &w)) return false;
    }
    return s->quantize->user_count > 0;
}

static bool read_params(channel_site *s) {
    const node *n = s->quantize;
    double axis = 0;
    if (n->arg_count != 5 || n->kwarg_count > 0 || n->args[4].kind != VALUE_DTYPE ||
        !tare__value_number(&n->args[3], &axis) || axis != 1)
        return false;
    const tare_tensor *zeros = constant_of(s->l, tare__node_arg(n, 2));
    s->scales = constant_of(s->l, tare__node_arg(n, 1));
    s->dtype = n->args[4].as.dtype;
    if (s->scales == NULL || zeros == NULL || s->scales->count != zeros->count ||
        s->scales->count < 1 || (s->dtype != TARE_QINT8 && s->dtype != TARE_QUINT8))
        return false;
    s->count = s->scales->count;
    s->zero_point = tare__tensor_get(zeros, 0);
    for (int64_t i = 0; i < s->count; i++) {
        const double scale = tare__tensor_get(s->scales, i);
        if (tare__tensor_get(zeros, i) != s->zero_point || !(scale > 0) || !isfinite(scale))
            return false;
        s->largest = fmax(s->largest, scale);
    }
    return true;
}

// --- what becomes of it ---

static tare_status read_own(lowering *l, const char *base, tare_tensor *t, node *before,
                            node **out) {
    const char *name = NULL;
    TARE_TRY(tare__own_buffer(l, base, t, &name));
    const node_spec spec = {.op = NODE_GET_ATTR, .target = name};
    return tare__graph_insert(before->owner, &spec, before, out, l->p->err);
}

// The weight multiplied by a factor for each output channel: that of channel i is number i / each.
static tare_status scale_weight(lowering *l, const function_call *w, const double *factors,
                                int64_t each) {
    const tare_tensor *weight = weight_of(l, w);
    node *n = w->function, *old = tare__function_argument_node(w, "weight"), *made = NULL;
    const int64_t count = weight->shape[0];
    tare_tensor *t = NULL;
    double *numbers = tare__arena_array(&l->p->scratch, 2 * (size_t)count, sizeof *numbers);
    if (numbers == NULL) return tare__out_of_memory(l->p->err);
    for (int64_t i = 0; i < count; i++) {
        const int64_t k = weight->q->count == 1 ? 0 : i;
        numbers[i] = weight->q->scale[k] * factors[i / each];
        numbers[count + i] = weight->q->zero_point[k];
    }
    qparams *q = tare__qparams_create(TARE_PER_CHANNEL_AFFINE, weight->dtype, 0, count, numbers,
                                      numbers + count);
    if (q == NULL) return tare__out_of_memory(l->p->err);
    tare_status status = tare__qparams_check(q, l->p->err);
    if (status == TARE_OK) status = tare__tensor_requalify(weight, q, &t, l->p->err);
    tare__qparams_release(q);
    if (status == TARE_OK) status = read_own(l, "_quantized_weight_", t, n, &made);
    tare_tensor_release(t);
    TARE_TRY(status);
    TARE_TRY(tare__insert_dequantize(l->p, made, n, &made));
    return tare__node_replace_input(n, old, made, l->p->err);
}

static tare_status scale_bias(lowering *l, const function_call *w, const double *factors) {
    node *n = w->function, *old = tare__function_argument_node(w, "bias"), *made = NULL;
    if (old == NULL) return TARE_OK;
    const tare_tensor *bias = constant_of(l, old);
    tare_tensor *t = NULL;
    TARE_TRY(tare_tensor_create(TARE_FLOAT32, bias->ndim, bias->shape, &t, l->p->err));
    for (int64_t i = 0; i < t->count; i++)
        tare__f32(t)[i] = (float)(tare__tensor_get(bias, i) * factors[i]);
    const tare_status status = read_own(l, "_scaled_bias_", t, n, &made);
    tare_tensor_release(t);
    return status == TARE_OK ? tare__node_replace_input(n, old, made, l->p->err) : status;
}

static bool has_constant_bias(const channel_site *s) {
    const value *v = tare__function_argument(&s->layer, "bias");
    const node *n = tare__function_argument_node(&s->layer, "bias");
    const tare_tensor *bias = constant_of(s->l, n);
    return v == NULL || v->kind == VALUE_NONE ||
           (bias != NULL && bias->dtype == TARE_FLOAT32 && bias->count == s->count);
}

// Scales each reader once. A node whose arguments change moves to the end of its input's list of
// users.
static tare_status scale_readers_of(const channel_site *s, const node *dequantize,
                                    const double *factors) {
    const size_t count = dequantize->user_count;
    node **readers = tare__arena_array(&s->l->p->scratch, count, sizeof *readers);
    if (readers == NULL) return tare__out_of_memory(s->l->p->err);
    memcpy(readers, dequantize->users, count * sizeof *readers);
    for (size_t k = 0; k < count; k++) {
        function_call w;
        if (is_depthwise(s, readers[k], dequantize, &w))
            TARE_TRY(scale_weight(s->l, &w, factors, weight_of(s->l, &w)->shape[0] / s->count));
    }
    return TARE_OK;
}

static tare_status scale_readers(const channel_site *s, const double *factors) {
    for (size_t i = 0; i < s->quantize->user_count; i++)
        TARE_TRY(scale_readers_of(s, s->quantize->users[i], factors));
    return TARE_OK;
}

// Replaces relu6 and similar bounds, which no longer fit the scaled values, by a ReLU.
static tare_status become_relu(const channel_site *s, node *bound) {
    const char *target = tare__arena_strdup(
        &bound->owner->memory, tare__op_function_name(tare__op_row(TARE_OP_RELU)).text);
    const value x = bound->args[0];
    if (target == NULL) return tare__out_of_memory(s->l->p->err);
    bound->target = target;
    return tare__node_set_args(bound, &x, 1, NULL, 0, s->l->p->err);
}

// The record lets comparisons with the original model skip these nodes.
static tare_status note_rescaled(const channel_site *s, const node *n) {
    return TARE_DECIDE(s->l->p, n, "rescaled", "channels",
                       "its weights include the channels' scales of '%s'", s->quantize->name);
}

static tare_status take_scales(const channel_site *s) {
    lowering *l = s->l;
    double *factors = tare__arena_array(&l->p->scratch, (size_t)s->count, sizeof *factors);
    if (factors == NULL) return tare__out_of_memory(l->p->err);
    for (int64_t i = 0; i < s->count; i++) factors[i] = tare__tensor_get(s->scales, i) / s->largest;
    TARE_TRY(scale_readers(s, factors));
    for (int64_t i = 0; i < s->count; i++) factors[i] = 1 / factors[i];
    TARE_TRY(scale_weight(l, &s->layer, factors, 1));
    TARE_TRY(scale_bias(l, &s->layer, factors));
    TARE_TRY(note_rescaled(s, s->layer.function));
    for (size_t i = 0; i < s->bound_count; i++) {
        TARE_TRY(become_relu(s, s->bounds[i]));
        TARE_TRY(note_rescaled(s, s->bounds[i]));
    }
    const value args[] = {s->quantize->args[0], tare__float(s->largest),
                          tare__int((int64_t)s->zero_point), tare__dtype_value(s->dtype)};
    const op_info *op = tare__op_row(TARE_OP_QUANTIZE_PER_TENSOR);
    const char *target =
        tare__arena_strdup(&s->quantize->owner->memory, tare__op_function_name(op).text);
    if (target == NULL) return tare__out_of_memory(l->p->err);
    s->quantize->target = target;
    return tare__node_set_args(s->quantize, args, 4, NULL, 0, l->p->err);
}

tare_status tare__pt2e_lower_channels(lowering *l) {
    for (node *n = l->p->model->root->graph->first; n != NULL; n = n->next) {
        channel_site s = {.l = l, .quantize = n};
        if (tare__function_op(n) != TARE_OP_QUANTIZE_PER_CHANNEL || !read_params(&s) ||
            !find_layer(&s) || !has_constant_bias(&s) || !has_depthwise_readers(&s))
            continue;
        TARE_TRY(tare__at(l->p->err, take_scales(&s), "node '%s'", n->name));
    }
    return TARE_OK;
}
