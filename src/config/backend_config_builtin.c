// SPDX-License-Identifier: Apache-2.0
// Built-in backend configs: torch's, as JSON files compiled into the library.
#include <stdio.h>
#include <string.h>

#include "config/backend_config.h"
#include "config/embedded.h"
#include "core/text/text.h"

// True for torch's internal configs (for tests and for another workflow); listings name them last.
static bool is_internal(const char *name) {
    return name[0] == '_' || tare__starts_with(name, "test_only_");
}

const char *tare_backend_config_builtin_name_at(size_t index) {
    for (int internal = 0; internal < 2; internal++)
        for (size_t i = 0; i < tare__embedded_backend_count; i++)
            if (is_internal(tare__embedded_backends[i]) == internal && index-- == 0)
                return tare__embedded_backends[i];
    return NULL;
}

static const char *name_at(const void *unused, size_t index) {
    (void)unused;
    return tare_backend_config_builtin_name_at(index);
}

// The file of a built-in config is NAME.json; files in folders are not backend configs.
static const embedded_file *find_file(const char *name) {
    char file_name[64];
    if (strchr(name, '/') != NULL) return NULL;
    const int length = snprintf(file_name, sizeof file_name, "%s.json", name);
    return length > 0 && (size_t)length < sizeof file_name ? tare__embedded_find(file_name) : NULL;
}

static tare_status unknown_backend(const char *name, tare_error *err) {
    tare__fail(err, TARE_NOT_FOUND, "no built-in backend is called '%s'", name);
    tare__hint(err, TARE_NOT_FOUND,
               "see tare_backend_config_builtin_name_at, or tare backend list");
    return tare__suggest(err, TARE_NOT_FOUND, name, name_at, NULL);
}

tare_status tare_backend_config_builtin(const char *name, tare_backend_config **out,
                                        tare_error *err) {
    if (!name) return tare__fail(err, TARE_INVALID_ARGUMENT, "expected a name, found NULL");
    const embedded_file *file = find_file(name);
    if (!file) return unknown_backend(name, err);
    const tare_status status =
        tare_backend_config_from_json((const char *)file->data, file->size, out, err);
    return status == TARE_OK ? TARE_OK : tare__at(err, status, "built-in %s", file->name);
}
