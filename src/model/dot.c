// SPDX-License-Identifier: Apache-2.0
// Writes a model as a graphviz graph with integer nodes, float nodes, conversions and observers. In
// converted models each island, a connected group of one kind, is a cluster.
#include "model/dot.h"

#include "core/memory/arena.h"
#include "model/islands.h"
#include "model/pass.h"

static const struct {
    const char *attributes;
    const char *island; // label of its clusters; NULL: this kind has none
} kinds[] = {
    [ISLAND_DATA] = {"shape=ellipse, fillcolor=gray92", NULL},
    [ISLAND_FLOAT] = {"fillcolor=lightsalmon", "float"},
    [ISLAND_INTEGER] = {"fillcolor=palegreen", "integers"},
    [ISLAND_CONVERSION] = {"shape=cds, fillcolor=khaki", NULL},
    [ISLAND_OBSERVER] = {"shape=note, fillcolor=lightblue", NULL},
    [ISLAND_PLAIN] = {"fillcolor=white", NULL},
};

typedef struct drawing {
    const tare_model *model;
    islands islands;
    text *out;
} drawing;

// The edge to the node at position `to`.
typedef struct edge {
    const drawing *drawing;
    size_t to;
} edge;

static void write_edge(void *user, node *from) {
    const edge *e = user;
    tare__text_printf(e->drawing->out, "  n%zu -> n%zu;\n", from->id,
                      e->drawing->islands.nodes[e->to]->id);
}

static void write_edges(const drawing *d) {
    for (size_t i = 0; i < d->islands.count; i++) {
        edge e = {d, i};
        tare__node_each_input(d->islands.nodes[i], write_edge, &e);
    }
}

static void write_node(const drawing *d, size_t position, const char *indent) {
    const node *n = d->islands.nodes[position];
    text label = {0};
    tare__text_printf(&label, "%s\n%s", n->name, tare__node_subject(d->model, n));
    tare__text_printf(d->out, "%sn%zu [label=", indent, n->id);
    tare__text_json_string(d->out, tare__text_chars(&label)); // DOT quotes strings like JSON
    tare__text_printf(d->out, ", %s];\n", kinds[d->islands.kinds[position]].attributes);
    if (label.failed) d->out->failed = true;
    tare__text_release(&label);
}

static void write_island(const drawing *d, size_t first) {
    tare__text_printf(d->out,
                      "  subgraph cluster_%zu {\n    label=\"%s\"; style=\"rounded,dashed\"; "
                      "color=gray50; fontcolor=gray40;\n",
                      d->islands.nodes[first]->id, kinds[d->islands.kinds[first]].island);
    for (size_t i = first; i < d->islands.count; i++)
        if (d->islands.kinds[i] == d->islands.kinds[first] &&
            tare__island_of(&d->islands, i) == first)
            write_node(d, i, "    ");
    tare__text_append(d->out, "  }\n");
}

static void write_nodes(const drawing *d) {
    for (size_t i = 0; i < d->islands.count; i++) {
        if (kinds[d->islands.kinds[i]].island == NULL)
            write_node(d, i, "  ");
        else if (tare__island_of(&d->islands, i) == i)
            write_island(d, i);
    }
}

tare_status tare__print_dot(const tare_model *model, text *out, tare_error *err) {
    drawing d = {.model = model, .out = out};
    arena memory = {0};
    const tare_status status = tare__islands_find(model, &memory, &d.islands, err);
    if (status == TARE_OK) {
        tare__text_append(out, "digraph model {\n  node [shape=box, style=filled];\n");
        write_nodes(&d);
        write_edges(&d);
        tare__text_append(out, "}\n");
    }
    tare__arena_release(&memory);
    return status == TARE_OK ? tare__text_status(out, err) : status;
}
