// SPDX-License-Identifier: Apache-2.0
// X86InductorQuantizer and its variants: annotate a table of patterns, then propagate quantization.
// Private to quantizers.
#ifndef QUANTIZERS_INDUCTOR_H
#define QUANTIZERS_INDUCTOR_H

#include "quantizers/annotate.h"

/// Partitions that may follow a layer in a chain, in this order.
typedef enum chain_member {
    CHAIN_BN = 1 << 0,   // a batch norm after the convolution
    CHAIN_ADD = 1 << 1,  // then an addition
    CHAIN_UNARY = 1 << 2 // then an activation
} chain_member;

typedef struct chain_row {
    unsigned members;     // chain_member
    const char *types[4]; // source functions or classes; the layer's is the first
} chain_row;

typedef struct inductor_recipe {
    const char *const *default_operators; // operators to which a global config applies
    const char *const *operators;         // operators that settings by operator may name
    // Settings by module type or function: pairs of the key and its operator, ended by NULL.
    const char *const *types;
    const chain_row *rows; // tried in order; those with a batch norm only in training
    size_t row_count;
    bool has_mul, propagates, has_max_pool;
} inductor_recipe;

/// The setting in use, and to which nodes it applies.
typedef struct inductor_level {
    annotating *a;
    const inductor_recipe *recipe;
    const setting *setting;
    config_specs specs;
    /// True in *out if the setting applies to the nodes of a match. TARE_UNSUPPORTED if that is
    /// ambiguous.
    tare_status (*accepts)(const struct inductor_level *l, node *const *nodes, size_t count,
                           bool *out);
} inductor_level;

/// True in *out if none of the nodes is marked and the setting applies to them.
tare_status tare__inductor_takes(const inductor_level *l, node *const *nodes, size_t count,
                                 bool *out);
/// Marks nodes with new, empty annotations, so that they are not quantized.
tare_status tare__inductor_leave_float(const inductor_level *l, node *const *nodes, size_t count);
/// Create new annotations: for a layer with its specs, and for a node without specs of inputs.
tare_status tare__inductor_layer(const inductor_level *l, node *layer, bool is_last,
                                 tare_annotation **out);
tare_status tare__inductor_plain(const inductor_level *l, node *n, bool is_last,
                                 tare_annotation **out);

tare_status tare__inductor_chain(const inductor_level *l, const chain_row *row);
tare_status tare__inductor_matmul(const inductor_level *l);
tare_status tare__inductor_mul(const inductor_level *l);
tare_status tare__inductor_propagate(const inductor_level *l);
/// Sets output specs of operators that pass their input's integers on: they share its observer.
tare_status tare__inductor_outputs(annotating *a, const inductor_recipe *recipe);

bool tare__name_is_listed(const char *name, const char *const *list);

#endif
