// SPDX-License-Identifier: Apache-2.0
// The functions that torch's own backend configs refer to: fusers, and getters of roots and extra
// inputs.
#ifndef CONFIG_BUILTIN_NAMES_H
#define CONFIG_BUILTIN_NAMES_H

#include "core/error.h"
#include "tare/backend_config.h"

/// A built-in fuser, which the fuse pass implements (spec: torch's fuser_method_mappings); the
/// class of the result follows from the fused modules.
typedef struct fuser_name {
    const char *name; // as files spell it, without the parentheses if holds_class
    // The name of the layer in torch's messages about training modes. NULL: the modes of the
    // modules are not checked.
    const char *subject;
    bool holds_class; // the fused class, in parentheses, is a container of the modules
    bool refuses_qat;
    bool asks_activation; // the mode of the activation is checked, too
} fuser_name;

/// The built-in fuser with this name; TARE_NOT_FOUND with a hint if there is none. fused_class (may
/// be NULL; size bytes): the class in parentheses if holds_class, else "".
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
