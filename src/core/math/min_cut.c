// SPDX-License-Identifier: Apache-2.0
// Dinic's algorithm. The vertices that the source reaches at the end are its side of the cut.
#include "core/math/min_cut.h"

#include <string.h>

#include "core/memory/alloc.h"

#define NONE SIZE_MAX

tare_status tare__cut_add_vertex(cut_graph *g, size_t *out, tare_error *err) {
    if (!tare__grow((void **)&g->first, &g->vertex_capacity, g->vertex_count, sizeof *g->first))
        return tare__out_of_memory(err);
    g->first[g->vertex_count] = NONE;
    *out = g->vertex_count++;
    return TARE_OK;
}

static tare_status add_half(cut_graph *g, size_t from, size_t to, int64_t capacity,
                            tare_error *err) {
    if (!tare__grow((void **)&g->edges, &g->edge_capacity, g->edge_count, sizeof *g->edges))
        return tare__out_of_memory(err);
    g->edges[g->edge_count] = (cut_edge){to, g->first[from], capacity};
    g->first[from] = g->edge_count++;
    return TARE_OK;
}

tare_status tare__cut_add_edge(cut_graph *g, size_t from, size_t to, int64_t capacity,
                               tare_error *err) {
    TARE_TRY(add_half(g, from, to, capacity, err));
    return add_half(g, to, from, 0, err);
}

void tare__cut_release(cut_graph *g) {
    tare__free(g->first);
    tare__free(g->edges);
    *g = (cut_graph){0};
}

typedef struct flow {
    cut_graph *g;
    size_t source, sink;
    size_t
        *level; // distance from the source along edges with remaining capacity; NONE: not reachable
    size_t *queue;
    size_t *current; // by vertex: edges before it are exhausted
    size_t *path;    // edges from the source
} flow;

// Computes distances from the source. Returns whether the sink is reachable.
static bool measure(flow *f) {
    cut_graph *g = f->g;
    size_t head = 0, tail = 0;
    for (size_t v = 0; v < g->vertex_count; v++) f->level[v] = NONE;
    f->level[f->source] = 0;
    f->queue[tail++] = f->source;
    while (head < tail) {
        const size_t v = f->queue[head++];
        for (size_t e = g->first[v]; e != NONE; e = g->edges[e].next) {
            const size_t to = g->edges[e].to;
            if (g->edges[e].capacity == 0 || f->level[to] != NONE) continue;
            f->level[to] = f->level[v] + 1;
            f->queue[tail++] = to;
        }
    }
    return f->level[f->sink] != NONE;
}

static void push(const flow *f, size_t length) {
    cut_edge *edges = f->g->edges;
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < length; i++)
        if (edges[f->path[i]].capacity < least) least = edges[f->path[i]].capacity;
    for (size_t i = 0; i < length; i++) {
        edges[f->path[i]].capacity -= least;
        edges[f->path[i] ^ 1].capacity += least;
    }
}

// Finds a path to the sink on which every edge goes up one level; 0 edges: there is none.
static size_t find_path(flow *f) {
    cut_graph *g = f->g;
    size_t v = f->source, length = 0;
    while (v != f->sink) {
        size_t *e = &f->current[v];
        while (*e != NONE &&
               (g->edges[*e].capacity == 0 || f->level[g->edges[*e].to] != f->level[v] + 1))
            *e = g->edges[*e].next;
        if (*e != NONE) {
            f->path[length++] = *e;
            v = g->edges[*e].to;
            continue;
        }
        if (v == f->source) return 0;
        // Goes back from a dead end, which is marked as unreachable.
        f->level[v] = NONE;
        v = g->edges[f->path[--length] ^ 1].to;
    }
    return length;
}

tare_status tare__cut_solve(cut_graph *g, size_t source, size_t sink, bool *is_source,
                            tare_error *err) {
    const size_t count = g->vertex_count;
    size_t *memory = tare__alloc_zeroed(4 * count + 1, sizeof *memory);
    if (memory == NULL) return tare__out_of_memory(err);
    flow f = {g, source, sink, memory, memory + count, memory + 2 * count, memory + 3 * count};
    while (measure(&f)) {
        memcpy(f.current, g->first, count * sizeof *f.current);
        for (size_t length = find_path(&f); length > 0; length = find_path(&f)) push(&f, length);
    }
    for (size_t v = 0; v < count; v++) is_source[v] = f.level[v] != NONE;
    tare__free(memory);
    return TARE_OK;
}
