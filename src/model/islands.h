// SPDX-License-Identifier: Apache-2.0
// Islands: connected groups of integer nodes or of float nodes, and the number of conversions
// between them.
#ifndef MODEL_ISLANDS_H
#define MODEL_ISLANDS_H

#include "model/model.h"

typedef enum island_kind {
    ISLAND_DATA, // inputs, attributes, numbers, the output
    ISLAND_FLOAT,
    ISLAND_INTEGER,
    ISLAND_CONVERSION, // quantize, dequantize
    ISLAND_OBSERVER,
    ISLAND_PLAIN, // operators of a model before any decision
} island_kind;

typedef struct islands {
    const node **nodes; // in the graph's order
    size_t count;
    size_t *positions; // position of a node, by its id
    size_t *parent;    // union-find; see tare__island_of
    island_kind *kinds;
    size_t float_count, integer_count; // of islands
    // Number of distinct tensors that are quantized, and dequantized, between islands, inputs and
    // outputs.
    size_t quantize_count, dequantize_count;
} islands;

/// Finds the islands; the result lives in `memory`. For a prepared model: the expected islands.
tare_status tare__islands_find(const tare_model *model, arena *memory, islands *out,
                               tare_error *err);
/// The position of the first node of the island to which the node at `position` belongs.
size_t tare__island_of(const islands *x, size_t position);
static inline bool tare__island_has_members(island_kind kind) {
    return kind == ISLAND_FLOAT || kind == ISLAND_INTEGER;
}

#endif
