// SPDX-License-Identifier: Apache-2.0
// Cross-layer equalization: where values may be scaled by channel without anybody's noticing, their
// channels get scales with which the weights that make them and the weights that read them have
// equal ranges:
//   s[c] = sqrt(range of the producers' channel c / range of the readers' channel c)
// Source: M. Nagel et al., "Data-free quantization through weight equalization and bias correction"
// (2019), section 4.1, for pairs of layers. Here a chain is any set of values that must have one
// scale: operators with f(s x) = s f(x) for s > 0, and sums, tie what they read to what they give,
// so that residual connections and values with several readers are equalized, too.
#include <math.h>
#include <string.h>

#include "core/math/f64.h"
#include "core/memory/alloc.h"
#include "debug/improve/layer_inputs.h"
#include "debug/improve/weight_observers.h"
#include "flow/calibrate/observer_list.h"
#include "ops/op.h"
#include "tare/improve.h"

enum { ROUNDS = 12 };
#define LEAST_SCALE 1e-4
#define MOST_SCALE  1e4

// A set of values with a common scale, represented by a root of the union-find.
typedef struct chain {
    size_t parent;
    bool is_pinned;            // scaling would change a result
    bool is_front, is_last;    // channels are dimension 1, or the last one
    int64_t channels;          // 0: not known yet
    size_t producers, readers; // number of layers
    float *scales;             // [channels], product over all rounds
} chain;

typedef struct equalizing {
    pass base;
    chain *chains;        // by node id
    biased_layer *layers; // by node id; node NULL: none
    size_t id_count;
    size_t count; // number of changed layers
    tare_error *err;
} equalizing;

// --- chains ---

static size_t find(equalizing *e, size_t id) {
    while (e->chains[id].parent != id) {
        e->chains[id].parent = e->chains[e->chains[id].parent].parent;
        id = e->chains[id].parent;
    }
    return id;
}

static chain *chain_of(equalizing *e, const node *n) {
    return &e->chains[find(e, n->id)];
}

static void pin(equalizing *e, const node *n) {
    if (n != NULL) chain_of(e, n)->is_pinned = true;
}

static void set_channels(chain *c, int64_t channels) {
    if (c->channels == 0) c->channels = channels;
    if (c->channels != channels) c->is_pinned = true;
}

static void tie(equalizing *e, const node *a, const node *b) {
    const size_t into = find(e, a->id), from = find(e, b->id);
    chain *x = &e->chains[into];
    const chain *y = &e->chains[from];
    if (into == from) return;
    if (y->channels != 0) set_channels(x, y->channels);
    x->is_pinned = x->is_pinned || y->is_pinned;
    x->is_front = x->is_front || y->is_front;
    x->is_last = x->is_last || y->is_last;
    x->producers += y->producers;
    x->readers += y->readers;
    e->chains[from].parent = into;
}

static void pin_all(equalizing *e, const node *n) {
    pin(e, n);
    for (size_t i = 0; i < n->input_count; i++) pin(e, n->inputs[i]);
}

// Operators of one input with f(a x) = a f(x) for a > 0.
static bool is_homogeneous(op_id id) {
    return OP_IS_ANY(id, TARE_OP_RELU, TARE_OP_LEAKY_RELU, TARE_OP_DROPOUT, TARE_OP_CONTIGUOUS,
                     TARE_OP_CLONE, TARE_OP_IDENTITY);
}

// The same for pooling, where channels are dimension 1.
static bool is_homogeneous_pool(op_id id) {
    return OP_IS_ANY(id, TARE_OP_MAX_POOL1D, TARE_OP_MAX_POOL2D, TARE_OP_AVG_POOL1D,
                     TARE_OP_AVG_POOL2D, TARE_OP_ADAPTIVE_AVG_POOL1D, TARE_OP_ADAPTIVE_AVG_POOL2D);
}

// A sum of two values without a factor. The sum of a value and a stored tensor is pinned, because
// the tensor is not a weight.
static bool is_sum(const node *n, op_id id) {
    return id == TARE_OP_ADD && n->input_count == 2 && n->arg_count == 2 && n->kwarg_count == 0 &&
           tare__node_arg(n, 0) != NULL && tare__node_arg(n, 1) != NULL;
}

