// SPDX-License-Identifier: Apache-2.0
// Backend configs and qconfig mappings from hostile JSON. What is read must also be written, and
// what was written must read back to the same text.
#include <stdlib.h>
#include <string.h>

#include "tare/backend_config.h"
#include "tare/qconfig.h"

static char *backend_to_json(const tare_backend_config *config) {
    char *json = NULL;
    if (tare_backend_config_to_json(config, &json, NULL) != TARE_OK) abort();
    return json;
}

static void read_backend_again(char *json) {
    tare_backend_config *config = NULL;
    if (tare_backend_config_from_json(json, strlen(json), &config, NULL) != TARE_OK) abort();
    char *again = backend_to_json(config);
    if (strcmp(json, again) != 0) abort();
    tare_string_free(again);
    tare_string_free(json);
    tare_backend_config_destroy(config);
}

static bool count_writes(void *user, const char *chars, size_t length) {
    (void)chars;
    *(size_t *)user += length;
    return true;
}

static tare_status count_finding(void *user, const tare_backend_finding *finding, tare_error *err) {
    (void)err;
    *(size_t *)user += strlen(finding->path) + strlen(finding->problem) + strlen(finding->remedy);
    return TARE_OK;
}

static void try_backend(const char *bytes, size_t size) {
    tare_backend_config *config = NULL, *clone = NULL;
    if (tare_backend_config_from_json(bytes, size, &config, NULL) != TARE_OK) return;
    size_t written = 0, findings = 0;
    if (tare_backend_config_show(config, count_writes, &written, NULL) != TARE_OK) abort();
    if (tare_backend_config_lint(config, NULL, count_finding, &written, &findings, NULL) != TARE_OK)
        abort();
    if (tare_backend_config_clone(config, &clone, NULL) != TARE_OK) abort();
    tare_backend_config_destroy(config);
    read_backend_again(backend_to_json(clone));
    tare_backend_config_destroy(clone);
}

static char *mapping_to_json(const tare_qconfig_mapping *mapping) {
    char *json = NULL;
    if (tare_qconfig_mapping_to_json(mapping, &json, NULL) != TARE_OK) abort();
    return json;
}

static void read_mapping_again(char *json) {
    tare_qconfig_mapping *mapping = NULL;
    if (tare_qconfig_mapping_from_json(json, strlen(json), &mapping, NULL) != TARE_OK) abort();
    char *again = mapping_to_json(mapping);
    if (strcmp(json, again) != 0) abort();
    tare_string_free(again);
    tare_string_free(json);
    tare_qconfig_mapping_destroy(mapping);
}

static void try_mapping(const char *bytes, size_t size) {
    tare_qconfig_mapping *mapping = NULL, *clone = NULL;
    if (tare_qconfig_mapping_from_json(bytes, size, &mapping, NULL) != TARE_OK) return;
    if (tare_qconfig_mapping_clone(mapping, &clone, NULL) != TARE_OK) abort();
    tare_qconfig_mapping_destroy(mapping);
    read_mapping_again(mapping_to_json(clone));
    tare_qconfig_mapping_destroy(clone);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    try_backend((const char *)data, size);
    try_mapping((const char *)data, size);
    return 0;
}
