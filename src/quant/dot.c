// SPDX-License-Identifier: Apache-2.0
// A model as a graphviz drawing: what computes in integers, what in floats, what converts between
// them, what observes. In converted models connected groups of one kind are islands, each in a box.
#include "quant/dot.h"

#include "core/arena.h"
#include "quant/coverage.h"
#include "quant/pass.h"

typedef enum node_kind {
    KIND_DATA, // inputs, attributes, the output
    KIND_FLOAT,
    KIND_INTEGER,
    KIND_CONVERSION,
    KIND_OBSERVER,
    KIND_PLAIN, // operators of a model where nothing has been decided yet
} node_kind;

static const struct {
    const char *attributes;
    const char *island; // what the box says; NULL: this kind makes none
} kinds[] = {
    [KIND_DATA] = {"shape=ellipse, fillcolor=gray92", NULL},
    [KIND_FLOAT] = {"fillcolor=lightsalmon", "float"},
    [KIND_INTEGER] = {"fillcolor=palegreen", "integers"},
    [KIND_CONVERSION] = {"shape=cds, fillcolor=khaki", NULL},
    [KIND_OBSERVER] = {"shape=note, fillcolor=lightblue", NULL},
    [KIND_PLAIN] = {"fillcolor=white", NULL},
};

typedef struct drawing {
    const tare_model *model;
    const node **nodes; // in the graph's order
    size_t count;
    size_t *places;  // of a node by its id
    size_t *islands; // a node's island: the place of its first node
    node_kind *kinds;
    text *out;
} drawing;

static node_kind kind_of(const tare_model *model, const node *n) {
    if (!tare__node_is_call(n)) return KIND_DATA;
    if (tare__is_observer_node(model, n)) return KIND_OBSERVER;
    if (tare__coverage_is_conversion(n)) return KIND_CONVERSION;
    if (model->stage < TARE_STAGE_REFERENCE) return KIND_PLAIN;
    const traced_op *op = tare__traced_op(model, n->origin);
    return op != NULL && op->is_quantized ? KIND_INTEGER : KIND_FLOAT;
}

static size_t island_of(const drawing *d, size_t place) {
    while (d->islands[place] != place) {
        d->islands[place] = d->islands[d->islands[place]];
        place = d->islands[place];
    }
    return place;
}

typedef struct edge {
    drawing *drawing;
    size_t to;
} edge;

static void join_islands(void *user, node *from) {
    const edge *e = user;
    drawing *d = e->drawing;
    const size_t place = d->places[from->id];
    if (d->kinds[place] != d->kinds[e->to] || kinds[d->kinds[place]].island == NULL) return;
    const size_t a = island_of(d, place), b = island_of(d, e->to);
    d->islands[a > b ? a : b] = a < b ? a : b;
}

static void write_edge(void *user, node *from) {
    const edge *e = user;
    tare__text_printf(e->drawing->out, "  n%zu -> n%zu;\n", from->id, e->drawing->nodes[e->to]->id);
}

static void each_edge(drawing *d, void (*visit)(void *user, node *from)) {
    for (size_t i = 0; i < d->count; i++) {
        edge e = {d, i};
        tare__node_each_input(d->nodes[i], visit, &e);
    }
}

static void write_node(const drawing *d, size_t place, const char *indent) {
    const node *n = d->nodes[place];
    text label = {0};
    tare__text_printf(&label, "%s\n%s", n->name, tare__node_subject(d->model, n));
    tare__text_printf(d->out, "%sn%zu [label=", indent, n->id);
    tare__text_json_string(d->out, tare__text_chars(&label)); // DOT quotes strings as JSON does
    tare__text_printf(d->out, ", %s];\n", kinds[d->kinds[place]].attributes);
    if (label.failed) d->out->failed = true;
    tare__text_release(&label);
}

static void write_island(const drawing *d, size_t first) {
    tare__text_printf(d->out,
                      "  subgraph cluster_%zu {\n    label=\"%s\"; style=\"rounded,dashed\"; "
                      "color=gray50; fontcolor=gray40;\n",
                      d->nodes[first]->id, kinds[d->kinds[first]].island);
    for (size_t i = first; i < d->count; i++)
        if (d->kinds[i] == d->kinds[first] && island_of(d, i) == first) write_node(d, i, "    ");
    tare__text_append(d->out, "  }\n");
}

static void write_nodes(const drawing *d) {
    for (size_t i = 0; i < d->count; i++) {
        if (kinds[d->kinds[i]].island == NULL)
            write_node(d, i, "  ");
        else if (island_of(d, i) == i)
            write_island(d, i);
    }
}

static tare_status list_nodes(drawing *d, arena *memory, tare_error *err) {
    const graph *g = d->model->root->graph;
    size_t most_id = 0;
    for (const node *n = g->first; n != NULL; n = n->next) {
        if (n->id > most_id) most_id = n->id;
        d->count++;
    }
    d->nodes = tare__arena_array(memory, d->count + 1, sizeof *d->nodes);
    d->kinds = tare__arena_array(memory, d->count + 1, sizeof *d->kinds);
    d->islands = tare__arena_array(memory, d->count + 1, sizeof *d->islands);
    d->places = tare__arena_array(memory, most_id + 1, sizeof *d->places);
    if (d->nodes == NULL || d->kinds == NULL || d->islands == NULL || d->places == NULL)
        return tare__out_of_memory(err);
    size_t i = 0;
    for (const node *n = g->first; n != NULL; n = n->next, i++) {
        d->nodes[i] = n;
        d->kinds[i] = kind_of(d->model, n);
        d->islands[i] = d->places[n->id] = i;
    }
    return TARE_OK;
}

tare_status tare__print_dot(const tare_model *model, text *out, tare_error *err) {
    drawing d = {.model = model, .out = out};
    arena memory = {0};
    const tare_status status = list_nodes(&d, &memory, err);
    if (status == TARE_OK) {
        tare__text_append(out, "digraph model {\n  node [shape=box, style=filled];\n");
        each_edge(&d, join_islands);
        write_nodes(&d);
        each_edge(&d, write_edge);
        tare__text_append(out, "}\n");
    }
    tare__arena_release(&memory);
    return status == TARE_OK ? tare__text_status(out, err) : status;
}