static bool is_usable(const equalizing *e, const biased_layer *l) {
    const op_info *op = tare__called_row(e->base.model, l->node);
    const fused_with fused =
        l->module != NULL ? tare__called_module(e->base.model, l->node)->class->fused : FUSED_NONE;
    const tare_tensor *bias = tare__layer_bias(e->base.model, l);
    return tare__layer_weight_fault(e->base.model, l) == NULL &&
           tare__layer_bias_fault(e->base.model, l) == NULL && !tare__op_has(op, OP_TRANSPOSED) &&
           (fused == FUSED_NONE || fused == FUSED_RELU) &&
           (bias == NULL || bias->dtype == TARE_FLOAT32) && l->tensor->ndim >= 2;
}

static int64_t group_count(const equalizing *e, const biased_layer *l) {
    const value *v = NULL;
    if (l->tensor->ndim == 2) return 1;
    if (l->module != NULL) return tare__module_int(l->module, "groups", 1);
    const op_info *op = tare__called_row(e->base.model, l->node);
    const size_t at = tare__op_param_index(op, "groups");
    v = tare__node_kwarg(l->node, "groups");
    if (v == NULL && at < l->node->arg_count) v = &l->node->args[at];
    return v != NULL && v->kind == VALUE_INT ? v->as.integer : 1;
}

static int64_t in_channels(const equalizing *e, const biased_layer *l) {
    return l->tensor->shape[1] * group_count(e, l);
}

static void note_layer(equalizing *e, const biased_layer *l) {
    const node *input = tare__node_arg(l->node, 0);
    chain *made = chain_of(e, l->node);
    const bool is_conv = l->tensor->ndim > 2;
    if (input == NULL || !is_usable(e, l)) {
        pin_all(e, l->node);
        return;
    }
    e->layers[l->node->id] = *l;
    set_channels(made, l->tensor->shape[0]);
    made->producers++;
    made->is_front = made->is_front || is_conv;
    made->is_last = made->is_last || !is_conv;
    chain *read = chain_of(e, input);
    set_channels(read, in_channels(e, l));
    read->readers++;
    read->is_front = read->is_front || is_conv;
    read->is_last = read->is_last || !is_conv;
}

static void note(equalizing *e, node *n) {
    biased_layer l;
    const op_id id = tare__op_id(tare__called_row(e->base.model, n));
    tare__layer_find(e->base.model, n, &l);
    if (l.node != NULL) {
        note_layer(e, &l);
    } else if (tare__is_observer_node(e->base.model, n) && tare__node_arg(n, 0) != NULL) {
        tie(e, n, tare__node_arg(n, 0));
    } else if (is_sum(n, id)) {
        tie(e, n, tare__node_arg(n, 0));
        tie(e, n, tare__node_arg(n, 1));
    } else if ((is_homogeneous(id) || is_homogeneous_pool(id)) && n->input_count == 1) {
        tie(e, n, n->inputs[0]);
        if (is_homogeneous_pool(id)) chain_of(e, n)->is_front = true;
    } else if (n->op == NODE_GET_ATTR && n->user_count > 0) {
        // Weights and biases have chains of their own, which no layer produces.
        if (chain_of(e, n)->channels == 0) pin(e, n);
    } else {
        pin_all(e, n);
    }
}

// An observer with a fixed or shared scale cannot be adapted.
static void pin_fixed(equalizing *e, const node *n) {
    const module *m = tare__called_module(e->base.model, n);
    if (m == NULL || m->class->role != ROLE_OBSERVER || !tare__is_observer_node(e->base.model, n))
        return;
    if (tare__observer_info(m)->has_fixed_qparams) pin_all(e, n);
}

