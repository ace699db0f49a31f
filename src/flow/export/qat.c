// SPDX-License-Identifier: Apache-2.0
// Training: a convolution and its batch norm become torch's pattern. It scales the weight as
// folding will, before the fake quantizer, and scales the result back.
//   f = gamma
// sqrt(var + eps);  y = conv(x, weight * f, zeros)
// f + bias;  batch_norm(y)
#include <string.h>

#include "core/memory/alloc.h"
#include "flow/export/steps.h"

// A convolution with its batch norm, and the nodes that replace them.
typedef struct rewrite {
    pass *p;
    node *conv, *norm, *weight, *bias; // bias NULL: none
    const op_info *row;
    node *before; // where new nodes are inserted
    node *scaled, *zeros, *new_conv, *new_norm;
} rewrite;

// Nodes of torch's pattern are named after the operator alone.
static tare_status call(const rewrite *r, op_id id, const char *overload, value a, value b,
                        node **out) {
    const op_name target = tare__overload_name((op_overload){id, false, overload});
    const value args[] = {a, b};
    const node_spec spec = {.op = NODE_CALL_FUNCTION,
                            .target = target.text,
                            .candidate = tare__op_row(id)->id,
                            .args = args,
                            .arg_count = b.kind == VALUE_NONE ? 1 : 2};
    return tare__graph_insert(r->p->model->root->graph, &spec, r->before, out, r->p->err);
}

// Reshapes one factor per channel for the multiplication.
static tare_status reshape(const rewrite *r, node *factor, int channel_axis, node **out) {
    const int rank = tare__layer_class(r->p, r->row)->dims + 2;
    const value sizes = tare__value_sequence(&r->p->scratch, VALUE_LIST, (uint32_t)rank);
    if (sizes.as.items == NULL) return tare__out_of_memory(r->p->err);
    for (int d = 0; d < rank; d++) sizes.as.items[d] = tare__int(d == channel_axis ? -1 : 1);
    return call(r, TARE_OP_RESHAPE, "default", tare__node_value(factor), sizes, out);
}

static tare_status insert_factor(rewrite *r, node **factor) {
    node *sum = NULL, *root = NULL, *shaped = NULL;
    TARE_TRY(call(r, TARE_OP_ADD, "Tensor", r->norm->args[4], tare__float(1e-5), &sum));
    TARE_TRY(call(r, TARE_OP_SQRT, "default", tare__node_value(sum), tare__none(), &root));
    TARE_TRY(call(r, TARE_OP_DIV, "Tensor", r->norm->args[1], tare__node_value(root), factor));
    TARE_TRY(reshape(r, *factor, tare__op_has(r->row, OP_TRANSPOSED) ? 1 : 0, &shaped));
    return call(r, TARE_OP_MUL, "Tensor", tare__node_value(r->weight), tare__node_value(shaped),
                &r->scaled);
}

static tare_status insert_zeros(rewrite *r) {
    if (r->bias == NULL) return TARE_OK;
    const value arg = tare__node_value(r->bias);
    const keyword kwargs[] = {{"dtype", tare__dtype_value(TARE_FLOAT32)},
                              {"pin_memory", tare__bool(false)}};
    const op_name target = tare__overload_name((op_overload)OVERLOAD(ZEROS_LIKE, "default"));
    const node_spec spec = {.op = NODE_CALL_FUNCTION,
                            .target = target.text,
                            .candidate = tare__op_row(TARE_OP_ZEROS_LIKE)->id,
                            .args = &arg,
                            .arg_count = 1,
                            .kwargs = kwargs,
                            .kwarg_count = 2};
    return tare__graph_insert(r->p->model->root->graph, &spec, r->before, &r->zeros, r->p->err);
}

static tare_status insert_rest(rewrite *r, node *factor) {
    node *shaped = NULL, *scaled_back = NULL, *result = NULL;
    TARE_TRY(reshape(r, factor, 1, &shaped));
    TARE_TRY(call(r, TARE_OP_DIV, "Tensor", tare__node_value(r->new_conv), tare__node_value(shaped),
                  &scaled_back));
    result = scaled_back;
    if (r->bias != NULL) {
        TARE_TRY(reshape(r, r->bias, 1, &shaped));
        TARE_TRY(call(r, TARE_OP_ADD, "Tensor", tare__node_value(scaled_back),
                      tare__node_value(shaped), &result));
    }
    // The scaled convolution computes another value than the original one.
    r->new_conv->debug_handle = 0;
    result->debug_handle = r->conv->debug_handle;
    // As in torch, momentum and eps are the pattern's, not the model's.
    const value args[] = {tare__node_value(result), r->norm->args[1],  r->norm->args[2],
                          r->norm->args[3],         r->norm->args[4],  tare__bool(true),
                          tare__float(0.1),         tare__float(1e-5), tare__bool(false)};
    const node_spec spec = {.op = NODE_CALL_FUNCTION,
                            .target = r->norm->target,
                            .candidate = tare__op_row(TARE_OP_BATCH_NORM)->id,
                            .args = args,
                            .arg_count = 9,
                            .like = r->norm};
    return tare__graph_insert(r->p->model->root->graph, &spec, r->before, &r->new_norm, r->p->err);
}

// --- annotations ---

static const char *renamed(const rewrite *r, const char *name) {
    if (name == NULL) return NULL;
    if (strcmp(name, r->conv->name) == 0) return r->new_conv->name;
    if (strcmp(name, r->norm->name) == 0) return r->new_norm->name;
    return name;
}

