// SPDX-License-Identifier: Apache-2.0
// Who looks at the weights of a prepared model, and how that is changed: the qconfig that prepare
// noted of a module's node, or the observer in front of a function's weight.
// Private to debug/improve.
#ifndef DEBUG_IMPROVE_WEIGHT_OBSERVERS_H
#define DEBUG_IMPROVE_WEIGHT_OBSERVERS_H

#include "flow/layer_bias.h"

/// One change of the weights of a pass's model.
typedef struct weight_change {
    pass *p;
    const char *rule, *why; // for the record
    /// What observes instead of `old`, whose observers are described by info: a new spec. NULL:
    /// `old` stays.
    tare_status (*make)(const observer_classes *classes, const tare_observer_spec *old,
                        const tare_observer_info *info, tare_observer_spec **out, tare_error *err);
    size_t count; // of layers that were changed
} weight_change;

/// The model's state of prepare becomes its own. Models with equalization, standalone modules or
/// quantized inputs are refused with TARE_UNSUPPORTED.
tare_status tare__weight_change_begin(const weight_change *w);
tare_status tare__weight_change_layer(weight_change *w, const biased_layer *layer);

/// Arguments of `old` that both classes know, under another class.
tare_status tare__spec_like(const tare_observer_spec *old, const char *class_name,
                            tare_observer_spec **out, tare_error *err);
/// A spec of the class that chooses ranges by squared error, with as many ranges as `old` has. NULL
/// for observers that are of no such kind, and where it is that class.
tare_status tare__spec_by_error(const observer_classes *classes, const tare_observer_spec *old,
                                tare_observer_spec **out, tare_error *err);
/// As weight_change.make.
tare_status tare__make_by_error(const observer_classes *classes, const tare_observer_spec *old,
                                const tare_observer_info *info, tare_observer_spec **out,
                                tare_error *err);

/// A pass over a clone of a prepared model; see tare__pass_begin.
tare_status tare__improve_begin(pass *p, const tare_model *prepared, tare_model **out,
                                tare_error *err);

#endif
