// SPDX-License-Identifier: Apache-2.0
// The built-in observer classes, one file for each.
#ifndef OBSERVE_CLASSES_BUILTIN_H
#define OBSERVE_CLASSES_BUILTIN_H

#include <stdbool.h>
#include <stddef.h>

#include "observe/classes/uniform.h"
#include "tare/observer.h"

#define OBSERVER(descriptor, name) extern const tare_observer_class descriptor;
#define FAKE_QUANTIZER             OBSERVER
#include "observe/classes/builtin.def"
#undef FAKE_QUANTIZER
#undef OBSERVER

/// The i-th built-in class; NULL past the end.
const tare_observer_class *tare__builtin_observer_at(size_t index);
bool tare__builtin_is_fake_quantize(const tare_observer_class *class);
/// The class's update that takes the scan kernels and threads to use; NULL: the class has only its
/// ordinary update.
scan_update tare__builtin_scan_update(const tare_observer_class *class);
tare_status tare__histogram_update(void *state, const tare_tensor *x, const float_scan *scan,
                                   tare_error *err);
tare_status tare__mergeable_histogram_update(void *state, const tare_tensor *x,
                                             const float_scan *scan, tare_error *err);

/// The state of classes that store nothing.
void *tare__no_state(void);
void tare__no_state_destroy(void *state);
tare_status tare__no_state_clone(const void *state, void **out, tare_error *err);

#endif