static tare_edge_name moved_edge(void *user, tare_edge_name edge) {
    const rewrite *r = user;
    const bool into_conv = strcmp(edge.node, r->conv->name) == 0 && edge.from != NULL;
    if (into_conv && strcmp(edge.from, r->weight->name) == 0) edge.from = r->scaled->name;
    if (into_conv && r->bias != NULL && strcmp(edge.from, r->bias->name) == 0)
        edge.from = r->zeros->name;
    return (tare_edge_name){.from = renamed(r, edge.from), .node = renamed(r, edge.node)};
}

static tare_status move_spec(const rewrite *r, tare_qspec **spec) {
    if (*spec == NULL || (*spec)->target_count == 0) return TARE_OK;
    tare_qspec *moved = NULL;
    TARE_TRY(tare__qspec_map_targets(*spec, moved_edge, (void *)r, &moved, r->p->err));
    tare_qspec_release(*spec);
    *spec = moved;
    return TARE_OK;
}

static tare_status rename_input(const rewrite *r, input_qspec *entry, const char *name) {
    if (strcmp(entry->input, name) == 0) return TARE_OK;
    char *copy = tare__strdup(name);
    if (copy == NULL) return tare__out_of_memory(r->p->err);
    tare__free(entry->input);
    entry->input = copy;
    return TARE_OK;
}

// The first three entries belong to the convolution's input, weight and bias.
static tare_status move_conv_inputs(const rewrite *r, tare_annotation *a) {
    const node *const now[] = {tare__node_arg(r->new_conv, 0), r->scaled, r->zeros};
    for (size_t i = 0; i < a->input_count && i < 3; i++)
        if (now[i] != NULL) TARE_TRY(rename_input(r, &a->inputs[i], now[i]->name));
    return TARE_OK;
}

// Moves the annotations of weight and bias to their replacements.
static tare_status move_annotations(const rewrite *r) {
    annotation_book *book = &r->p->model->annotations;
    tare_error *err = r->p->err;
    TARE_TRY(tare__annotation_clone(book, r->weight->name, r->scaled->name, err));
    if (r->bias != NULL) TARE_TRY(tare__annotation_clone(book, r->bias->name, r->zeros->name, err));
    TARE_TRY(tare__annotation_clone(book, r->conv->name, r->new_conv->name, err));
    TARE_TRY(tare__annotation_clone(book, r->norm->name, r->new_norm->name, err));
    tare__annotation_remove(book, r->conv->name);
    tare__annotation_remove(book, r->norm->name);
    tare_annotation *conv = tare__annotation_find(book, r->new_conv->name);
    if (conv != NULL) TARE_TRY(move_conv_inputs(r, conv));
    for (size_t i = 0; i < book->by_node.count; i++) {
        tare_annotation *a = book->by_node.entries[i].value;
        TARE_TRY(move_spec(r, &a->output));
        for (size_t k = 0; k < a->input_count; k++) {
            TARE_TRY(move_spec(r, &a->inputs[k].spec));
            TARE_TRY(rename_input(r, &a->inputs[k], renamed(r, a->inputs[k].input)));
        }
    }
    return TARE_OK;
}

// --- the walk ---

// As in torch, the literal that says whether the batch norm trains is not checked.
static bool find(pass *p, node *norm, op_id kind, bool wants_bias, rewrite *out) {
    size_t eps_index = 0;
    bool is_plain = false;
    if (!tare__is_batch_norm_call(norm, &eps_index, &is_plain) || !is_plain) return false;
    node *conv = tare__node_arg(norm, 0);
    const op_info *row = tare__layer_call(conv);
    if (!tare__is_trained_layer(conv, kind) || conv->user_count != 1) return false;
    *out = (rewrite){.p = p,
                     .conv = conv,
                     .norm = norm,
                     .weight = tare__node_arg(conv, 1),
                     .bias = tare__node_arg(conv, 2),
                     .row = row,
                     .before = tare__first_user(norm)};
    return out->weight != NULL && out->before != NULL && (out->bias != NULL) == wants_bias;
}

static tare_status rewrite_one(rewrite *r) {
    node *factor = NULL;
    TARE_TRY(insert_factor(r, &factor));
    TARE_TRY(insert_zeros(r));
    TARE_TRY(tare__copy_layer(r->p, r->conv, r->scaled, r->zeros, r->before, &r->new_conv));
    TARE_TRY(insert_rest(r, factor));
    TARE_TRY(tare__node_replace_uses(r->norm, r->new_norm, NULL, r->p->err));
    TARE_TRY(move_annotations(r));
    graph *g = r->p->model->root->graph;
    TARE_TRY(tare__graph_erase(g, r->norm, r->p->err));
    TARE_TRY(tare__graph_erase(g, r->conv, r->p->err));
    return TARE_DECIDE(r->p, r->new_conv, "rewritten", "conv-bn training pattern",
                       "its weight is scaled by '%s' before it is fake quantized",
                       r->new_norm->name);
}

static tare_status rewrite_kind(pass *p, op_id kind, bool wants_bias) {
    const graph *g = p->model->root->graph;
    const size_t first_new = g->next_id;
    for (node *n = g->first, *next; n != NULL; n = next) {
        next = n->next;
        rewrite r;
        if (n->id < first_new && find(p, n, kind, wants_bias, &r)) TARE_TRY(rewrite_one(&r));
    }
    return TARE_OK;
}

tare_status tare__pt2e_rewrite_for_training(pass *p) {
    if (!tare__has_batch_norm(p)) return TARE_OK;
    for (size_t i = 0; i < TRAINED_LAYER_COUNT; i++) {
        TARE_TRY(rewrite_kind(p, tare__trained_layers[i], true));
        TARE_TRY(rewrite_kind(p, tare__trained_layers[i], false));
    }
    return tare__pt2e_eliminate_dead(p);
}
