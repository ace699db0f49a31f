// SPDX-License-Identifier: Apache-2.0
// Quantization specs inside the library.
#ifndef CONFIG_QSPEC_H
#define CONFIG_QSPEC_H

#include <stdatomic.h>

#include "core/json/json.h"
#include "core/text/text.h"
#include "observe/observer.h"
#include "tare/pt2e.h"

struct tare_qspec {
    atomic_size_t refcount;
    tare_qspec_kind kind;
    tare_qspec_fields fields;
    tare_edge_name *targets; // names owned
    size_t target_count;
    tare_derive_rule rule; // name owned; of derived specs
};

/// A spec whose targets are given by name (copied). targets, rule: as the kind needs them.
tare_status tare__qspec_make(tare_qspec_kind kind, const tare_qspec_fields *fields,
                             const tare_edge_name *targets, size_t target_count,
                             const tare_derive_rule *rule, tare_qspec **out, tare_error *err);
/// The same spec with every target t replaced by replace(user, t), which lends its names for the
/// call.
tare_status tare__qspec_map_targets(const tare_qspec *spec,
                                    tare_edge_name (*replace)(void *user, tare_edge_name target),
                                    void *user, tare_qspec **out, tare_error *err);
bool tare__edge_name_equal(const tare_edge_name *a, const tare_edge_name *b);
/// "'a'" or "('a', 'b')", for messages.
void tare__edge_name_text(const tare_edge_name *edge, text *out);

/// "int8 -128..127 per_tensor_affine by HistogramObserver", for people.
void tare__qspec_text(const tare_qspec *spec, text *out);

/// "QuantizationSpec(dtype=torch.int8, ..)", as Python prints it.
void tare__qspec_repr(const tare_qspec *spec, text *out);
void tare__qspec_to_json(const tare_qspec *spec, text *out); // NULL: null
/// null gives NULL. Errors name the JSON path.
tare_status tare__qspec_from_json(const json_at *at, const tare_derive_rule *rules,
                                  size_t rule_count, tare_qspec **out, tare_error *err);
/// The rule of a name: the bias rule, or one of `rules`.
tare_status tare__derive_rule_from_json(const json_at *at, const tare_derive_rule *rules,
                                        size_t rule_count, const tare_derive_rule **out,
                                        tare_error *err);

/// The class of a user's own that observes by `spec`, which may take fewer arguments than torch's
/// constructors; NULL: a built-in one.
const tare_observer_class *tare__qspec_own_class(const observer_classes *all,
                                                 const tare_observer_spec *spec);
/// The observer that a spec requests; the spec's fields override its constructor's arguments.
/// classes: of a context, may be NULL. Not for shared specs.
tare_status tare__qspec_observer(const observer_classes *classes, const tare_qspec *from,
                                 bool is_qat, tare_observer_spec **out, tare_error *err);

#endif
