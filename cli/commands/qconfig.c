// SPDX-License-Identifier: Apache-2.0
// tare qconfig: the built-in QConfigs and default mappings.
#include <stdio.h>
#include <string.h>

#include "commands/actions.h"
#include "support/configs.h"
#include "support/json.h"
#include "support/report.h"

static void list_json(void) {
    json_out json = json_out_begin(stdout);
    json_out_open(&json, "mappings", '[');
    for (size_t i = 0; tare_qconfig_mapping_default_name_at(i) != NULL; i++)
        json_out_string(&json, NULL, tare_qconfig_mapping_default_name_at(i));
    json_out_close(&json, ']');
    json_out_open(&json, "qconfigs", '[');
    for (size_t i = 0; tare_qconfig_name_at(i) != NULL; i++)
        json_out_string(&json, NULL, tare_qconfig_name_at(i));
    json_out_close(&json, ']');
    json_out_end(&json);
}

static tare_status list(const char *name, bool as_json, tare_error *err) {
    (void)name, (void)err;
    if (as_json) {
        list_json();
        return TARE_OK;
    }
    printf("default mappings:\n");
    for (size_t i = 0; tare_qconfig_mapping_default_name_at(i) != NULL; i++)
        printf("  %s\n", tare_qconfig_mapping_default_name_at(i));
    printf("qconfigs:\n");
    for (size_t i = 0; tare_qconfig_name_at(i) != NULL; i++)
        printf("  %s\n", tare_qconfig_name_at(i));
    return TARE_OK;
}

static bool is_qconfig(const char *name) {
    for (size_t i = 0; tare_qconfig_name_at(i) != NULL; i++)
        if (strcmp(tare_qconfig_name_at(i), name) == 0) return true;
    return false;
}

static tare_status qconfig_json(const char *name, char **out, tare_error *err) {
    tare_qconfig *qconfig = NULL;
    TRY(tare_qconfig_named(name, &qconfig, err));
    const tare_status status = tare_qconfig_to_json(qconfig, out, err);
    tare_qconfig_release(qconfig);
    return status;
}

static tare_status mapping_json(const char *name, char **out, tare_error *err) {
    tare_qconfig_mapping *mapping = NULL;
    TRY(load_mapping(name, false, &mapping, err));
    const tare_status status = tare_qconfig_mapping_to_json(mapping, out, err);
    tare_qconfig_mapping_destroy(mapping);
    return status;
}

/// Name `index` of a list: the default mappings, then the QConfigs. NULL at the end.
static const char *name_at(const void *user, size_t index) {
    (void)user;
    size_t mapping_count = 0;
    while (tare_qconfig_mapping_default_name_at(mapping_count) != NULL) mapping_count++;
    return index < mapping_count ? tare_qconfig_mapping_default_name_at(index)
                                 : tare_qconfig_name_at(index - mapping_count);
}

static tare_status show(const char *name, bool as_json, tare_error *err) {
    char *json = NULL;
    if (!is_qconfig(name) && !is_default_mapping(name) && !names_a_file(name)) {
        const char *hint = suggest(name, name_at, NULL);
        return fail_here(name, hint != NULL ? hint : "see 'tare qconfig list'",
                         "neither a default mapping, nor a QConfig, nor a file");
    }
    TRY(is_qconfig(name) ? qconfig_json(name, &json, err) : mapping_json(name, &json, err));
    if (as_json)
        printf("%s\n", json);
    else
        json_out_indent(stdout, json);
    tare_string_free(json);
    return TARE_OK;
}

static const action actions[] = {
    {"list", NULL, "print the names of default mappings and QConfigs", list},
    {"show", "NAME", "print one as a mapping file; with --json on one line", show},
    {.name = NULL},
};

const command qconfig_command = {
    .name = "qconfig",
    .summary = "list and show QConfigs and default mappings",
    .operands = {"ACTION", "NAME"},
    .least_operands = 1,
    .actions = actions,
    .options = action_options,
    .details = "NAME is a default mapping, a named QConfig or a mapping file.",
    .run = run_action,
};
