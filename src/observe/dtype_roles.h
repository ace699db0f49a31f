// SPDX-License-Identifier: Apache-2.0
// How torch treats a dtype at each step of quantization. torch's steps do not agree, so each has a
// role of its own.
#ifndef OBSERVE_DTYPE_ROLES_H
#define OBSERVE_DTYPE_ROLES_H

#include <stdbool.h>

#include "tare/dtype.h"

typedef enum dtype_role {
    DTYPE_MEASURED = 1 << 0,  // uniform observers compute parameters for it
    DTYPE_OBSERVED = 1 << 1,  // prepare inserts observers for it
    DTYPE_CONVERTED = 1 << 2, // convert replaces static observers of it
    DTYPE_STATIC = 1 << 3,    // .. by torch.quantize_per_tensor; other observers stay
    DTYPE_WEIGHT = 1 << 4,    // convert makes reference modules for weights of this dtype
    DTYPE_EXPORTED = 1 << 5,  // convert_pt2e replaces static observers of it
} dtype_role;

bool tare__dtype_has_role(tare_dtype dtype, dtype_role role);

#endif
