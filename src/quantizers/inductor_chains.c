// SPDX-License-Identifier: Apache-2.0
// Annotates layers with the operators that follow them. Each partition of a chain has one output
// node; the first is the layer.
#include <string.h>

#include "ops/op.h"
#include "quantizers/inductor.h"

typedef struct chain_nodes {
    node *layer, *norm, *add, *unary; // NULL: not part of this chain
    node *list[4];
    size_t count;
} chain_nodes;

// Finds the output node of each partition. A module that is called several times is one partition
// with several outputs, so its chain is unknown: false. (torchao fails for convolutions.)
static bool pick_nodes(const chain_row *row, const partition *const *partitions, size_t count,
                       chain_nodes *out) {
    *out = (chain_nodes){0};
    for (size_t i = 0; i < count; i++) {
        if (partitions[i]->outputs.count != 1) return false;
        out->list[out->count++] = partitions[i]->outputs.items[0];
    }
    size_t at = 0;
    out->layer = out->list[at++];
    if (row->members & CHAIN_BN) out->norm = out->list[at++];
    if (row->members & CHAIN_ADD) out->add = out->list[at++];
    if (row->members & CHAIN_UNARY) out->unary = out->list[at++];
    return true;
}

static bool is_linear(const chain_row *row) {
    return strcmp(row->types[0], "torch.nn.Linear") == 0;
}

// A one-dimensional convolution is supported only with an activation.
static bool is_layer(const chain_row *row, const node *n) {
    if (is_linear(row)) return tare__calls_overload(n, TARE_OP_LINEAR, "default");
    return tare__calls_overload(n, TARE_OP_CONV2D, "default") ||
           (row->members == CHAIN_UNARY && tare__calls_overload(n, TARE_OP_CONV1D, "default"));
}

// Finds the other operand of the addition, which must be a node. False: the addition does not
// follow the chain, or adds a number.
static bool find_extra(const chain_nodes *c, node **extra) {
    const node *last = c->norm != NULL ? c->norm : c->layer;
    *extra = NULL;
    if (c->add == NULL) return true;
    if (last->user_count != 1) return false;
    if (tare__node_arg(c->add, 0) == last)
        *extra = tare__node_arg(c->add, 1);
    else if (tare__node_arg(c->add, 1) == last)
        *extra = tare__node_arg(c->add, 0);
    return *extra != NULL;
}

// Annotates a node of a chain that is not the layer. With a batch norm, that is in training, the
// output of the last node is annotated, too.
static tare_status annotate_plain(const inductor_level *l, const chain_nodes *c, node *n,
                                  node *extra) {
    const bool is_last = n == c->list[c->count - 1];
    tare_annotation *annotation = NULL;
    TARE_TRY(tare__inductor_plain(l, n, is_last, &annotation));
    if (extra != NULL) TARE_TRY(tare__annotate_edge(l->a, annotation, extra, l->specs.input));
    if (c->norm != NULL && is_last) tare__annotation_set_output(annotation, l->specs.output);
    return TARE_OK;
}

static tare_status annotate_chain(const inductor_level *l, const chain_nodes *c, node *extra,
                                  bool is_linear) {
    tare_annotation *annotation = NULL;
    if (l->setting->is_none) return tare__inductor_leave_float(l, c->list, c->count);
    TARE_TRY(tare__inductor_layer(l, c->layer, c->count == 1, &annotation));
    // The addend of a linear layer stays float, for accuracy.
    if (c->add != NULL) TARE_TRY(annotate_plain(l, c, c->add, is_linear ? NULL : extra));
    if (c->unary != NULL) TARE_TRY(annotate_plain(l, c, c->unary, NULL));
    return c->norm != NULL && c->count == 2 ? annotate_plain(l, c, c->norm, NULL) : TARE_OK;
}

static tare_status mark_partitions(const inductor_level *l, const partition *const *partitions,
                                   size_t count) {
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < partitions[i]->nodes.count; k++)
            TARE_TRY(tare__mark(l->a, partitions[i]->nodes.items[k]));
    return TARE_OK;
}

static tare_status try_chain(const inductor_level *l, const chain_row *row,
                             const partition *const *partitions, size_t count) {
    chain_nodes c;
    node *extra = NULL;
    bool takes = false;
    if (!pick_nodes(row, partitions, count, &c) || !is_layer(row, c.layer) ||
        !find_extra(&c, &extra))
        return TARE_OK;
    TARE_TRY(tare__inductor_takes(l, c.list, c.count, &takes));
    if (!takes) return TARE_OK;
    TARE_TRY(annotate_chain(l, &c, extra, is_linear(row)));
    return c.norm != NULL ? mark_partitions(l, partitions, count) : TARE_OK;
}

// Annotates layers without following operators: every output of their partitions.
static tare_status try_layers(const inductor_level *l, const chain_row *row) {
    const op_name function =
        tare__op_function_name(tare__op_row(is_linear(row) ? TARE_OP_LINEAR : TARE_OP_CONV2D));
    const char *const wanted[] = {row->types[0], function.text};
    partition_list list;
    TARE_TRY(tare__source_partitions(l->a->g, &l->a->sources, wanted, 2, NULL, &l->a->memory, &list,
                                     l->a->err));
    for (size_t i = 0; i < list.count; i++)
        for (size_t k = 0; k < list.items[i].outputs.count; k++) {
            const chain_nodes c = {.layer = list.items[i].outputs.items[k],
                                   .list = {list.items[i].outputs.items[k]},
                                   .count = 1};
            bool takes = false;
            if (!is_layer(row, c.layer)) continue;
            TARE_TRY(tare__inductor_takes(l, c.list, 1, &takes));
            if (takes) TARE_TRY(annotate_chain(l, &c, NULL, is_linear(row)));
        }
    return TARE_OK;
}

tare_status tare__inductor_chain(const inductor_level *l, const chain_row *row) {
    size_t width = 0;
    chain_list chains;
    while (width < 4 && row->types[width] != NULL) width++;
    if (width == 1) return try_layers(l, row);
    TARE_TRY(tare__sequential_partitions(l->a->g, &l->a->sources, row->types, width,
                                         &tare__equivalents, NULL, &l->a->memory, &chains,
                                         l->a->err));
    for (size_t i = 0; i < chains.count; i++)
        TARE_TRY(try_chain(l, row, chains.items + i * width, width));
    return TARE_OK;
}
