// SPDX-License-Identifier: Apache-2.0
// A registry of custom fusers and getters by name, so that files can refer to them.
#include "config/backend_functions.h"

#include <string.h>

#include "config/builtin_names.h"
#include "core/memory/alloc.h"
#include "core/struct_size.h"

void tare__backend_functions_release(backend_functions *f) {
    for (size_t i = 0; i < f->count; i++) tare__free((char *)f->items[i].name);
    tare__free(f->items);
    *f = (backend_functions){0};
}

const tare_backend_function *tare__backend_functions_find(const backend_functions *f,
                                                          const char *name) {
    for (size_t i = 0; f != NULL && i < f->count; i++)
        if (strcmp(f->items[i].name, name) == 0) return &f->items[i];
    return NULL;
}

static bool is_builtin(const char *name) {
    const fuser_name *row = NULL;
    return tare__fuser_find(name, &row, NULL, 0, NULL) != TARE_NOT_FOUND ||
           tare__root_node_getter_find(name) != NULL ||
           tare__extra_inputs_getter_find(name) != NULL;
}

tare_status tare__backend_functions_add(backend_functions *f, const tare_backend_function *function,
                                        tare_error *err) {
    tare_backend_function made = {0};
    tare__struct_copy(&made, sizeof made, function);
    if (made.name == NULL || made.name[0] == '\0' ||
        (made.fuser == NULL && made.root_node_getter == NULL && made.extra_inputs_getter == NULL))
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "a backend function needs a name, and a fuser or a getter");
    if (is_builtin(made.name) || tare__backend_functions_find(f, made.name) != NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "a backend function '%s' exists already",
                          made.name);
    made.name = tare__strdup(made.name);
    if (made.name == NULL ||
        !tare__grow((void **)&f->items, &f->capacity, f->count, sizeof *f->items)) {
        tare__free((char *)made.name);
        return tare__out_of_memory(err);
    }
    f->items[f->count++] = made;
    return TARE_OK;
}
