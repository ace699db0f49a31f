// SPDX-License-Identifier: Apache-2.0
// Which edges and nodes share an observer: torch's rules for explicit and implicit sharing, but
// independent of the order of nodes where torch's are not.
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
    size_t target;               // of a shared spec: index of the key that it refers to
    size_t parent;               // union-find
    size_t group;                // numbered by first occurrence
    size_t joined;               // 1 + the key whose group it joined first; 0: none
    bool joined_implicitly;      // by equal specs, not by a shared spec
    const tare_qspec *root_spec; // the end of the chain of shared specs; NULL: None
} qspec_key;

/// In torch's order: for each node its inputs in the annotation's order, then its output.
typedef struct qspec_keys { // zero-initialized is empty
    qspec_key *items;       // in the arena passed to collect
    size_t count, group_count;
    map by_name; // tare__qspec_keys_release frees it
} qspec_keys;

/// Collects the keys of all annotations. TARE_NOT_FOUND for a spec on an edge that does not exist.
tare_status tare__qspec_keys_collect(const tare_model *model, arena *memory, qspec_keys *out,
                                     tare_error *err);
void tare__qspec_keys_release(qspec_keys *keys);
/// The index of a key; keys->count if there is none. from: NULL for a node's output.
size_t tare__qspec_keys_find(const qspec_keys *keys, const char *from, const char *node_name);

/// Sets root_spec and group. TARE_NOT_FOUND if a shared spec refers to a key that is not annotated;
/// TARE_INVALID_ARGUMENT for cycles of shared specs.
tare_status tare__qspec_keys_share(qspec_keys *keys, const tare_model *model, tare_error *err);

/// TARE_INVALID_ARGUMENT for a cycle of keys that share with or derive from each other; names a
/// shortest one. has_groups: keys that joined a group depend on the spec of that group.
tare_status tare__qspec_keys_check_rings(const qspec_keys *keys, bool has_groups, tare_error *err);

/// "('x', 'conv')" or "'conv'".
void tare__qspec_key_text(const qspec_key *key, text *out);

#endif
