// SPDX-License-Identifier: Apache-2.0
// Finds patterns, written as code, in a graph (torch's SubgraphMatcherWithNameNodeMap).
#ifndef QUANTIZERS_PATTERNS_SUBGRAPH_H
#define QUANTIZERS_PATTERNS_SUBGRAPH_H

#include "ir/graph.h"
#include "ir/module.h"

typedef struct subgraph_options {
    bool match_output;                     // the output node belongs to the pattern
    bool match_placeholder;                // a placeholder matches placeholders only
    bool keeps_overlapping;                // matches may share nodes
    bool ignore_literals;                  // any literal matches any other
    bool shares_parameters;                // several parameters may match one node
    const struct capture_example *example; // the example for capturing the code; NULL: none
} subgraph_options;

typedef struct subgraph_name {
    const char *name;
    node *node; // NULL: a constant
} subgraph_name;

/// One form of a pattern.
typedef struct subgraph_pattern {
    graph *graph;
    subgraph_options options;
    subgraph_name *names; // names in the dictionary after the results, in order
    size_t name_count;
    node **returned, **anchors; // anchors: results that only the output reads
    size_t returned_count, anchor_count;
    arena memory;
} subgraph_pattern;

/// code: "def forward(self, x, w):" .. "return (relu, {'input': x})"; the dictionary may be left
/// out. Functions of torch ("torch.nn.functional.conv2d") become the aten operators that an
/// exporter makes of them. Errors name line and column. TARE_INVALID_ARGUMENT for patterns that
/// nothing can match: empty ones, and nodes that no result needs.
tare_status tare__subgraph_parse(const char *code, size_t size, const subgraph_options *options,
                                 subgraph_pattern **out, tare_error *err);
void tare__subgraph_destroy(subgraph_pattern *p); // NULL is fine

/// A pattern in all its forms. Zero-initialized is empty.
typedef struct subgraph_forms {
    subgraph_pattern **items; // owned
    size_t count, capacity;
} subgraph_forms;
/// The form that this code becomes under each example (with none, under nothing), but those that
/// are there already.
tare_status tare__subgraph_forms_add(subgraph_forms *f, const char *code, size_t size,
                                     const subgraph_options *options,
                                     const struct capture_example *examples, size_t example_count,
                                     tare_error *err);
void tare__subgraph_forms_release(subgraph_forms *f);

/// The value that a node of the pattern matched: a node, or a literal. kind VALUE_NONE may be a
/// literal: see is_bound.
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

/// Appends the matches in `g`. They live in `memory`, and lend nodes of g.
tare_status tare__subgraph_find(const subgraph_pattern *p, const graph *g, arena *memory,
                                subgraph_matches *out, tare_error *err);
/// The node of g that a name matched; NULL: a literal, or there is no such name.
node *tare__subgraph_node(const subgraph_match *m, const char *name);
/// The node or literal that a name matched; NULL: there is no such name.
const value *tare__subgraph_value(const subgraph_match *m, const char *name);
/// The index-th edge between the node of that name and one that reads it within the match; false
/// past the end.
bool tare__subgraph_edge(const subgraph_match *m, const char *name, size_t index, node **from,
                         node **to);

#endif
