// SPDX-License-Identifier: Apache-2.0
// Partitions: the nodes that came from one call of a function or module (torch's
// get_source_partitions), and chains of partitions (torchao's find_sequential_partitions).
#ifndef QUANTIZERS_PATTERNS_PARTITIONS_H
#define QUANTIZERS_PATTERNS_PARTITIONS_H

#include "quantizers/patterns/node_source.h"

typedef struct node_list {
    node **items;
    size_t count, capacity;
} node_list;

/// The nodes of one call, in graph order.
typedef struct partition {
    const char *source; // the requested source to which it belongs
    node_list nodes;
    node_list inputs;  // arguments from outside, except tensors of the model
    node_list outputs; // nodes with users outside
    node_list params;  // nodes that read tensors of the model
} partition;

typedef struct partition_list {
    partition *items; // in the order of their sources' first nodes, then of their own
    size_t count;
} partition_list;

/// Selects nodes; a partition with a refused node is dropped.
typedef struct node_filter {
    bool (*accepts)(void *user, const node *n); // NULL: all
    void *user;
} node_filter;

/// Finds the partitions of the `wanted` sources. Results live in `memory`.
tare_status tare__source_partitions(const graph *g, const node_sources *sources,
                                    const char *const *wanted, size_t wanted_count,
                                    const node_filter *filter, arena *memory, partition_list *out,
                                    tare_error *err);

/// True if a partition of one of these sources (NULL-terminated) would contain the node.
bool tare__node_is_from(const node_sources *sources, const node *n, const char *const *wanted);

/// True if a node in `b` reads a node of `a`.
bool tare__partitions_are_connected(const partition *a, const partition *b);

/// Groups of equivalent names, NULL-terminated each.
typedef const char *const *equivalent_group;
typedef struct equivalents {
    const equivalent_group *groups;
    size_t count;
} equivalents;
/// torchao's eight groups.
extern const equivalents tare__equivalents;

typedef struct chain_list {
    const partition **items; // [count][width]
    size_t count, width, capacity;
} chain_list;

/// Finds all chains of partitions: one partition for each type, in order, each read by the next.
/// Chains are ordered by the partition of the first type, then the next. TARE_INVALID_ARGUMENT if
/// two types are equivalent.
tare_status tare__sequential_partitions(const graph *g, const node_sources *sources,
                                        const char *const *types, size_t type_count,
                                        const equivalents *same, const node_filter *filter,
                                        arena *memory, chain_list *out, tare_error *err);

#endif
