// SPDX-License-Identifier: Apache-2.0
// Prepare under tare's own mapping: leaves integer islands float that do not pay. An operator
// without a matrix product that reads and returns floats would need a quantize and a dequantize for
// every value; as float it is fused with the elementwise operators around it. torch quantizes such
// operators.
#include "flow/fx/prepare.h"

#include "config/qconfig.h"
#include "ops/op.h"

typedef struct island {
    bool pays;         // contains a matrix product, or reads inputs of the model
    bool reads_floats; // one of its operators does
} island;

typedef struct island_walk {
    prepare_pass *pass;
    bool *is_quantized; // by id
    size_t *parent;     // by id: union-find over adjacent integer operators
    island *islands;    // by id of the node that represents the island
} island_walk;

static size_t find(island_walk *w, size_t id) {
    while (w->parent[id] != id) id = w->parent[id] = w->parent[w->parent[id]];
    return id;
}

static bool multiplies(const prepare_pass *p, const node *n) {
    const op_info *op = tare__called_row(p->base->model, n);
    const prepare_match *match = tare__prepare_node(p, n)->match;
    // An unknown row is that of a custom module.
    return op == NULL || tare__op_has(op, OP_WEIGHTED | OP_BY_MATRIX) ||
           tare__prepare_has_module_weight(match) || match->config == NULL;
}

static tare_status find_quantized(island_walk *w, const node *n) {
    prepare_pass *p = w->pass;
    const prepare_node *entry = tare__prepare_node(p, n);
    bool is_supported = false;
    if (!tare__node_is_call(n) || entry->match == NULL || entry->qconfig.qconfig == NULL ||
        entry->stays_float != NULL)
        return TARE_OK;
    TARE_TRY(tare__prepare_is_supported(p, entry, &is_supported, NULL));
    const node *input = tare__node_arg(n, 0);
    const bool follows = entry->info.shares && entry->match->root == n && input != NULL;
    w->is_quantized[n->id] =
        is_supported && !entry->is_integer && (!follows || w->is_quantized[input->id]);
    return TARE_OK;
}

static void join(island_walk *w, const node *n) {
    for (size_t i = 0; i < n->input_count; i++)
        if (w->is_quantized[n->inputs[i]->id])
            w->parent[find(w, n->id)] = find(w, n->inputs[i]->id);
}

static void note(island_walk *w, const node *n) {
    island *own = &w->islands[find(w, n->id)];
    own->pays |= multiplies(w->pass, n);
    for (size_t i = 0; i < n->input_count; i++) {
        const node *input = n->inputs[i];
        if (w->is_quantized[input->id]) continue;
        own->pays |= input->op == NODE_PLACEHOLDER;
        own->reads_floats |= tare__node_is_call(input);
    }
}

static tare_status keep_float(prepare_pass *p, const node *n) {
    prepare_node *entry = tare__prepare_node(p, n);
    entry->qconfig.qconfig = NULL;
    entry->stays_float = "islands";
    entry->info.input = entry->info.output = p->float_spec;
    return TARE_DECIDE(p->base, n, "left float", "islands",
                       "its neighbours are float and it has no matrix product: conversions would "
                       "cost more time than integers save");
}

static tare_status begin(island_walk *w, size_t count) {
    arena *memory = &w->pass->base->scratch;
    w->is_quantized = tare__arena_array(memory, count, sizeof *w->is_quantized);
    w->parent = tare__arena_array(memory, count, sizeof *w->parent);
    w->islands = tare__arena_array(memory, count, sizeof *w->islands);
    if (w->is_quantized == NULL || w->parent == NULL || w->islands == NULL)
        return tare__out_of_memory(w->pass->base->err);
    for (size_t i = 0; i < count; i++) w->parent[i] = i;
    return TARE_OK;
}

tare_status tare__prepare_leave_islands(prepare_pass *p) {
    const graph *g = p->base->model->root->graph;
    island_walk w = {.pass = p};
    if (!tare__qconfig_mapping_is_own(p->mapping) || p->is_qat) return TARE_OK;
    TARE_TRY(begin(&w, g->next_id + 1));
    for (const node *n = g->first; n != NULL; n = n->next) TARE_TRY(find_quantized(&w, n));
    for (const node *n = g->first; n != NULL; n = n->next)
        if (w.is_quantized[n->id]) join(&w, n);
    for (const node *n = g->first; n != NULL; n = n->next)
        if (w.is_quantized[n->id]) note(&w, n);
    for (const node *n = g->first; n != NULL; n = n->next) {
        const island *own = w.is_quantized[n->id] ? &w.islands[find(&w, n->id)] : NULL;
        if (own != NULL && !own->pays && own->reads_floats) TARE_TRY(keep_float(p, n));
    }
    return TARE_OK;
}
