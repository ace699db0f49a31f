// SPDX-License-Identifier: Apache-2.0
// The functions that torch's own backend configs name: fusers, and getters of roots and extra
// inputs.
#ifndef CONFIG_BUILTIN_NAMES_H
#define CONFIG_BUILTIN_NAMES_H

#include "core/error.h"
#include "tare/backend_config.h"

/// What a built-in fuser makes; the fuse pass does the work (spec: torch's fuser_method_mappings).
typedef enum builtin_fuser {
    FUSER_SEQUENTIAL, // the fused class in parentheses, holding the modules as they are
    FUSER_CONV_BN,    // batch norm folded into a convolution (or ConvBn in QAT)
    FUSER_CONV_BN_RELU,
    FUSER_LINEAR_BN,
    FUSER_CONVTRANSPOSE_BN,
    FUSER_CONV_ADD, // ConvAdd2d; the complex pattern says on which side the convolution stands
    FUSER_CONV_BN_ADD,
    FUSER_CONV_ADD_RELU, // ConvAddReLU2d
    FUSER_CONV_BN_ADD_RELU,
    FUSER_LINEAR_BN_LEAKY_RELU,
} builtin_fuser;

typedef struct fuser_name {
    const char *name; // as the files spell it, without the parentheses of FUSER_SEQUENTIAL
    builtin_fuser fuser;
} fuser_name;

/// The row of a fuser's name; TARE_NOT_FOUND with a hint if there is none. fused_class (may be
/// NULL; size bytes): for FUSER_SEQUENTIAL the class in parentheses, else "".
tare_status tare__fuser_find(const char *name, const fuser_name **out, char *fused_class,
                             size_t size, tare_error *err);
/// Names for listings; NULL past the end.
const char *tare__fuser_name_at(size_t index);

/// Built-in getters by name; NULL if unknown. `name_at` lists the names, NULL past the end.
tare_root_node_getter tare__root_node_getter_find(const char *name);
const char *tare__root_node_getter_name_at(const void *unused, size_t index);
tare_extra_inputs_getter tare__extra_inputs_getter_find(const char *name);
const char *tare__extra_inputs_getter_name_at(const void *unused, size_t index);

#endif
