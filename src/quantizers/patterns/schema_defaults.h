// SPDX-License-Identifier: Apache-2.0
// What aten operators take for arguments that a call leaves out.
// Private to quantizers/patterns.
#ifndef QUANTIZERS_PATTERNS_SCHEMA_DEFAULTS_H
#define QUANTIZERS_PATTERNS_SCHEMA_DEFAULTS_H

#include "ir/value.h"

/// The default of the index-th argument of an aten operator ("torch.ops.aten.conv2d.default"). A
/// default for every spatial dimension is one number. False: not known.
bool tare__schema_default(const char *target, size_t index, value *out);
/// Does `v` say what the default says? A list does if all its items do.
bool tare__is_schema_default(const char *target, size_t index, const value *v);

#endif
