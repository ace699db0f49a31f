// SPDX-License-Identifier: Apache-2.0
// The list of built-in observer classes, and what those without a state share.
#include "quant/observers/builtin.h"

typedef struct builtin {
    const tare_observer_class *class;
    bool is_fake_quantize;
} builtin;

static const builtin builtins[] = {
#define OBSERVER(descriptor, name)       {&descriptor, false},
#define FAKE_QUANTIZER(descriptor, name) {&descriptor, true},
#include "quant/observers/builtin.def"
#undef FAKE_QUANTIZER
#undef OBSERVER
};
enum { BUILTIN_COUNT = sizeof builtins / sizeof *builtins };

const tare_observer_class *tare__builtin_observer_at(size_t index) {
    return index < BUILTIN_COUNT ? builtins[index].class : NULL;
}

bool tare__builtin_is_fake_quantize(const tare_observer_class *class) {
    for (size_t i = 0; i < BUILTIN_COUNT; i++)
        if (builtins[i].class == class) return builtins[i].is_fake_quantize;
    return false;
}

void *tare__no_state(void) {
    static const char nothing = 0; // only its address counts; nobody writes
    return (void *)&nothing;
}

void tare__no_state_destroy(void *state) {
    (void)state;
}

tare_status tare__no_state_clone(const void *state, void **out, tare_error *err) {
    (void)state;
    (void)err;
    *out = tare__no_state();
    return TARE_OK;
}
