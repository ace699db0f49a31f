// SPDX-License-Identifier: Apache-2.0
// XNNPACKQuantizer's annotators: each looks for one pattern in the whole graph.
// Private to quantizers.
#ifndef QUANTIZERS_XNNPACK_H
#define QUANTIZERS_XNNPACK_H

#include "ops/op.h"
#include "quantizers/annotate.h"

/// What an annotator is given: a config, and which nodes it may take.
typedef struct xnnpack_level {
    annotating *a;
    config_specs specs;
    node_filter filter;
} xnnpack_level;

typedef struct xnnpack_annotator {
    const char *name;
    const op_overload *operators; // one of which the pattern holds; for settings by operator
    tare_status (*annotate)(const xnnpack_level *l);
} xnnpack_annotator;

tare_status tare__xnnpack_linear_relu(const xnnpack_level *l);
tare_status tare__xnnpack_linear(const xnnpack_level *l);
tare_status tare__xnnpack_conv_relu(const xnnpack_level *l);
tare_status tare__xnnpack_conv(const xnnpack_level *l);
tare_status tare__xnnpack_conv_transpose_relu(const xnnpack_level *l);
tare_status tare__xnnpack_conv_bn_relu(const xnnpack_level *l);
tare_status tare__xnnpack_conv_bn(const xnnpack_level *l);
tare_status tare__xnnpack_conv_transpose_bn_relu(const xnnpack_level *l);
tare_status tare__xnnpack_conv_transpose_bn(const xnnpack_level *l);
tare_status tare__xnnpack_adaptive_avg_pool2d(const xnnpack_level *l);
tare_status tare__xnnpack_gru_io_only(const xnnpack_level *l);
tare_status tare__xnnpack_add_relu(const xnnpack_level *l);
tare_status tare__xnnpack_add(const xnnpack_level *l);
tare_status tare__xnnpack_mul_relu(const xnnpack_level *l);
tare_status tare__xnnpack_mul(const xnnpack_level *l);
tare_status tare__xnnpack_cat(const xnnpack_level *l);

/// Operators whose output keeps its input's observer.
tare_status tare__xnnpack_propagate(annotating *a);

extern const op_overload tare__linear_calls[], tare__conv_calls[], tare__conv_transpose_calls[],
    tare__add_calls[], tare__mul_calls[], tare__pool_calls[], tare__cat_calls[];

/// Visits every call of one of these operators that only a ReLU reads, and that ReLU; every call,
/// as both the first and the last node.
typedef tare_status (*pair_visitor)(const xnnpack_level *l, node *first, node *last);
tare_status tare__xnnpack_each_with_relu(const xnnpack_level *l, const op_overload *calls,
                                         pair_visitor visit);
tare_status tare__xnnpack_each_alone(const xnnpack_level *l, const op_overload *calls,
                                     pair_visitor visit);

/// None of these nodes is marked, and the filter accepts all. NULLs are passed over.
bool tare__xnnpack_is_free(const xnnpack_level *l, node *const *nodes, size_t count);

#endif
