// SPDX-License-Identifier: Apache-2.0
// Ranges of values, in the reference, that a compared model quantizes.
#ifndef DEBUG_COMPARE_RANGES_H
#define DEBUG_COMPARE_RANGES_H

#include "core/memory/map.h"
#include "debug/analyze/ranges.h"

typedef struct compared_ranges {
    range_entry *items;
    size_t count, capacity;
    map names; // node of the model -> index + 1
} compared_ranges;

/// Adds the values of a run: `floats` of the reference (float32), computed by its node `source`
/// ("": an input), and `result`, which `n` of the model computes instead. No effect if `result` has
/// no scale.
tare_status tare__compared_ranges_add(compared_ranges *r, const node *n, const char *source,
                                      const tare_tensor *floats, const tare_tensor *result,
                                      tare_error *err);
void tare__compared_ranges_end(compared_ranges *r);

#endif
