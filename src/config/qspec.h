// SPDX-License-Identifier: Apache-2.0
// Internal interface of quantization specs.
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
    tare_derive_rule rule; // name owned; derived specs only
};

/// Creates a spec whose targets are given by name (copied). targets, rule: only for the kinds that
/// have them.
tare_status tare__qspec_make(tare_qspec_kind kind, const tare_qspec_fields *fields,
                             const tare_edge_name *targets, size_t target_count,
                             const tare_derive_rule *rule, tare_qspec **out, tare_error *err);
/// A copy of the spec with every target t replaced by replace(user, t), whose names need to be
/// valid only during the call.
tare_status tare__qspec_map_targets(const tare_qspec *spec,
                                    tare_edge_name (*replace)(void *user, tare_edge_name target),
                                    void *user, tare_qspec **out, tare_error *err);
bool tare__edge_name_equal(const tare_edge_name *a, const tare_edge_name *b);
/// "'a'" or "('a', 'b')", for messages.
void tare__edge_name_text(const tare_edge_name *edge, text *out);

/// Short description: "int8 -128..127 per_tensor_affine by HistogramObserver".
void tare__qspec_text(const tare_qspec *spec, text *out);

/// As Python prints it: "QuantizationSpec(dtype=torch.int8, ..)".
void tare__qspec_repr(const tare_qspec *spec, text *out);
void tare__qspec_to_json(const tare_qspec *spec, text *out); // NULL: null
/// Reads a spec; null gives NULL. Errors name the JSON path.
tare_status tare__qspec_from_json(const json_at *at, const tare_derive_rule *rules,
                                  size_t rule_count, tare_qspec **out, tare_error *err);
/// Finds the rule with a name: the bias rule, or one of `rules`.
tare_status tare__derive_rule_from_json(const json_at *at, const tare_derive_rule *rules,
                                        size_t rule_count, const tare_derive_rule **out,
                                        tare_error *err);

/// The user's class that `spec` names, which may take fewer arguments than torch's constructors;
/// NULL: a built-in class.
const tare_observer_class *tare__qspec_own_class(const observer_classes *all,
                                                 const tare_observer_spec *spec);
/// The observer spec that a quantization spec requests; its fields override arguments of the
/// constructor. classes: of a context, may be NULL. Not for shared specs.
tare_status tare__qspec_observer(const observer_classes *classes, const tare_qspec *from,
                                 bool is_qat, tare_observer_spec **out, tare_error *err);

#endif
