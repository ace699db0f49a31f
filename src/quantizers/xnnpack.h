// SPDX-License-Identifier: Apache-2.0
// XNNPACKQuantizer's annotators. Each annotates one pattern in the whole graph.
// Private to quantizers.
#ifndef QUANTIZERS_XNNPACK_H
#define QUANTIZERS_XNNPACK_H

#include "ops/op.h"
#include "quantizers/annotate.h"

/// The arguments of an annotator: the specs of a config, and the nodes that it may annotate.
typedef struct xnnpack_level {
    annotating *a;
    config_specs specs;
    node_filter filter;
} xnnpack_level;

typedef struct xnnpack_annotator {
    const char *name;
    const op_overload *operators; // the operators that it annotates, for settings by operator
    const op_overload *calls;     // the calls that it searches
    bool has_relu;                // the pattern ends with a ReLU
    tare_status (*annotate)(const xnnpack_level *l, const struct xnnpack_annotator *row);
} xnnpack_annotator;

/// Annotate convolutions or linear layers; the second, in training, those with a batch norm.
tare_status tare__xnnpack_layer(const xnnpack_level *l, const xnnpack_annotator *row);
tare_status tare__xnnpack_normed_layer(const xnnpack_level *l, const xnnpack_annotator *row);
/// Annotates linear layers, whose weight or bias may be annotated already.
tare_status tare__xnnpack_linear(const xnnpack_level *l, const xnnpack_annotator *row);
/// Annotates sums or products of two tensors.
tare_status tare__xnnpack_binary(const xnnpack_level *l, const xnnpack_annotator *row);
tare_status tare__xnnpack_adaptive_avg_pool2d(const xnnpack_level *l, const xnnpack_annotator *row);
tare_status tare__xnnpack_gru_io_only(const xnnpack_level *l, const xnnpack_annotator *row);
tare_status tare__xnnpack_cat(const xnnpack_level *l, const xnnpack_annotator *row);

/// Annotates operators whose output shares the observer of the input.
tare_status tare__xnnpack_propagate(annotating *a);

extern const op_overload tare__add_calls[], tare__mul_calls[], tare__pool_calls[],
    tare__cat_calls[];

/// Visits every call that the annotator searches, with the ReLU that is its only user; without a
/// ReLU, first and last are the call itself.
typedef tare_status (*pair_visitor)(const xnnpack_level *l, node *first, node *last);
tare_status tare__xnnpack_each(const xnnpack_level *l, const xnnpack_annotator *row,
                               pair_visitor visit);

/// True if none of these nodes is marked and the filter accepts all of them. NULL entries are
/// skipped.
bool tare__xnnpack_is_free(const xnnpack_level *l, node *const *nodes, size_t count);

#endif
