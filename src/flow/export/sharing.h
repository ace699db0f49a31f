// SPDX-License-Identifier: Apache-2.0
// Which edges and nodes are watched by one observer: torch's rules for explicit and implicit
// sharing, but independent of the order of the graph where torch is not.
// Private to flow/export.
#ifndef FLOW_EXPORT_SHARING_H
#define FLOW_EXPORT_SHARING_H

#include "core/memory/arena.h"
#include "core/memory/map.h"
#include "model/model.h"

/// An annotated edge (from, node), or with from NULL the output of `node`.
typedef struct qspec_key {
    node *from, *node;
    tare_qspec *spec;            // lent by the annotation; NULL: None
    size_t target;               // of a shared spec: the index of the key that it points at
    size_t parent;               // union-find
    size_t group;                // numbered by first appearance
    size_t joined;               // 1 + the key whose group it joined first; 0: none
    bool joined_implicitly;      // their specs agree; else the spec says so
    const tare_qspec *root_spec; // where following shared specs ends; NULL: None
} qspec_key;

/// In torch's order: per node its inputs in the order of its annotation, then its output.
typedef struct qspec_keys { // zero-initialized is empty
    qspec_key *items;       // in the arena that collect was given
    size_t count, group_count;
    map by_name; // tare__qspec_keys_release frees it
} qspec_keys;

/// Every key of the model's annotations. TARE_NOT_FOUND for a spec on an edge that does not exist.
tare_status tare__qspec_keys_collect(const tare_model *model, arena *memory, qspec_keys *out,
                                     tare_error *err);
void tare__qspec_keys_release(qspec_keys *keys);
/// The index of a key; keys->count if there is none. from: NULL for a node's output.
size_t tare__qspec_keys_find(const qspec_keys *keys, const char *from, const char *node_name);

/// Fills root_spec and group. TARE_NOT_FOUND for a shared spec that points at what is not
/// annotated; TARE_INVALID_ARGUMENT for keys that wait for each other.
tare_status tare__qspec_keys_share(qspec_keys *keys, const tare_model *model, tare_error *err);

/// TARE_INVALID_ARGUMENT for keys that share with or derive from each other, so that none says how:
/// names the fewest that do. has_groups: keys that joined a group wait for the spec that it goes
/// by.
tare_status tare__qspec_keys_check_rings(const qspec_keys *keys, bool has_groups, tare_error *err);

/// "('x', 'conv')" or "'conv'".
void tare__qspec_key_text(const qspec_key *key, text *out);

#endif
