// SPDX-License-Identifier: Apache-2.0
// After training: folds the batch norm into the pattern of qat.c with its quantized weight, which
// becomes a convolution.
#include <string.h>

#include "flow/export/convert.h"

// The matched pattern: norm(conv(x, dq(q(weight * f)), zeros) / f + bias).
typedef struct trained {
    node *norm, *conv;
    node *dequantize, *quantize, *weight;
    node *bias, *bias_dequantize, *bias_quantize; // NULL: none, or not quantized
    const op_info *row;
    bool is_per_channel, is_training;
} trained;

static node *arg_of(const node *n, size_t i, op_id id, const char *overload) {
    node *arg = n != NULL ? tare__node_arg(n, i) : NULL;
    return tare__calls_overload(arg, id, overload) ? arg : NULL;
}

static node *dequantize_arg(const node *n, size_t i) {
    node *arg = tare__node_arg(n, i);
    return arg != NULL && tare__is_dequantize_call(arg) ? arg : NULL;
}

static bool find_weight(trained *t) {
    t->dequantize = dequantize_arg(t->conv, 1);
    t->quantize = t->dequantize != NULL ? tare__node_arg(t->dequantize, 0) : NULL;
    if (t->quantize == NULL || !tare__is_quantize_call(t->quantize)) return false;
    const node *mul = arg_of(t->quantize, 0, TARE_OP_MUL, "Tensor");
    t->weight = mul != NULL ? tare__node_arg(mul, 0) : NULL;
    t->is_per_channel = tare__function_op(t->quantize) == TARE_OP_DECOMPOSED_QUANTIZE_PER_CHANNEL;
    return t->weight != NULL && t->weight->op == NODE_GET_ATTR &&
           arg_of(mul, 1, TARE_OP_RESHAPE, "default") != NULL;
}

static bool find_bias(trained *t, const node *sum) {
    const node *shaped = arg_of(sum, 1, TARE_OP_RESHAPE, "default");
    t->bias = shaped != NULL ? tare__node_arg(shaped, 0) : NULL;
    if (t->bias == NULL || t->bias->op != NODE_GET_ATTR) return false;
    t->bias_dequantize = dequantize_arg(t->conv, 2);
    t->bias_quantize = t->bias_dequantize != NULL ? tare__node_arg(t->bias_dequantize, 0) : NULL;
    const node *zeros = t->bias_quantize != NULL ? t->bias_quantize : t->conv;
    return arg_of(zeros, t->bias_quantize != NULL ? 0 : 2, TARE_OP_ZEROS_LIKE, "default") != NULL;
}

static bool find(node *norm, trained *out) {
    size_t eps_index = 0;
    bool is_plain = false;
    if (!tare__is_batch_norm_call(norm, &eps_index, &is_plain) || !is_plain) return false;
    *out = (trained){.norm = norm};
    const node *sum = arg_of(norm, 0, TARE_OP_ADD, "Tensor");
    const node *div = arg_of(sum != NULL ? sum : norm, 0, TARE_OP_DIV, "Tensor");
    out->conv = div != NULL ? tare__node_arg(div, 0) : NULL;
    out->row = tare__layer_call(out->conv);
    if (out->conv == NULL || out->row == NULL || tare__op_id(out->row) == TARE_OP_LINEAR ||
        out->conv->user_count != 1)
        return false;
    const value *training = norm->arg_count > 5 ? &norm->args[5] : NULL;
    out->is_training = training != NULL && training->kind == VALUE_BOOL && training->as.boolean;
    return find_weight(out) && (sum == NULL || find_bias(out, sum)) &&
           tare__first_user(norm) != NULL;
}

// --- the replacement ---

// Copies `from` with `input` as its input, under the operator's plain name, as in torch's pattern.
static tare_status copy_call(pass *p, const node *from, node *input, node *before, node **out) {
    value *args = tare__arena_array(&p->scratch, from->arg_count + 1, sizeof *args);
    const char *candidate = tare__packet_name(&p->scratch, from->target);
    if (args == NULL || candidate == NULL) return tare__out_of_memory(p->err);
    for (size_t i = 0; i < from->arg_count; i++) args[i] = from->args[i];
    args[0] = tare__node_value(input);
    const node_spec spec = {.op = from->op,
                            .target = from->target,
                            .candidate = candidate,
                            .args = args,
                            .arg_count = from->arg_count,
                            .kwargs = from->kwargs,
                            .kwarg_count = from->kwarg_count,
                            .like = from};
    return tare__graph_insert(p->model->root->graph, &spec, before, out, p->err);
}

static tare_status copy_pair(pass *p, const node *quantize, const node *dequantize, node *input,
                             node *before, node **out) {
    node *quantized = NULL;
    TARE_TRY(copy_call(p, quantize, input, before, &quantized));
    return copy_call(p, dequantize, quantized, before, out);
}

