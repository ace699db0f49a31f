// SPDX-License-Identifier: Apache-2.0
// tare backend: lists, shows and checks backend configs.
#include <stdio.h>
#include <stdlib.h>

#include "commands/actions.h"
#include "support/configs.h"
#include "support/json.h"
#include "support/page.h"
#include "support/report.h"

static void list_json(void) {
    json_out json = json_out_begin(stdout);
    json_out_open(&json, "backends", '[');
    for (size_t i = 0; tare_backend_config_builtin_name_at(i) != NULL; i++)
        json_out_string(&json, NULL, tare_backend_config_builtin_name_at(i));
    json_out_close(&json, ']');
    json_out_end(&json);
}

static tare_status list(const char *name, bool as_json, tare_error *err) {
    (void)name, (void)err;
    if (as_json) list_json();
    for (size_t i = 0; !as_json && tare_backend_config_builtin_name_at(i) != NULL; i++)
        printf("%s\n", tare_backend_config_builtin_name_at(i));
    return TARE_OK;
}

static tare_status show_json(const tare_backend_config *config, tare_error *err) {
    char *json = NULL;
    TRY(tare_backend_config_to_json(config, &json, err));
    printf("%s\n", json);
    tare_string_free(json);
    return TARE_OK;
}

static tare_status show(const char *name, bool as_json, tare_error *err) {
    tare_backend_config *config = NULL;
    TRY(load_backend(name, &config, err));
    const tare_status status = as_json
                                   ? show_json(config, err)
                                   : tare_backend_config_show(config, write_to_stream, stdout, err);
    tare_backend_config_destroy(config);
    return status;
}

typedef struct linting {
    json_out *json; // NULL: as text
    size_t errors;
} linting;

static tare_status write_finding(void *user, const tare_backend_finding *finding, tare_error *err) {
    linting *l = user;
    json_out *json = l->json;
    const char *severity = finding_severity(finding->is_error);
    (void)err;
    l->errors += finding->is_error;
    if (json == NULL) {
        printf("%s: %s: pattern %s: %s (%s)\n", severity, finding->path, finding->pattern,
               finding->problem, finding->remedy);
        return TARE_OK;
    }
    json_out_open(json, NULL, '{');
    json_out_string(json, "severity", severity);
    json_out_string(json, "path", finding->path);
    json_out_string(json, "pattern", finding->pattern);
    json_out_string(json, "problem", finding->problem);
    json_out_string(json, "remedy", finding->remedy);
    json_out_close(json, '}');
    return TARE_OK;
}

static tare_status lint(const tare_backend_config *config, bool as_json, size_t *count,
                        size_t *error_count, tare_error *err) {
    json_out json = {0};
    linting l = {.json = as_json ? &json : NULL};
    if (as_json) {
        json = json_out_begin(stdout);
        json_out_string(&json, "name", tare_backend_config_name(config));
        json_out_integer(&json, "patterns", tare_backend_config_count(config));
        json_out_open(&json, "findings", '[');
    }
    const tare_status status =
        tare_backend_config_lint(config, NULL, write_finding, &l, count, err);
    *error_count = l.errors;
    if (as_json) {
        json_out_close(&json, ']');
        json_out_end(&json);
    }
    return status;
}

static tare_status check(const char *name, bool as_json, tare_error *err) {
    tare_backend_config *config = NULL;
    size_t count = 0, errors = 0;
    TRY(load_backend(name, &config, err));
    tare_status status = lint(config, as_json, &count, &errors, err);
    if (status == TARE_OK && !as_json && count == 0)
        printf("%s: %zu patterns, no findings\n", tare_backend_config_name(config),
               tare_backend_config_count(config));
    if (status == TARE_OK && count > 0) status = fail_findings(name, count, errors);
    tare_backend_config_destroy(config);
    return status;
}

static tare_status table_json(const tare_backend_config *config, tare_error *err) {
    page markdown;
    TRY(page_open(&markdown));
    const tare_status status = page_close(
        &markdown, tare_backend_config_table(config, write_to_stream, markdown.stream, err));
    if (status == TARE_OK) {
        json_out json = json_out_begin(stdout);
        json_out_string(&json, "name", tare_backend_config_name(config));
        json_out_string(&json, "markdown", markdown.chars);
        json_out_end(&json);
    }
    page_release(&markdown);
    return status;
}

static tare_status table(const char *name, bool as_json, tare_error *err) {
    tare_backend_config *config = NULL;
    TRY(load_backend(name, &config, err));
    const tare_status status =
        as_json ? table_json(config, err)
                : tare_backend_config_table(config, write_to_stream, stdout, err);
    tare_backend_config_destroy(config);
    return status;
}

static const action actions[] = {
    {"list", NULL, "print the names of the built-in backends", list},
    {"show", "NAME", "print the patterns of a backend; with --json in torch's to_dict form", show},
    {"check", "NAME", "find errors and entries without effect; status 1 if there are any", check},
    {"table", "NAME", "print a Markdown page, a row for each pattern and dtypes", table},
    {.name = NULL},
};

const command backend_command = {
    .name = "backend",
    .summary = "list, show and check backend configs",
    .operands = {"ACTION", "NAME"},
    .least_operands = 1,
    .actions = actions,
    .options = action_options,
    .details = "NAME is a built-in backend or a file; '-' is standard input. No command accepts a "
               "backend with an error. A warning is about an entry that has no effect, or probably "
               "not the intended one.",
    .run = run_action,
};
