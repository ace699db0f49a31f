// SPDX-License-Identifier: Apache-2.0
// The decision record: an append-only list of decisions in order.
// Private to model.
#ifndef MODEL_RECORD_H
#define MODEL_RECORD_H

#include "core/error.h"
#include "core/json/json.h"
#include "core/memory/arena.h"
#include "core/memory/map.h"
#include "tare/record.h"

typedef struct record {
    arena memory;
    tare_decision *items;
    size_t count, capacity;
} record;

/// Adds a decision. Strings are copied; NULL counts as "". The reason is a printf format.
tare_status tare__record_add(record *r, const tare_decision *d, tare_error *err, const char *reason,
                             ...) TARE_PRINTF(4, 5);
/// Adds a copy of a decision with its reason.
tare_status tare__record_keep(record *r, const tare_decision *d, tare_error *err);
/// Removes the decisions by a rule.
void tare__record_remove(record *r, const char *rule);
tare_status tare__record_copy(record *to, const record *from, tare_error *err); // appends
/// Appends the decisions about a part of the model, from index `first` on: its nodes are renamed to
/// PATH, separator, NODE.
tare_status tare__record_append_inner(record *to, const record *from, size_t first,
                                      const char *path, char separator, tare_error *err);
void tare__record_release(record *r);
/// Repeats the last decision about a node's annotation for the node that replaces it.
tare_status tare__record_inherit(record *r, const char *from, const char *to, tare_error *err);
/// Collects the nodes with a given decision ("left float") as keys; their values are not NULL.
tare_status tare__record_decided(const record *r, const char *decision, map *names,
                                 tare_error *err);
tare_status tare__record_to_json(const record *r, text *out, tare_error *err);
tare_status tare__record_from_json(record *r, const json_at *at, tare_error *err);

#endif
