// SPDX-License-Identifier: Apache-2.0
// The built-in fusers, by the `fuser_method` names of backend configs.
// Private to flow.
#ifndef FLOW_FUSERS_H
#define FLOW_FUSERS_H

#include "config/backend_config.h"
#include "model/model.h"

/// The leaves of a fused pattern in any order: modules that are called, and names of functions.
typedef struct fuse_leaves {
    const module *const *modules; // NULL: the leaf is a function or a wildcard
    const char *const *functions; // NULL: the leaf is a module or a wildcard
    size_t count;
} fuse_leaves;

/// Creates the fused module. Error messages are torch's.
tare_status tare__fuser_run(const registry *classes, const char *fuser_method, bool is_qat,
                            const fuse_leaves *leaves, module **out, tare_error *err);

#endif
