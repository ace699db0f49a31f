// SPDX-License-Identifier: Apache-2.0
// Arguments of nodes and constructor values of modules as JSON.
// Private to io/native.
#ifndef IO_NATIVE_VALUE_JSON_H
#define IO_NATIVE_VALUE_JSON_H

#include "core/json/json.h"
#include "core/memory/map.h"
#include "ir/value.h"

/// nodes: name -> node *, the nodes that {"node": name} may refer to; NULL: none. Strings and items
/// are copied into `memory`.
tare_status tare__value_from_json(const json_at *at, arena *memory, const map *nodes, value *out,
                                  tare_error *err);
/// Appends v. TARE_INTERNAL for a tensor, which has no form in JSON.
tare_status tare__value_to_json(const value *v, text *out, tare_error *err);

#endif
