// SPDX-License-Identifier: Apache-2.0
// X86InductorQuantizer and quantizers derived from it: a recipe of patterns, then propagation.
// Private to quantizers.
#ifndef QUANTIZERS_INDUCTOR_H
#define QUANTIZERS_INDUCTOR_H

#include "quantizers/annotate.h"

/// The partitions that may follow the layer in a chain, in this order.
typedef enum chain_member {
    CHAIN_BN = 1 << 0,   // a batch norm after the convolution
    CHAIN_ADD = 1 << 1,  // then an addition
    CHAIN_UNARY = 1 << 2 // then an activation
} chain_member;

typedef struct chain_row {
    unsigned members;     // chain_member
    const char *types[4]; // sources, the layer's first
} chain_row;

typedef struct inductor_recipe {
    const char *const
        *default_operators;       // the operators that a config for the whole model applies to
    const char *const *operators; // what settings by operator may name
    // Settings by module type and function: pairs of names, NULL at the end.
    const char *const *types;
    const chain_row *rows; // in order; those with a batch norm only in training
    size_t row_count;
    bool has_mul, propagates, has_max_pool;
} inductor_recipe;

/// The level of settings that is at work: which lists of nodes it takes.
typedef struct inductor_level {
    annotating *a;
    const inductor_recipe *recipe;
    const setting *setting;
    config_specs specs;
    /// TARE_UNSUPPORTED if the level cannot decide.
    tare_status (*accepts)(const struct inductor_level *l, node *const *nodes, size_t count,
                           bool *out);
} inductor_level;

/// True if the nodes are free (none is marked) and the level accepts them.
tare_status tare__inductor_takes(const inductor_level *l, node *const *nodes, size_t count,
                                 bool *out);
/// Marks nodes with new, empty annotations: they are not to be quantized.
tare_status tare__inductor_leave_float(const inductor_level *l, node *const *nodes, size_t count);
/// New annotations: of a layer; without inputs.
tare_status tare__inductor_layer(const inductor_level *l, node *layer, bool is_last,
                                 tare_annotation **out);
tare_status tare__inductor_plain(const inductor_level *l, node *n, bool is_last,
                                 tare_annotation **out);

tare_status tare__inductor_chain(const inductor_level *l, const chain_row *row);
tare_status tare__inductor_matmul(const inductor_level *l);
tare_status tare__inductor_mul(const inductor_level *l);
tare_status tare__inductor_propagate(const inductor_level *l);
/// Outputs of operators that hand their input's integers on.
tare_status tare__inductor_outputs(annotating *a, const inductor_recipe *recipe);

bool tare__name_is_listed(const char *name, const char *const *list);

#endif
