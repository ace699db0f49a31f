// SPDX-License-Identifier: Apache-2.0
/// Finding parts of an exported graph: by the modules and functions that they came from, and by
/// patterns written as code. For a walk node by node see tare/graph.h.
#ifndef TARE_SUBGRAPH_H
#define TARE_SUBGRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tare/pt2e.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- by source ---

/// The nodes that one call of a module or function became. Lent by the list it stands in.
typedef struct tare_partition {
    uint32_t struct_size;
    const char *source;            // the wanted one that it came from
    const tare_node *const *nodes; // in graph order
    size_t node_count;
    const tare_node *const *inputs; // arguments from outside that are no tensors of the model
    size_t input_count;
    const tare_node *const *outputs; // members that are read outside
    size_t output_count;
    const tare_node *const *params; // members that read tensors of the model
    size_t param_count;
} tare_partition;

typedef struct tare_partitions tare_partitions;
/// May a partition hold this node? One that is refused drops the whole partition.
typedef bool (*tare_node_filter)(void *user, const tare_node *node);

/// torch's get_source_partitions. sources: module classes ("torch.nn.Conv2d"), functions
/// ("torch.nn.functional.relu", "operator.add") and bare names of calls ("add"). A default export
/// knows classes and bare names only, a strict one classes and functions. Grouped by source, in the
/// order in which these appear. filter may be NULL. The result lends nodes of the model.
TARE_API tare_status tare_source_partitions(const tare_model *model, const char *const *sources,
                                            size_t source_count, tare_node_filter filter,
                                            void *user, tare_partitions **out, tare_error *err);
/// torchao's find_sequential_partitions: rows of `type_count` partitions, each of which is read by
/// the next. A type stands for its equivalents, too ("operator.add" for "torch.add" and "add").
/// groups: other groups of equivalents instead of torchao's, each ended by NULL, `group_count` of
/// them, lent as long as the result lives; NULL: torchao's. TARE_INVALID_ARGUMENT for types that
/// mean the same.
TARE_API tare_status tare_sequential_partitions(const tare_model *model, const char *const *types,
                                                size_t type_count, const char *const *const *groups,
                                                size_t group_count, tare_node_filter filter,
                                                void *user, tare_partitions **out, tare_error *err);
TARE_API void tare_partitions_destroy(tare_partitions *partitions);       // NULL is fine
TARE_API size_t tare_partitions_count(const tare_partitions *partitions); // of rows
/// The column-th partition of a row (0 unless sequential); false past the end.
TARE_API bool tare_partitions_at(const tare_partitions *partitions, size_t row, size_t column,
                                 tare_partition *out);

// --- by pattern ---

/// torch's SubgraphMatcher's; zero is the default.
typedef struct tare_pattern_options {
    uint32_t struct_size;
    bool match_output;      // the output node belongs to the pattern
    bool match_placeholder; // a placeholder matches placeholders only, not anything
    bool keeps_overlapping; // matches may share nodes
    bool ignore_literals;   // a literal matches any other
} tare_pattern_options;

typedef struct tare_subgraph_pattern tare_subgraph_pattern;
typedef struct tare_subgraph_matches tare_subgraph_matches;

/// A pattern in one form or several (with relu and with relu_, say), as code:
///
///   def forward(self, x, weight, bias):
///       conv2d = torch.nn.functional.conv2d(x, weight, bias)
///       relu = torch.nn.functional.relu(conv2d)
///       return (relu, {'input': x, 'conv': conv2d, 'output': relu})
///
/// Parameters match anything. The dictionary names what a match shall tell. Functions of torch
/// become the operators that torch.export makes of them, so that patterns are written like models.
/// options may be NULL. Errors name the form, line and column; TARE_INVALID_ARGUMENT for patterns
/// that nothing can match.
TARE_API tare_status tare_subgraph_pattern_create(const char *const *codes, size_t count,
                                                  const tare_pattern_options *options,
                                                  tare_subgraph_pattern **out, tare_error *err);
TARE_API void tare_subgraph_pattern_destroy(tare_subgraph_pattern *pattern); // NULL is fine
/// The matches of the first form, then those of the next. No inner node of a match is read outside
/// it. The result lends nodes of the model, and needs the pattern while it lives.
TARE_API tare_status tare_subgraph_find(const tare_subgraph_pattern *pattern,
                                        const tare_model *model, tare_subgraph_matches **out,
                                        tare_error *err);
TARE_API void tare_subgraph_matches_destroy(tare_subgraph_matches *matches); // NULL is fine
TARE_API size_t tare_subgraph_matches_count(const tare_subgraph_matches *matches);
/// Which form it is that matched.
TARE_API size_t tare_subgraph_match_form(const tare_subgraph_matches *matches, size_t index);
/// The node under a name of the dictionary; NULL: a literal stands there (None for a bias that is
/// not there), or there is no such name.
TARE_API const tare_node *tare_subgraph_match_node(const tare_subgraph_matches *matches,
                                                   size_t index, const char *name);
/// The nth edge from that node into the match, so that an input with several readers is no riddle;
/// false past the end.
TARE_API bool tare_subgraph_match_edge(const tare_subgraph_matches *matches, size_t index,
                                       const char *name, size_t nth, tare_edge *out);

#ifdef __cplusplus
}
#endif
#endif
