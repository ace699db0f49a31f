// SPDX-License-Identifier: Apache-2.0
// The list of built-in observer classes, and functions of classes without state.
#include "observe/classes/builtin.h"

#include "observe/classes/range.h"

typedef struct builtin {
    const tare_observer_class *class;
    bool is_fake_quantize;
} builtin;

static const builtin builtins[] = {
#define OBSERVER(descriptor, name)       {&descriptor, false},
#define FAKE_QUANTIZER(descriptor, name) {&descriptor, true},
#include "observe/classes/builtin.def"
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

static const struct {
    const tare_observer_class *class;
    scan_update update;
} scanners[] = {
    {&tare__min_max_observer, tare__range_update_by},
    {&tare__moving_average_min_max_observer, tare__range_update_by},
    {&tare__histogram_observer, tare__histogram_update},
    {&tare__mergeable_histogram_observer, tare__mergeable_histogram_update},
};

scan_update tare__builtin_scan_update(const tare_observer_class *class) {
    for (size_t i = 0; i < sizeof scanners / sizeof *scanners; i++)
        if (scanners[i].class == class) return scanners[i].update;
    return NULL;
}

void *tare__no_state(void) {
    static const char nothing = 0; // only its address matters
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