static tare_status find_chains(equalizing *e) {
    const graph *g = e->base.model->root->graph;
    e->id_count = g->next_id;
    e->chains = tare__arena_array(&e->base.scratch, e->id_count + 1, sizeof *e->chains);
    e->layers = tare__arena_array(&e->base.scratch, e->id_count + 1, sizeof *e->layers);
    if (e->chains == NULL || e->layers == NULL) return tare__out_of_memory(e->err);
    memset(e->layers, 0, (e->id_count + 1) * sizeof *e->layers);
    for (size_t i = 0; i <= e->id_count; i++) e->chains[i] = (chain){.parent = i};
    for (node *n = g->first; n != NULL; n = n->next) note(e, n);
    for (const node *n = g->first; n != NULL; n = n->next) pin_fixed(e, n);
    return TARE_OK;
}

static bool is_open(const chain *c) {
    return !c->is_pinned && c->producers > 0 && c->readers > 0 && c->channels > 0 &&
           !(c->is_front && c->is_last);
}

// --- ranges ---

// Merges the largest magnitude of each output channel into `ranges`.
static void add_rows(const tare_tensor *w, double *ranges) {
    const int64_t inner = w->count / w->shape[0];
    for (int64_t i = 0; i < w->count; i++)
        ranges[i / inner] = fmax(ranges[i / inner], fabs((double)tare__f32(w)[i]));
}

// The input channel of an element of the weight [out][in / groups][kernel..].
static int64_t input_channel(const tare_tensor *w, int64_t groups, int64_t element) {
    const int64_t taps = w->count / (w->shape[0] * w->shape[1]);
    const int64_t row = element / (w->shape[1] * taps), each = w->shape[0] / groups;
    return row / each * w->shape[1] + element / taps % w->shape[1];
}

static void add_columns(const tare_tensor *w, int64_t groups, double *ranges) {
    for (int64_t i = 0; i < w->count; i++) {
        const int64_t c = input_channel(w, groups, i);
        ranges[c] = fmax(ranges[c], fabs((double)tare__f32(w)[i]));
    }
}

static bool reads_chain(equalizing *e, const biased_layer *l, const chain *c) {
    return l->node != NULL && chain_of(e, tare__node_arg(l->node, 0)) == c;
}

static bool makes_chain(equalizing *e, const biased_layer *l, const chain *c) {
    return l->node != NULL && chain_of(e, l->node) == c;
}

static double scale_of(double made, double read) {
    if (!(made > 0) || !(read > 0) || !isfinite(made) || !isfinite(read)) return 1;
    return sqrt(made / read);
}

// --- changing ---

static tare_status own_copy(const equalizing *e, const tare_tensor *t, tare_tensor **out) {
    return tare__tensor_copy(t, out, e->err);
}

static tare_status divide_rows(equalizing *e, biased_layer *l, const float *scales) {
    tare_tensor *w = NULL, *b = NULL;
    const tare_tensor *bias = tare__layer_bias(e->base.model, l);
    TARE_TRY(own_copy(e, l->tensor, &w));
    const int64_t inner = w->count / w->shape[0];
    for (int64_t i = 0; i < w->count; i++) tare__f32(w)[i] /= scales[i / inner];
    tare_status status = tare__layer_set_weight(&e->base, l, w);
    tare_tensor_release(w);
    if (status != TARE_OK || bias == NULL) return status;
    TARE_TRY(own_copy(e, bias, &b));
    for (int64_t i = 0; i < b->count; i++) tare__f32(b)[i] /= scales[i];
    status = tare__layer_set_bias(&e->base, l, b, false);
    tare_tensor_release(b);
    return status;
}

static tare_status multiply_columns(equalizing *e, biased_layer *l, const float *scales) {
    const int64_t groups = group_count(e, l);
    tare_tensor *w = NULL;
    TARE_TRY(own_copy(e, l->tensor, &w));
    for (int64_t i = 0; i < w->count; i++) tare__f32(w)[i] *= scales[input_channel(w, groups, i)];
    const tare_status status = tare__layer_set_weight(&e->base, l, w);
    tare_tensor_release(w);
    return status;
}

static tare_status apply(equalizing *e, chain *c, const float *scales) {
    for (size_t i = 0; i < e->id_count; i++) {
        biased_layer *l = &e->layers[i];
        if (makes_chain(e, l, c)) TARE_TRY(divide_rows(e, l, scales));
        if (reads_chain(e, l, c)) TARE_TRY(multiply_columns(e, l, scales));
    }
    return TARE_OK;
}

