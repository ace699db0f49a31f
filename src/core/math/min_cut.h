// SPDX-License-Identifier: Apache-2.0
// Minimum cuts: the cheapest division of vertices into two sides, where every edge from the
// source's side to the sink's side costs its capacity.
#ifndef CORE_MATH_MIN_CUT_H
#define CORE_MATH_MIN_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

typedef struct cut_edge {
    size_t to, next; // next: another edge of the same vertex; SIZE_MAX: none
    int64_t capacity;
} cut_edge;

/// Edge e and its reverse are e and e ^ 1. Zero-initialized is empty.
typedef struct cut_graph {
    size_t *first; // by vertex
    size_t vertex_count, vertex_capacity;
    cut_edge *edges;
    size_t edge_count, edge_capacity;
} cut_graph;

/// More than any sum of real costs, for edges that must not be cut.
#define CUT_NEVER (INT64_MAX / 4)

tare_status tare__cut_add_vertex(cut_graph *g, size_t *out, tare_error *err);
/// capacity: >= 0.
tare_status tare__cut_add_edge(cut_graph *g, size_t from, size_t to, int64_t capacity,
                               tare_error *err);
/// Consumes the capacities. *is_source: [vertex_count], whether a vertex is on the source's side of
/// a minimum cut; of several minimum cuts, the one with the fewest such vertices. Source: E. A.
/// Dinic, Algorithm for solution of a problem of maximum flow in networks, 1970.
tare_status tare__cut_solve(cut_graph *g, size_t source, size_t sink, bool *is_source,
                            tare_error *err);
void tare__cut_release(cut_graph *g);

#endif
