// SPDX-License-Identifier: Apache-2.0
// One observer per sharing group, made from the group's spec.
// Private to flow/export.
#ifndef FLOW_EXPORT_OBSERVERS_H
#define FLOW_EXPORT_OBSERVERS_H

#include "flow/export/sharing.h"
#include "model/pass.h"

struct tare_observer_map {
    pass *base;
    qspec_keys keys;
    module **by_group;              // owned; NULL: the group is not to be observed
    const tare_qspec **group_specs; // that the observer was made from
};

/// Groups and observers of all annotations; release also after a failure.
tare_status tare__observer_map_fill(pass *p, bool is_qat, tare_observer_map *out);
void tare__observer_map_release(tare_observer_map *set);
/// Of an edge (from, n), or with from NULL of n's output; NULL: none.
module *tare__observer_map_get(const tare_observer_map *set, const node *from, const node *n);
/// Step, when observers stand in the graph: derived ones learn the names of their sources.
tare_status tare__observer_map_link(const tare_observer_map *set);

/// Step, at last: what was annotated and shared, into the record and for explain.
tare_status tare__pt2e_note_facts(pass *p, const tare_observer_map *set,
                                  const tare_quantizer *quantizer);

/// The parameters of an observer of `root`, derived ones computed from their sources. The caller
/// releases *out.
tare_status tare__pt2e_qparams(const module *root, const module *observer, const qparams **out,
                               bool *is_calibrated, tare_error *err);
/// What a derived observer computes by; NULL for others.
const tare_derive_rule *tare__pt2e_rule(const module *observer);

#endif
