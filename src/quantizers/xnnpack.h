// SPDX-License-Identifier: Apache-2.0
// XNNPACKQuantizer's annotators: each annotates one pattern in the whole graph.
// Private to quantizers.
#ifndef QUANTIZERS_XNNPACK_H
#define QUANTIZERS_XNNPACK_H

#include "ops/op.h"
#include "quantizers/annotate.h"

/// The arguments of an annotator: a config, and the nodes that it may annotate.
typedef struct xnnpack_level {
    annotating *a;
    config_specs specs;
    node_filter filter;
} xnnpack_level;

typedef struct xnnpack_annotator {
    const char *name;
    const op_overload *operators; // one of which the pattern holds; for settings by operator
    const op_overload *calls;     // those that it looks for
    bool has_relu;                // which a ReLU follows
    tare_status (*annotate)(const xnnpack_level *l, const struct xnnpack_annotator *row);
} xnnpack_annotator;

/// A convolution or linear layer; one in training, with a batch norm.
tare_status tare__xnnpack_layer(const xnnpack_level *l, const xnnpack_annotator *row);
tare_status tare__xnnpack_normed_layer(const xnnpack_level *l, const xnnpack_annotator *row);
/// A linear layer whose weight or bias may be annotated already.
tare_status tare__xnnpack_linear(const xnnpack_level *l, const xnnpack_annotator *row);
/// A sum or product of two tensors.
tare_status tare__xnnpack_binary(const xnnpack_level *l, const xnnpack_annotator *row);
tare_status tare__xnnpack_adaptive_avg_pool2d(const xnnpack_level *l, const xnnpack_annotator *row);
tare_status tare__xnnpack_gru_io_only(const xnnpack_level *l, const xnnpack_annotator *row);
tare_status tare__xnnpack_cat(const xnnpack_level *l, const xnnpack_annotator *row);

/// Operators whose output keeps its input's observer.
tare_status tare__xnnpack_propagate(annotating *a);

extern const op_overload tare__add_calls[], tare__mul_calls[], tare__pool_calls[],
    tare__cat_calls[];

/// Visits every call of the row's, and the ReLU that alone reads it; without a ReLU the call is
/// both the first and the last node.
typedef tare_status (*pair_visitor)(const xnnpack_level *l, node *first, node *last);
tare_status tare__xnnpack_each(const xnnpack_level *l, const xnnpack_annotator *row,
                               pair_visitor visit);

/// True if none of these nodes is marked and the filter accepts all. NULLs are skipped.
bool tare__xnnpack_is_free(const xnnpack_level *l, node *const *nodes, size_t count);

#endif
