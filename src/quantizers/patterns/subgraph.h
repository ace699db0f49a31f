// SPDX-License-Identifier: Apache-2.0
// Finds subgraphs that match patterns, which are written as code (torch's
// SubgraphMatcherWithNameNodeMap).
#ifndef QUANTIZERS_PATTERNS_SUBGRAPH_H
#define QUANTIZERS_PATTERNS_SUBGRAPH_H

#include "ir/graph.h"
#include "ir/module.h"

typedef struct subgraph_options {
    bool match_output;                     // the output node is part of the pattern
    bool match_placeholder;                // a placeholder matches placeholders only
    bool keeps_overlapping;                // matches may share nodes
    bool ignore_literals;                  // a literal matches any other literal
    bool shares_parameters;                // several parameters may match one node
    const struct capture_example *example; // the example for capturing the code; NULL: none
} subgraph_options;

typedef struct subgraph_name {
    const char *name;
    node *node; // NULL: a constant
} subgraph_name;

/// One form of a pattern: a graph with named nodes.
typedef struct subgraph_pattern {
    graph *graph;
    subgraph_options options;
    subgraph_name *names; // from the dictionary after the results, in order
    size_t name_count;
    node **returned, **anchors; // anchors: results without users other than the output
    size_t returned_count, anchor_count;
    arena memory;
} subgraph_pattern;

/// Parses a pattern: "def forward(self, x, w):" .. "return (relu, {'input': x})"; the dictionary is
/// optional. Functions of torch ("torch.nn.functional.conv2d") become the aten operators that an
/// exporter emits. Errors name line and column. TARE_INVALID_ARGUMENT for patterns that cannot
/// match: empty ones, and those with nodes on which no result depends.
tare_status tare__subgraph_parse(const char *code, size_t size, const subgraph_options *options,
                                 subgraph_pattern **out, tare_error *err);
void tare__subgraph_destroy(subgraph_pattern *p); // NULL is fine

/// All forms of a pattern. Zero-initialized is empty.
typedef struct subgraph_forms {
    subgraph_pattern **items; // owned
    size_t count, capacity;
} subgraph_forms;
/// Parses the code under each example (or once without one) and adds the forms that are not there
/// already.
tare_status tare__subgraph_forms_add(subgraph_forms *f, const char *code, size_t size,
                                     const subgraph_options *options,
                                     const struct capture_example *examples, size_t example_count,
                                     tare_error *err);
void tare__subgraph_forms_release(subgraph_forms *f);

/// What a node of the pattern matched: a node or a literal. VALUE_NONE may be a matched literal:
/// see is_bound.
typedef struct subgraph_binding {
    bool is_bound;
    value v;
} subgraph_binding;

typedef struct subgraph_match {
    const subgraph_pattern *pattern;
    subgraph_binding *by_id; // by the pattern's node ids
} subgraph_match;

typedef struct subgraph_matches {
    subgraph_match *items;
    size_t count, capacity;
} subgraph_matches;

/// Appends the matches in `g`. They live in `memory` and refer to nodes of g.
tare_status tare__subgraph_find(const subgraph_pattern *p, const graph *g, arena *memory,
                                subgraph_matches *out, tare_error *err);
/// The node of g that a named node matched; NULL: a literal, or an unknown name.
node *tare__subgraph_node(const subgraph_match *m, const char *name);
/// The node or literal that a named node matched; NULL: an unknown name.
const value *tare__subgraph_value(const subgraph_match *m, const char *name);
/// The index-th edge from the named node to a user inside the match; false past the end.
bool tare__subgraph_edge(const subgraph_match *m, const char *name, size_t index, node **from,
                         node **to);

#endif
