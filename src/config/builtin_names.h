// SPDX-License-Identifier: Apache-2.0
// The functions in torch's own backend configs: fusers, and getters of roots and extra inputs.
#ifndef CONFIG_BUILTIN_NAMES_H
#define CONFIG_BUILTIN_NAMES_H

#include "core/error.h"
#include "tare/backend_config.h"

/// A built-in fuser. The fuse pass does the work (spec: torch's fuser_method_mappings); the class
/// of the result follows from the fused modules.
typedef struct fuser_name {
    const char *name; // as the files spell it, without the parentheses of one that holds a class
    // The layer in torch's messages about the modes of the modules. NULL: no modes are checked.
    const char *subject;
    bool holds_class; // the fused class in parentheses, holding the modules as they are
    bool refuses_qat;
    bool asks_activation; // is its mode checked, too?
} fuser_name;

/// The row of a fuser's name; TARE_NOT_FOUND with a hint if there is none. fused_class (may be
/// NULL; size bytes): of one that holds a class, the class in parentheses, else "".
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
