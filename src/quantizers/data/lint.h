// SPDX-License-Identifier: Apache-2.0
// Lint for rule files: checks of specs, patterns and settings.
// Private to quantizers/data.
#ifndef QUANTIZERS_DATA_LINT_H
#define QUANTIZERS_DATA_LINT_H

#include "quantizers/data/quantizer.h"

typedef struct lint {
    const data_quantizer *q;
    tare_quantizer_finding_visitor visit;
    void *user;
    arena memory;
    size_t count, error_count;
    tare_error *err;
} lint;

// The location of a finding in the file, and how to fix it.
typedef struct advice {
    char path[160];
    const char *remedy;
} advice;

/// Reports an entry that cannot work.
tare_status tare__lint_error(lint *l, const advice *at, const char *format, ...) TARE_PRINTF(3, 4);
/// Reports an entry that has no effect, or an unintended one.
tare_status tare__lint_warning(lint *l, const advice *at, const char *format, ...)
    TARE_PRINTF(3, 4);
/// Checks the specs and configs for errors.
tare_status tare__lint_specs(lint *l);

#endif
