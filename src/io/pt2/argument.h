// SPDX-License-Identifier: Apache-2.0
// Arguments of a program's nodes as values.
// Private to io/pt2.
#ifndef IO_PT2_ARGUMENT_H
#define IO_PT2_ARGUMENT_H

#include "core/json/json.h"
#include "core/memory/map.h"
#include "ir/value.h"

typedef struct pt2_names {
    const map *values; // name -> the node * whose result has this name
    arena *memory;     // of lists
    tare_error *err;
    /// Reads {"name": .., "graph": ..}; NULL: graphs are no arguments here.
    tare_status (*read_graph)(void *user, const json_at *at, value *out);
    void *user;
} pt2_names;

/// The only key of a union (an object) and its value. Fails unless there is exactly one key.
tare_status tare__pt2_union(const json_at *at, const char **key, json_at *body, tare_error *err);
/// Reads {"as_ints": [1, 2]} and similar. Texts are lent by the JSON.
tare_status tare__pt2_argument(const pt2_names *names, const json_at *at, value *out);
/// Reads {"name": ..}, which refers to the result of an earlier node.
tare_status tare__pt2_value_named(const pt2_names *names, const json_at *at, value *out);

#endif