// One round for a chain. *change: the largest factor, as a logarithm.
static tare_status equalize(equalizing *e, chain *c, double *change) {
    const size_t channels = (size_t)c->channels;
    double *made = tare__alloc_zeroed(channels + 1, sizeof *made);
    double *read = tare__alloc_zeroed(channels + 1, sizeof *read);
    float *scales = tare__alloc_zeroed(channels + 1, sizeof *scales);
    tare_status status =
        made == NULL || read == NULL || scales == NULL ? tare__out_of_memory(e->err) : TARE_OK;
    for (size_t i = 0; i < e->id_count && status == TARE_OK; i++) {
        const biased_layer *l = &e->layers[i];
        if (makes_chain(e, l, c)) add_rows(l->tensor, made);
        if (reads_chain(e, l, c)) add_columns(l->tensor, group_count(e, l), read);
    }
    for (size_t k = 0; k < channels && status == TARE_OK; k++) {
        const double all = (double)c->scales[k] * scale_of(made[k], read[k]);
        const double most = fmin(fmax(all, LEAST_SCALE), MOST_SCALE);
        scales[k] = (float)(most / (double)c->scales[k]);
        *change = fmax(*change, fabs(tare__log((double)scales[k])));
        c->scales[k] = (float)most;
    }
    if (status == TARE_OK) status = apply(e, c, scales);
    tare__free(made);
    tare__free(read);
    tare__free(scales);
    return status;
}

static tare_status begin_scales(equalizing *e, chain *c) {
    c->scales = tare__arena_array(&e->base.scratch, (size_t)c->channels, sizeof *c->scales);
    if (c->scales == NULL) return tare__out_of_memory(e->err);
    for (int64_t k = 0; k < c->channels; k++) c->scales[k] = 1;
    return TARE_OK;
}

static tare_status run_round(equalizing *e, bool is_first, double *change) {
    for (size_t i = 0; i < e->id_count; i++) {
        chain *c = &e->chains[i];
        if (c->parent != i || !is_open(c)) continue;
        if (is_first) TARE_TRY(begin_scales(e, c));
        TARE_TRY(equalize(e, c, change));
    }
    return TARE_OK;
}

// --- the record ---

static void span(const chain *c, float *least, float *most) {
    for (int64_t k = 0; k < c->channels; k++) {
        *least = fminf(*least, c->scales[k]);
        *most = fmaxf(*most, c->scales[k]);
    }
}

static tare_status tell(equalizing *e) {
    for (size_t i = 0; i < e->id_count; i++) {
        const biased_layer *l = &e->layers[i];
        if (l->node == NULL) continue;
        const chain *made = chain_of(e, l->node), *read = chain_of(e, tare__node_arg(l->node, 0));
        float least = INFINITY, most = 0;
        if (is_open(made)) span(made, &least, &most);
        if (is_open(read)) span(read, &least, &most);
        if (!(most > 1.01F || least < 0.99F) || most == 0) continue;
        e->count++;
        TARE_TRY(TARE_DECIDE(&e->base, l->node, "scaled", "equalization",
                             "its channels are scaled by %.3g to %.3g, together with those of the "
                             "layers that compute and read the same values",
                             (double)least, (double)most));
    }
    return TARE_OK;
}

// --- the pass ---

static tare_status run(equalizing *e) {
    const weight_change own = {.p = &e->base};
    TARE_TRY(tare__weight_change_begin(&own)); // refuses unsupported models
    TARE_TRY(find_chains(e));
    for (int i = 0; i < ROUNDS; i++) {
        double change = 0;
        TARE_TRY(run_round(e, i == 0, &change));
        if (change < 0.01) break;
    }
    TARE_TRY(tell(e));
    return tare__observers_forget(e->base.model, e->err);
}

tare_status tare_equalize_layers(const tare_model *prepared, size_t *count, tare_model **out,
                                 tare_error *err) {
    equalizing e = {.err = err};
    TARE_TRY(tare__improve_begin(&e.base, prepared, out, err));
    const tare_status status = run(&e);
    if (status == TARE_OK && count != NULL) *count = e.count;
    return tare__pass_end(&e.base, status, out);
}
