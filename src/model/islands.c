// SPDX-License-Identifier: Apache-2.0
// Islands: a union of neighbours of one kind, observers and conversions looked through.
#include "model/islands.h"

#include "model/coverage.h"
#include "model/pass.h"

// left_float: names of nodes.
static island_kind kind_of(const tare_model *model, const map *left_float, const node *n) {
    if (!tare__node_is_call(n) || n->user_count == 0) return ISLAND_DATA;
    if (tare__is_observer_node(model, n)) return ISLAND_OBSERVER;
    if (tare__coverage_is_conversion(n)) return ISLAND_CONVERSION;
    if (model->stage < TARE_STAGE_PREPARED) return ISLAND_PLAIN;
    if (model->stage == TARE_STAGE_PREPARED && model->prepared == NULL)
        return tare__annotation_takes(&model->annotations, n) ? ISLAND_INTEGER : ISLAND_FLOAT;
    if (model->stage == TARE_STAGE_PREPARED) {
        const prepared_node *known = tare__prepared_node(model->prepared, n->name);
        const bool stays_float = tare__map_get(left_float, n->name) != NULL;
        return known != NULL && known->is_observed && !stays_float ? ISLAND_INTEGER : ISLAND_FLOAT;
    }
    const traced_op *op = tare__traced_op(model, n->origin);
    return op != NULL && op->is_quantized ? ISLAND_INTEGER : ISLAND_FLOAT;
}

size_t tare__island_of(const islands *x, size_t place) {
    while (x->parent[place] != place) {
        x->parent[place] = x->parent[x->parent[place]];
        place = x->parent[place];
    }
    return place;
}

static tare_status list_nodes(const tare_model *model, arena *memory, islands *x, tare_error *err) {
    const graph *g = model->root->graph;
    x->nodes = tare__arena_array(memory, g->node_count + 1, sizeof *x->nodes);
    x->kinds = tare__arena_array(memory, g->node_count + 1, sizeof *x->kinds);
    x->parent = tare__arena_array(memory, g->node_count + 1, sizeof *x->parent);
    x->places = tare__arena_array(memory, g->next_id + 1, sizeof *x->places);
    if (x->nodes == NULL || x->kinds == NULL || x->parent == NULL || x->places == NULL)
        return tare__out_of_memory(err);
    map left_float = {0};
    const tare_status status =
        tare__record_decided(&model->decisions, "left float", &left_float, err);
    for (const node *n = g->first; n != NULL && status == TARE_OK; n = n->next, x->count++) {
        x->nodes[x->count] = n;
        x->kinds[x->count] = kind_of(model, &left_float, n);
        x->parent[x->count] = x->places[n->id] = x->count;
    }
    tare__map_release(&left_float);
    return status;
}

// The node whose value this one passes on: itself, or what an observer or a conversion reads.
static const node *source_of(const islands *x, const node *n) {
    for (;;) {
        const island_kind kind = x->kinds[x->places[n->id]];
        if (kind != ISLAND_OBSERVER && kind != ISLAND_CONVERSION) return n;
        const node *input = tare__node_arg(n, 0);
        if (input == NULL) return n;
        n = input;
    }
}

// One reader under a walk over its inputs.
typedef struct reading {
    islands *islands;
    size_t to;
    bool *is_quantized, *is_dequantized; // by place: counted already
} reading;

static void count_once(bool *seen, size_t place, size_t *count) {
    *count += !seen[place];
    seen[place] = true;
}

static void read_input(void *user, node *input) {
    const reading *r = user;
    islands *x = r->islands;
    const node *from = source_of(x, input);
    const size_t place = x->places[from->id];
    const island_kind source = x->kinds[place], reader = x->kinds[r->to];
    if (source == reader && tare__island_has_members(source)) {
        const size_t a = tare__island_of(x, place), b = tare__island_of(x, r->to);
        x->parent[a > b ? a : b] = a < b ? a : b;
    }
    const bool is_weight = from->op == NODE_GET_ATTR;
    if (source == ISLAND_INTEGER && (reader == ISLAND_FLOAT || reader == ISLAND_DATA))
        count_once(r->is_dequantized, place, &x->dequantize_count);
    if (reader == ISLAND_INTEGER && !is_weight && (source == ISLAND_FLOAT || source == ISLAND_DATA))
        count_once(r->is_quantized, place, &x->quantize_count);
}

tare_status tare__islands_find(const tare_model *model, arena *memory, islands *out,
                               tare_error *err) {
    *out = (islands){0};
    TARE_TRY(list_nodes(model, memory, out, err));
    reading r = {.islands = out,
                 .is_quantized = tare__arena_array(memory, out->count + 1, sizeof(bool)),
                 .is_dequantized = tare__arena_array(memory, out->count + 1, sizeof(bool))};
    if (r.is_quantized == NULL || r.is_dequantized == NULL) return tare__out_of_memory(err);
    for (r.to = 0; r.to < out->count; r.to++) {
        const island_kind kind = out->kinds[r.to];
        if (kind != ISLAND_OBSERVER && kind != ISLAND_CONVERSION)
            tare__node_each_input(out->nodes[r.to], read_input, &r);
    }
    for (size_t i = 0; i < out->count; i++) {
        if (tare__island_of(out, i) != i) continue;
        out->float_count += out->kinds[i] == ISLAND_FLOAT;
        out->integer_count += out->kinds[i] == ISLAND_INTEGER;
    }
    return TARE_OK;
}
