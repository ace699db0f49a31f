// SPDX-License-Identifier: Apache-2.0
// A registry of custom fusers and getters by name, and functions to read files that refer to them.
#ifndef CONFIG_BACKEND_FUNCTIONS_H
#define CONFIG_BACKEND_FUNCTIONS_H

#include "tare/backend_config.h"

/// The functions that are registered in a context.
typedef struct backend_functions {
    tare_backend_function *items; // names owned
    size_t count, capacity;
} backend_functions;
void tare__backend_functions_release(backend_functions *f);
tare_status tare__backend_functions_add(backend_functions *f, const tare_backend_function *function,
                                        tare_error *err);
/// The functions registered under a name; NULL if there are none. f may be NULL.
const tare_backend_function *tare__backend_functions_find(const backend_functions *f,
                                                          const char *name);
/// The same as the public functions, with the user's functions (NULL: none).
tare_status tare__backend_config_parse(const backend_functions *functions, const char *json,
                                       size_t size, tare_backend_config **out, tare_error *err);
tare_status tare__backend_config_load(const backend_functions *functions, const char *path,
                                      tare_backend_config **out, tare_error *err);

#endif
