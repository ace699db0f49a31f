// SPDX-License-Identifier: Apache-2.0
// XNNPACKQuantizer: convolutions and linear layers, alone, with ReLU, and in training with a batch
// norm between them.
#include <string.h>

#include "core/text/text.h"
#include "flow/layer_calls.h"
#include "quantizers/patterns/subgraph.h"
#include "quantizers/xnnpack.h"

static const op_overload relu_calls[] = {OVERLOAD(RELU, "default"),
                                         IN_PLACE_OVERLOAD(RELU, "default"), OVERLOADS_END};

bool tare__xnnpack_is_free(const xnnpack_level *l, node *const *nodes, size_t count) {
    if (tare__is_any_marked(l->a, nodes, count)) return false;
    // Tensors of the model have no module in their metadata; they belong to the layer that reads
    // them.
    for (size_t i = 0; i < count; i++)
        if (nodes[i] != NULL && nodes[i]->op != NODE_GET_ATTR &&
            !l->filter.accepts(l->filter.user, nodes[i]))
            return false;
    return true;
}

static tare_status mark_all(annotating *a, node *const *nodes, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (nodes[i] != NULL) TARE_TRY(tare__mark(a, nodes[i]));
    return TARE_OK;
}

// Annotates the layer's inputs, and the output on `last`; marks weight and bias, too. Does nothing
// unless all of these nodes are free.
static tare_status annotate_layer(const xnnpack_level *l, node *layer, node *last) {
    node *const nodes[] = {layer, last, tare__node_arg(layer, 1), tare__node_arg(layer, 2)};
    tare_annotation *annotation = NULL;
    if (tare__node_arg(layer, 0) == NULL || nodes[2] == NULL) return TARE_OK;
    if (!tare__xnnpack_is_free(l, nodes, 4)) return TARE_OK;
    TARE_TRY(tare__annotate_layer(l->a, layer, &l->specs, &annotation));
    if (last != layer) TARE_TRY(tare__annotate_anew(l->a, last, &annotation));
    tare__annotation_set_output(annotation, l->specs.output);
    return mark_all(l->a, nodes, 4);
}

// The first node of the pattern that ends at n; NULL: none ends there.
static node *first_of(const xnnpack_annotator *row, node *n) {
    if (!row->has_relu) return tare__calls_one_of(n, row->calls) ? n : NULL;
    node *before = tare__calls_one_of(n, relu_calls) ? tare__node_arg(n, 0) : NULL;
    const bool is_first = before != NULL && tare__calls_one_of(before, row->calls);
    return is_first && before->user_count == 1 ? before : NULL;
}

tare_status tare__xnnpack_each(const xnnpack_level *l, const xnnpack_annotator *row,
                               pair_visitor visit) {
    for (node *n = l->a->g->first; n != NULL; n = n->next) {
        node *first = first_of(row, n);
        if (first != NULL) TARE_TRY(visit(l, first, n));
    }
    return TARE_OK;
}

tare_status tare__xnnpack_layer(const xnnpack_level *l, const xnnpack_annotator *row) {
    return tare__xnnpack_each(l, row, annotate_layer);
}

// Requires only that the node itself is free and accepted; an existing annotation is extended.
static tare_status annotate_linear(const xnnpack_level *l, node *n) {
    node *const inputs[] = {tare__node_arg(n, 0), tare__node_arg(n, 1), tare__node_arg(n, 2)};
    tare_qspec *const specs[] = {l->specs.input, l->specs.weight, l->specs.bias};
    tare_annotation *annotation = NULL;
    TARE_TRY(tare__annotation_get(&l->a->model->annotations, n->name, &annotation, l->a->err));
    for (size_t i = 0; i < 3; i++)
        if (inputs[i] != NULL) TARE_TRY(tare__annotate_edge(l->a, annotation, inputs[i], specs[i]));
    tare__annotation_set_output(annotation, l->specs.output);
    annotation->is_marked = true;
    return mark_all(l->a, inputs + 1, 2);
}

