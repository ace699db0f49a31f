// SPDX-License-Identifier: Apache-2.0
// Quantizers: a class and its data.
#ifndef QUANTIZERS_QUANTIZER_H
#define QUANTIZERS_QUANTIZER_H

#include "tare/pt2e.h"

struct tare_quantizer {
    tare_quantizer_class class; // name owned
    void *self;
    // The user's settings, lent by self; NULL: unknown.
    const struct tare_quantizer_settings *settings;
    tare_quantizer *const *members; // of a composed quantizer, lent by self
    size_t member_count;
};

/// Refuses rule files with findings that tare_quantizer_lint reports as errors.
tare_status tare__quantizer_check(const tare_quantizer *q, tare_error *err);

#endif
