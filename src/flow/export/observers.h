// SPDX-License-Identifier: Apache-2.0
// One observer for each sharing group, created from the group's spec.
// Private to flow/export.
#ifndef FLOW_EXPORT_OBSERVERS_H
#define FLOW_EXPORT_OBSERVERS_H

#include "flow/export/sharing.h"
#include "model/pass.h"

struct tare_observer_map {
    pass *base;
    qspec_keys keys;
    module **by_group;              // owned; NULL: the group is not observed
    const tare_qspec **group_specs; // from which the observer was created
};

/// Creates groups and observers for all annotations. Must be released, also after a failure.
tare_status tare__observer_map_fill(pass *p, bool is_qat, tare_observer_map *out);
void tare__observer_map_release(tare_observer_map *set);
/// The observer of an edge (from, n), or with from NULL of n's output; NULL: none.
module *tare__observer_map_get(const tare_observer_map *set, const node *from, const node *n);
/// Step, after observers were inserted: tells derived observers the names of their sources.
tare_status tare__observer_map_link(const tare_observer_map *set);

/// Step, at the end: records what was annotated and shared.
tare_status tare__pt2e_note_facts(pass *p, const tare_observer_map *set,
                                  const tare_quantizer *quantizer);

/// The parameters of an observer of `root`; for a derived one, computed from its sources. The
/// caller releases *out.
tare_status tare__pt2e_qparams(const module *root, const module *observer, const qparams **out,
                               bool *is_calibrated, tare_error *err);
/// The rule of a derived observer; NULL for others.
const tare_derive_rule *tare__pt2e_rule(const module *observer);

#endif
