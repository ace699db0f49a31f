// SPDX-License-Identifier: Apache-2.0
/// Finding subgraphs of an exported program: by the modules and functions that they came from, or
/// by patterns written as code. tare/graph.h walks a graph node by node.
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

/// The nodes that one call of a module or function became. Its lists are lent by the
/// tare_partitions.
typedef struct tare_partition {
    uint32_t struct_size;
    const char *source;            // the element of `sources` that it came from
    const tare_node *const *nodes; // in graph order
    size_t node_count;
    const tare_node *const *inputs; // nodes outside that members read, without tensors of the model
    size_t input_count;
    const tare_node *const *outputs; // members that nodes outside read
    size_t output_count;
    const tare_node *const *params; // members that read tensors of the model
    size_t param_count;
} tare_partition;

typedef struct tare_partitions tare_partitions;
/// Is a node allowed in a partition? False drops the whole partition.
typedef bool (*tare_node_filter)(void *user, const tare_node *node);

/// Finds the nodes that each call of a module or function became (torch's get_source_partitions).
/// sources: [source_count], module classes ("torch.nn.Conv2d"), functions
/// ("torch.nn.functional.relu", "operator.add") and bare names of calls ("add"). A default export
/// records classes and bare names only, a strict one classes and functions. Partitions are grouped
/// by source, in the order in which sources occur in the graph. filter may be NULL. The nodes in
/// the result are lent by the model, which must outlive it. The caller destroys *out.
TARE_API tare_status tare_source_partitions(const tare_model *model, const char *const *sources,
                                            size_t source_count, tare_node_filter filter,
                                            void *user, tare_partitions **out, tare_error *err);
/// Finds chains of partitions (torchao's find_sequential_partitions). Each row of the result has
/// `type_count` partitions, one per type, each of which the next one reads. A type includes its
/// equivalents ("operator.add" for "torch.add" and "add"). groups: [group_count], groups of
/// equivalents instead of torchao's, each ended by NULL; they must outlive the result. NULL:
/// torchao's groups. filter may be NULL. TARE_INVALID_ARGUMENT for types that are equivalent. The
/// nodes in the result are lent by the model, which must outlive it. The caller destroys *out.
TARE_API tare_status tare_sequential_partitions(const tare_model *model, const char *const *types,
                                                size_t type_count, const char *const *const *groups,
                                                size_t group_count, tare_node_filter filter,
                                                void *user, tare_partitions **out, tare_error *err);
/// Frees the partitions. NULL is allowed.
TARE_API void tare_partitions_destroy(tare_partitions *partitions);
/// The number of rows: of partitions, or of chains.
TARE_API size_t tare_partitions_count(const tare_partitions *partitions);
/// Reads the partition at a row and column (0, except for chains). False past the end.
TARE_API bool tare_partitions_at(const tare_partitions *partitions, size_t row, size_t column,
                                 tare_partition *out);

// --- by pattern ---

/// The example of one parameter, with which a pattern is captured. Zero is a float32 scalar.
typedef struct tare_pattern_input {
    // The parameter is this constant, written in Python ("True", "None", "[2, 2]"). NULL: it is a
    // tensor with the dtype and shape below.
    const char *constant;
    tare_dtype dtype; // UNSET: float32
    size_t rank;
    const int64_t *shape; // [rank]; negative: a symbolic size; equal numbers mean equal sizes
} tare_pattern_input;

/// Examples for all parameters of a pattern, in order.
typedef struct tare_pattern_example {
    const tare_pattern_input *inputs; // [input_count]
    size_t input_count;
} tare_pattern_example;

/// Options of torch's SubgraphMatcher; zero means the default.
typedef struct tare_pattern_options {
    uint32_t struct_size;
    bool match_output;      // the pattern's output node must match, too
    bool match_placeholder; // a parameter matches placeholders only, instead of any node
    bool keeps_overlapping; // matches may share nodes
    bool ignore_literals;   // a literal matches any other
    bool shares_parameters; // two parameters may match one node (x + x); in torch they never do
    // Every form is captured with every example, and all results are tried. Without examples, code
    // whose operators depend on an example (interpolate: on the rank) is refused, and sizes match
    // anything.
    const tare_pattern_example *examples; // lent for the call
    size_t example_count;
} tare_pattern_options;

typedef struct tare_subgraph_pattern tare_subgraph_pattern;
typedef struct tare_subgraph_matches tare_subgraph_matches;

