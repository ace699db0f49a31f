// SPDX-License-Identifier: Apache-2.0
// Changes the observers of a prepared model's weights: the qconfig that prepare recorded for a
// module's node, or the observer of a function's weight.
// Private to debug/improve.
#ifndef DEBUG_IMPROVE_WEIGHT_OBSERVERS_H
#define DEBUG_IMPROVE_WEIGHT_OBSERVERS_H

#include "flow/layer_bias.h"

/// A change of the weights' observers in a pass's model.
typedef struct weight_change {
    pass *p;
    const char *rule, *why; // for the record
    /// The spec that replaces `old`, which has the observers that info describes. NULL: `old`
    /// stays.
    tare_status (*make)(const observer_classes *classes, const tare_observer_spec *old,
                        const tare_observer_info *info, tare_observer_spec **out, tare_error *err);
    const char *const *nodes; // [node_count]: of the layers to change; NULL: all
    size_t node_count;
    size_t count; // number of changed layers
} weight_change;

/// Gives the model its own copy of prepare's state. Refuses models with equalization, standalone
/// modules or quantized inputs with TARE_UNSUPPORTED.
tare_status tare__weight_change_begin(const weight_change *w);
tare_status tare__weight_change_layer(weight_change *w, const biased_layer *layer);

/// A spec of another class with the arguments of `old` that both classes have.
tare_status tare__spec_like(const tare_observer_spec *old, const char *class_name,
                            tare_observer_spec **out, tare_error *err);
/// A spec of the class that chooses ranges by squared error, with as many ranges as `old` has. NULL
/// for other kinds of observers, and if it is that class already.
tare_status tare__spec_by_error(const observer_classes *classes, const tare_observer_spec *old,
                                tare_observer_spec **out, tare_error *err);
/// As weight_change.make.
tare_status tare__make_by_error(const observer_classes *classes, const tare_observer_spec *old,
                                const tare_observer_info *info, tare_observer_spec **out,
                                tare_error *err);

/// Begins a pass over a clone of a prepared model; see tare__pass_begin.
tare_status tare__improve_begin(pass *p, const tare_model *prepared, tare_model **out,
                                tare_error *err);

#endif
