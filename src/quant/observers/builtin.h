// SPDX-License-Identifier: Apache-2.0
// The built-in observer classes, a file each.
#ifndef QUANT_OBSERVERS_BUILTIN_H
#define QUANT_OBSERVERS_BUILTIN_H

#include <stdbool.h>
#include <stddef.h>

#include "tare/observer.h"

#define OBSERVER(descriptor, name) extern const tare_observer_class descriptor;
#define FAKE_QUANTIZER             OBSERVER
#include "quant/observers/builtin.def"
#undef FAKE_QUANTIZER
#undef OBSERVER

/// The i-th built-in class; NULL past the end.
const tare_observer_class *tare__builtin_observer_at(size_t index);
bool tare__builtin_is_fake_quantize(const tare_observer_class *class);

/// A state for classes that keep nothing.
void *tare__no_state(void);
void tare__no_state_destroy(void *state);
tare_status tare__no_state_clone(const void *state, void **out, tare_error *err);

#endif