/// Creates a pattern from `count` alternative forms (for example with relu and with relu_), each
/// written as code:
///
///   def forward(self, x, weight, bias):
///       conv2d = torch.nn.functional.conv2d(x, weight, bias)
///       relu = torch.nn.functional.relu(conv2d)
///       return (relu, {'input': x, 'conv': conv2d, 'output': relu})
///
/// Parameters match any node. The dictionary names the nodes that a match gives access to.
/// Functions and methods of torch and Python's operators are captured as the operators that
/// torch.export makes from them, so patterns are written like models. Sizes in the code
/// (x.shape[0]) become the example's numbers; symbolic ones match any size. options may be NULL.
/// Errors name the form, the example, the line and the column; TARE_INVALID_ARGUMENT for patterns
/// that cannot match. The caller destroys *out.
TARE_API tare_status tare_subgraph_pattern_create(const char *const *codes, size_t count,
                                                  const tare_pattern_options *options,
                                                  tare_subgraph_pattern **out, tare_error *err);
/// Creates a ready-made pattern with all its usual forms: in place or not, an activation as one
/// operator or as several, the operands of a sum in either order, any literals (strides). Names of
/// layers are composed: LAYER[_bn][_add][_ACTIVATION], as in "conv", "conv2d_bn_relu",
/// "linear_gelu" or "conv_bn_add_relu", where LAYER is conv, conv1d to conv3d, conv_transpose,
/// conv_transpose1d to conv_transpose3d or linear, and ACTIVATION one of relu, relu6, hardtanh,
/// hardswish, hardsigmoid, silu, mish, gelu, leaky_relu, elu, sigmoid and tanh. The others are
/// those of tare_subgraph_ready_at. Names in a match: "input", "weight", "bias", "stride" and so on
/// as torch calls the arguments, "layer", "norm", "add" (with "other"), "activation", and "output"
/// for the last node; attention has "query", "key", "value", "mask", "scores", "softmax" and
/// "product". The caller destroys *out. TARE_NOT_FOUND, with a suggestion, for other names.
TARE_API tare_status tare_subgraph_pattern_ready(const char *name, tare_subgraph_pattern **out,
                                                 tare_error *err);

/// A name for tare_subgraph_pattern_ready.
typedef struct tare_ready_pattern {
    uint32_t struct_size;
    const char *name, *what; // "attention", and a phrase that describes it
    bool is_layer;           // _bn, _add and an activation may follow the name
} tare_ready_pattern;
/// Reads the index-th ready-made pattern; its strings are in static storage. False past the end.
TARE_API bool tare_subgraph_ready_at(size_t index, tare_ready_pattern *out);

/// Frees a pattern. Its matches must be destroyed before. NULL is allowed.
TARE_API void tare_subgraph_pattern_destroy(tare_subgraph_pattern *pattern);
/// Finds the matches of a pattern, in the order of its forms. No inner node of a match is read by a
/// node outside. The pattern and the model, which lends the nodes, must outlive the result. The
/// caller destroys *out.
TARE_API tare_status tare_subgraph_find(const tare_subgraph_pattern *pattern,
                                        const tare_model *model, tare_subgraph_matches **out,
                                        tare_error *err);
/// Frees the matches. NULL is allowed.
TARE_API void tare_subgraph_matches_destroy(tare_subgraph_matches *matches);
/// The number of matches.
TARE_API size_t tare_subgraph_matches_count(const tare_subgraph_matches *matches);
/// The index of the form that matched; index: < tare_subgraph_matches_count. Forms are counted over
/// the codes in order, each with the examples in order; those that equal an earlier one are not
/// counted.
TARE_API size_t tare_subgraph_match_form(const tare_subgraph_matches *matches, size_t index);
/// The node under a name of the dictionary. NULL if the name stands for a literal (None for a
/// missing bias) or does not exist.
TARE_API const tare_node *tare_subgraph_match_node(const tare_subgraph_matches *matches,
                                                   size_t index, const char *name);
/// Reads the node or literal (a stride, None for a missing bias) under a name of the dictionary.
/// Lent by the model. False if there is no such name.
TARE_API bool tare_subgraph_match_argument(const tare_subgraph_matches *matches, size_t index,
                                           const char *name, tare_argument *out);
/// Reads the nth edge from the node under a name to a node of the match. It distinguishes several
/// readers of one input. False past the end.
TARE_API bool tare_subgraph_match_edge(const tare_subgraph_matches *matches, size_t index,
                                       const char *name, size_t nth, tare_edge *out);

#ifdef __cplusplus
}
#endif
#endif
