// SPDX-License-Identifier: Apache-2.0
// Runs of composed operators and modules (compose.h).
// Private to ops.
#ifndef OPS_COMPOSED_H
#define OPS_COMPOSED_H

#include "ops/call.h"

struct composer;

/// The shape rule and the reference of a row or class whose result `forward` computes.
tare_status tare__composed_shape(op_call *call, value (*forward)(struct composer *c));
tare_status tare__composed_forward(op_call *call, value (*forward)(struct composer *c));

#endif
