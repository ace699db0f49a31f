// SPDX-License-Identifier: Apache-2.0
// Loads backend configs and qconfig mappings by name or from files.
#include "support/configs.h"

#include <string.h>
#include <sys/stat.h>

#include "support/report.h"

bool names_a_file(const char *name) {
    struct stat info;
    return strcmp(name, "-") == 0 || strpbrk(name, "/.") != NULL || stat(name, &info) == 0;
}

static bool is_among(const char *name, const char *(*name_at)(size_t index)) {
    for (size_t i = 0; name_at(i) != NULL; i++)
        if (strcmp(name_at(i), name) == 0) return true;
    return false;
}

bool is_builtin_backend(const char *name) {
    return is_among(name, tare_backend_config_builtin_name_at);
}

bool is_default_mapping(const char *name) {
    return is_among(name, tare_qconfig_mapping_default_name_at);
}

tare_status load_backend(const char *name, tare_backend_config **out, tare_error *err) {
    if (!is_builtin_backend(name) && names_a_file(name))
        return tare_backend_config_read(name, out, err);
    return tare_backend_config_builtin(name, out, err);
}

tare_status load_mapping(const char *name, bool is_qat, tare_qconfig_mapping **out,
                         tare_error *err) {
    if (!is_default_mapping(name) && names_a_file(name))
        return tare_qconfig_mapping_read(name, out, err);
    if (!is_default_mapping(name)) {
        const char *nearest = suggest(name, mapping_choice_at, NULL);
        return fail_here("qconfig", nearest != NULL ? nearest : "see 'tare qconfig list'",
                         "no default mapping is called '%s'", name);
    }
    return tare_qconfig_mapping_default(name, is_qat, -1, out, err);
}

static bool is_file(const char *path) {
    struct stat info;
    return strcmp(path, "-") == 0 || stat(path, &info) == 0;
}

tare_status load_preprocess(const char *spec, tare_preprocess **out, tare_error *err) {
    const char *ending = strrchr(spec, '.');
    if (is_file(spec) || (ending != NULL && strcmp(ending, ".json") == 0))
        return tare_preprocess_read(spec, out, err);
    return tare_preprocess_parse(spec, out, err);
}

const char *backend_choice_at(const void *user, size_t index) {
    (void)user;
    return tare_backend_config_builtin_name_at(index);
}

const char *quantizer_choice_at(const void *user, size_t index) {
    (void)user;
    return tare_quantizer_builtin_name_at(index);
}

const char *mapping_choice_at(const void *user, size_t index) {
    (void)user;
    return tare_qconfig_mapping_default_name_at(index);
}

const char *preprocess_choice_at(const void *user, size_t index) {
    (void)user;
    return tare_preprocess_preset_at(index);
}