// The pattern's batch norm uses up a name, although folding removes it.
static tare_status spend_name(pass *p) {
    const char *name = NULL;
    return tare__graph_name(p->model->root->graph, tare__op_row(TARE_OP_BATCH_NORM)->id, &name,
                            p->err);
}

static tare_status fold_one(pass *p, const trained *t) {
    node *before = tare__first_user(t->norm), *weight = NULL, *bias = t->bias, *conv = NULL;
    TARE_TRY(copy_pair(p, t->quantize, t->dequantize, t->weight, before, &weight));
    if (t->bias_quantize != NULL)
        TARE_TRY(copy_pair(p, t->bias_quantize, t->bias_dequantize, t->bias, before, &bias));
    TARE_TRY(tare__copy_layer(p, t->conv, weight, bias, before, &conv));
    TARE_TRY(spend_name(p));
    TARE_TRY(tare__annotation_clone(&p->model->annotations, t->conv->name, conv->name, p->err));
    const norm_fold wanted = {.layer = conv,
                              .norm = t->norm,
                              .weight = t->weight,
                              .bias = t->bias,
                              .row = t->row,
                              .eps = 1e-5,
                              .fold_weights = true};
    TARE_TRY(tare__pt2e_fold_norm(p, &wanted));
    // torch sets the convolution's literal arguments last, which makes it the last reader of its
    // input. The names of duplicates follow the order of readers.
    TARE_TRY(tare__node_set_args(conv, conv->args, conv->arg_count, conv->kwargs, conv->kwarg_count,
                                 p->err));
    TARE_TRY(tare__record_inherit(&p->model->decisions, t->conv->name, conv->name, p->err));
    TARE_TRY(TARE_DECIDE(p, t->norm, "folded", "conv-bn training pattern",
                         "folded into the weight of '%s'", conv->name));
    return TARE_DECIDE(p, conv, "folded", "conv-bn training pattern",
                       "'%s' is folded into its weight", t->norm->name);
}

static bool is_variant(const trained *t, op_id kind, unsigned variant) {
    return tare__is_trained_layer(t->conv, kind) && t->is_per_channel == !(variant & 8) &&
           (t->bias != NULL) == !(variant & 4) && (t->bias_quantize != NULL) == !(variant & 2) &&
           t->is_training == !(variant & 1);
}

static tare_status fold_variant(pass *p, op_id kind, unsigned variant) {
    const graph *g = p->model->root->graph;
    const size_t first_new = g->next_id;
    trained t;
    for (node *n = g->first; n != NULL; n = n->next)
        if (n->id < first_new && find(n, &t) && is_variant(&t, kind, variant))
            TARE_TRY(fold_one(p, &t));
    return TARE_OK;
}

// --- what counted batches ---

static tare_status is_batch_count(pass *p, const node *n, bool *out) {
    *out = false;
    const bool adds = tare__function_op(n) == TARE_OP_ADD && tare__writes_first_argument(n) &&
                      tare__ends_with(n->target, ".Tensor");
    const node *read = adds ? tare__node_arg(n, 0) : NULL;
    const bool adds_one = read != NULL && read->op == NODE_GET_ATTR && n->arg_count == 2 &&
                          n->args[1].kind == VALUE_INT && n->args[1].as.integer == 1;
    if (!adds_one) return TARE_OK;
    tare_node_meta *meta = NULL;
    TARE_TRY(tare_node_meta_read((const tare_node *)n, &meta, p->err));
    for (size_t i = 0; i < meta->module_count; i++)
        if (tare__ends_with(meta->modules[i].function, ".BatchNorm2d")) *out = true;
    tare_node_meta_destroy(meta);
    return TARE_OK;
}

static tare_status erase_batch_counts(pass *p) {
    graph *g = p->model->root->graph;
    for (node *n = g->first, *next; n != NULL; n = next) {
        next = n->next;
        bool counts = false;
        TARE_TRY(is_batch_count(p, n, &counts));
        if (counts && n->user_count == 0) TARE_TRY(tare__graph_erase(g, n, p->err));
    }
    return TARE_OK;
}

tare_status tare__pt2e_fold_training(pass *p) {
    // In torch's order, on which names depend: for each kind, per channel first, then with a bias,
    // with a quantized bias, and in training mode.
    enum { VARIANT_COUNT = 16 };
    if (!tare__has_batch_norm(p)) return TARE_OK;
    for (size_t i = 0; i < TRAINED_LAYER_COUNT; i++)
        for (unsigned v = 0; v < VARIANT_COUNT; v++)
            TARE_TRY(fold_variant(p, tare__trained_layers[i], v));
    TARE_TRY(erase_batch_counts(p));
    return tare__pt2e_eliminate_dead(p);
}