tare_status tare__xnnpack_linear(const xnnpack_level *l, const xnnpack_annotator *row) {
    for (node *n = l->a->g->first; n != NULL; n = n->next)
        if (tare__calls_one_of(n, row->calls) && tare__xnnpack_is_free(l, &n, 1))
            TARE_TRY(annotate_linear(l, n));
    return TARE_OK;
}

// --- with a batch norm, in training ---

static tare_status annotate_norm_match(const xnnpack_level *l, const subgraph_match *m) {
    node *conv = tare__subgraph_node(m, "conv"), *last = tare__subgraph_node(m, "output");
    node *const nodes[] = {conv, tare__subgraph_node(m, "weight"), tare__subgraph_node(m, "bias")};
    tare_annotation *annotation = NULL;
    if (!tare__xnnpack_is_free(l, nodes, 3)) return TARE_OK;
    TARE_TRY(tare__annotate_layer(l->a, conv, &l->specs, &annotation));
    TARE_TRY(tare__annotate_anew(l->a, last, &annotation));
    tare__annotation_set_output(annotation, l->specs.output);
    return mark_all(l->a, nodes, 3);
}

static tare_status match_form(const xnnpack_level *l, op_overload conv, op_overload relu,
                              arena *memory, subgraph_matches *matches) {
    const subgraph_options options = {.ignore_literals = true};
    const bool has_relu = relu.op != TARE_OP_NONE;
    const char *last = has_relu ? "bounded" : "norm";
    const op_overload norm = OVERLOAD(BATCH_NORM, "default");
    text code = {0};
    tare__text_printf(&code,
                      "def forward(self, x, weight, bias, gamma, beta, mean, var):\n"
                      "    conv = %s(x, weight, bias)\n"
                      "    norm = %s(conv, gamma, beta, mean, var, True, 0.1, 1e-05, False)\n",
                      tare__overload_name(conv).text, tare__overload_name(norm).text);
    if (has_relu)
        tare__text_printf(&code, "    bounded = %s(norm)\n", tare__overload_name(relu).text);
    tare__text_printf(&code,
                      "    return (%s, {'input': x, 'conv': conv, 'weight': weight, 'bias': bias, "
                      "'output': %s})\n",
                      last, last);
    subgraph_pattern *p = NULL;
    tare_status status = tare__text_status(&code, l->a->err);
    if (status == TARE_OK)
        status = tare__subgraph_parse(code.chars, code.length, &options, &p, l->a->err);
    tare__text_release(&code);
    if (status == TARE_OK) status = tare__subgraph_find(p, l->a->g, memory, matches, l->a->err);
    for (size_t i = 0; i < matches->count && status == TARE_OK; i++)
        if (matches->items[i].pattern == p) status = annotate_norm_match(l, &matches->items[i]);
    tare__subgraph_destroy(p);
    return status;
}

// torch collects the matches of all forms before it annotates. The result is the same, because
// annotations do not affect matching.
tare_status tare__xnnpack_normed_layer(const xnnpack_level *l, const xnnpack_annotator *row) {
    static const op_overload relus[] = {IN_PLACE_OVERLOAD(RELU, "default"),
                                        OVERLOAD(RELU, "default")};
    static const op_overload no_relu[] = {OVERLOADS_END};
    const op_overload *relu = row->has_relu ? relus : no_relu;
    const size_t relu_count = row->has_relu ? 2 : 1;
    // Unused nodes would count as users of their inputs.
    TARE_TRY(tare__graph_drop_unread(l->a->g, l->a->err));
    for (const op_overload *conv = row->calls; conv->op != TARE_OP_NONE; conv++)
        for (size_t r = 0; r < relu_count; r++) {
            subgraph_matches matches = {0};
            TARE_TRY(match_form(l, *conv, relu[r], &l->a->memory, &matches));
        }
    return TARE_OK;
}
