// SPDX-License-Identifier: Apache-2.0
// The graph of the model that runs, as JSON.
#include "report/graph.h"

#include <string.h>

#include "report/report.h"
#include "support/report.h"
#include "tare/memory.h"

// --- reading ---

static graph_node *add_node(graph_drawing *g) {
    if (g->count == g->capacity) {
        const size_t capacity = g->capacity > 0 ? 2 * g->capacity : 64;
        graph_node *nodes = tare_memory_reallocate(g->nodes, capacity, sizeof *nodes);
        if (nodes == NULL) return NULL;
        g->nodes = nodes;
        g->capacity = capacity;
    }
    graph_node *n = &g->nodes[g->count++];
    *n = (graph_node){.inputs = NULL};
    return n;
}

// A copy; NULL if there is nothing to copy, or memory ran out.
static void *copy_items(const void *items, size_t count, size_t size) {
    void *copy = count > 0 ? tare_memory_allocate(count, size) : NULL;
    if (copy != NULL) memcpy(copy, items, count * size);
    return copy;
}

// Inputs precede their readers.
static bool is_constant(const graph_drawing *g, const tare_island_node *node) {
    if (strcmp(node->subject, "get_attr") == 0) return true;
    for (size_t i = 0; i < node->input_count; i++)
        if (!g->nodes[node->inputs[i]].is_constant) return false;
    return node->input_count > 0;
}

static tare_status keep_node(void *user, size_t index, const tare_island_node *node,
                             tare_error *err) {
    graph_drawing *g = user;
    (void)index;
    (void)err;
    graph_node *n = add_node(g);
    if (n == NULL) return TARE_OUT_OF_MEMORY;
    const size_t operators = node->operator_count, inputs = node->input_count;
    *n = (graph_node){.name = node->name,
                      .subject = node->subject,
                      .kind = node->kind,
                      .island = node->island,
                      .operators = copy_items(node->operators, operators, sizeof *n->operators),
                      .inputs = copy_items(node->inputs, inputs, sizeof *n->inputs),
                      .is_constant = is_constant(g, node)};
    if ((operators > 0 && n->operators == NULL) || (inputs > 0 && n->inputs == NULL))
        return TARE_OUT_OF_MEMORY;
    n->operator_count = operators;
    n->input_count = inputs;
    g->shown_count += !n->is_constant;
    return TARE_OK;
}

static void release(graph_drawing *g) {
    for (size_t i = 0; i < g->count; i++) {
        tare_memory_release(g->nodes[i].operators);
        tare_memory_release(g->nodes[i].inputs);
    }
    tare_memory_release(g->nodes);
}

// --- writing ---

static void write_node(const graph_node *n, json_out *json) {
    json_out_open(json, NULL, '{');
    json_out_string(json, "name", n->name);
    json_out_string(json, "operator", n->subject);
    json_out_string(json, "kind", n->kind);
    json_out_open(json, "operators", '[');
    for (size_t i = 0; i < n->operator_count; i++) json_out_string(json, NULL, n->operators[i]);
    json_out_close(json, ']');
    if (n->island != SIZE_MAX) json_out_integer(json, "island", n->island);
    if (n->is_constant) json_out_bool(json, "constant", true);
    json_out_open(json, "inputs", '[');
    for (size_t i = 0; i < n->input_count; i++) json_out_integer(json, NULL, n->inputs[i]);
    json_out_close(json, ']');
    json_out_close(json, '}');
}

tare_status report_write_graph(const tare_model *model, json_out *json, tare_error *err) {
    graph_drawing g = {.count = 0};
    tare_status status = tare_model_visit_islands(model, keep_node, &g, err);
    if (status == TARE_OK) {
        json_out_open(json, "graph", '{');
        json_out_open(json, "nodes", '[');
        for (size_t i = 0; i < g.count; i++) write_node(&g.nodes[i], json);
        json_out_close(json, ']');
        status = write_layout(&g, json, err);
        json_out_close(json, '}');
    }
    release(&g);
    return status;
}
