// SPDX-License-Identifier: Apache-2.0
// The state of a derived observer.
#ifndef OBSERVE_CLASSES_DERIVED_H
#define OBSERVE_CLASSES_DERIVED_H

#include "tare/pt2e.h"

typedef struct derived_state {
    tare_derive_rule rule; // name owned; derive is NULL until tare__derived_set
    char **sources;        // names of the root's observers, in the rule's order
    size_t source_count;
} derived_state;

/// Stores copies of the rule and of the names in a new state.
tare_status tare__derived_set(derived_state *s, const tare_derive_rule *rule,
                              const char *const *sources, size_t count, tare_error *err);

#endif
