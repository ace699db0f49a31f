// SPDX-License-Identifier: Apache-2.0
// tare quantizer: lists, shows and checks quantizers.
#include <stdio.h>

#include "commands/actions.h"
#include "support/configs.h"
#include "support/json.h"
#include "support/report.h"

static void list_json(void) {
    json_out json = json_out_begin(stdout);
    json_out_open(&json, "quantizers", '[');
    for (size_t i = 0; tare_quantizer_builtin_name_at(i) != NULL; i++)
        json_out_string(&json, NULL, tare_quantizer_builtin_name_at(i));
    json_out_close(&json, ']');
    json_out_end(&json);
}

static tare_status list(const char *name, bool as_json, tare_error *err) {
    (void)name, (void)err;
    if (as_json) list_json();
    for (size_t i = 0; !as_json && tare_quantizer_builtin_name_at(i) != NULL; i++)
        printf("%s\n", tare_quantizer_builtin_name_at(i));
    return TARE_OK;
}

static tare_status show(const char *name, bool as_json, tare_error *err) {
    tare_quantizer *quantizer = NULL;
    TRY(tare_quantizer_open(name, NULL, &quantizer, err));
    const tare_status status =
        tare_quantizer_show(quantizer, as_json, write_to_stream, stdout, err);
    tare_quantizer_destroy(quantizer);
    return status;
}

typedef struct linting {
    json_out *json; // NULL: as text
    size_t errors;
} linting;

static tare_status write_finding(void *user, const tare_quantizer_finding *finding,
                                 tare_error *err) {
    linting *l = user;
    json_out *json = l->json;
    const char *severity = finding_severity(finding->is_error);
    (void)err;
    l->errors += finding->is_error;
    if (json == NULL) {
        printf("%s: %s: %s (%s)\n", severity, finding->path, finding->problem, finding->remedy);
        return TARE_OK;
    }
    json_out_open(json, NULL, '{');
    json_out_string(json, "severity", severity);
    json_out_string(json, "path", finding->path);
    json_out_string(json, "problem", finding->problem);
    json_out_string(json, "remedy", finding->remedy);
    json_out_close(json, '}');
    return TARE_OK;
}

static tare_status lint(const tare_quantizer *quantizer, bool as_json, size_t *count,
                        size_t *error_count, tare_error *err) {
    json_out json = {0};
    linting l = {.json = as_json ? &json : NULL};
    if (as_json) {
        json = json_out_begin(stdout);
        json_out_string(&json, "name", tare_quantizer_name(quantizer));
        json_out_open(&json, "findings", '[');
    }
    const tare_status status = tare_quantizer_lint(quantizer, write_finding, &l, count, err);
    *error_count = l.errors;
    if (as_json) {
        json_out_close(&json, ']');
        json_out_end(&json);
    }
    return status;
}

static tare_status check(const char *name, bool as_json, tare_error *err) {
    tare_quantizer *quantizer = NULL;
    size_t count = 0, errors = 0;
    TRY(tare_quantizer_open(name, NULL, &quantizer, err));
    tare_status status = lint(quantizer, as_json, &count, &errors, err);
    if (status == TARE_OK && !as_json && count == 0)
        printf("%s: no findings\n", tare_quantizer_name(quantizer));
    if (status == TARE_OK && count > 0) status = fail_findings(name, count, errors);
    tare_quantizer_destroy(quantizer);
    return status;
}

static const action actions[] = {
    {"list", NULL, "print the names of the built-in quantizers", list},
    {"show", "NAME", "print the default config, the rules, and the operators for settings", show},
    {"check", "NAME", "find errors and entries without effect; status 1 if there are any", check},
    {.name = NULL},
};

const command quantizer_command = {
    .name = "quantizer",
    .summary = "list, show and check quantizers of exported programs",
    .operands = {"ACTION", "NAME"},
    .least_operands = 1,
    .actions = actions,
    .options = action_options,
    .details = "NAME is a built-in quantizer, a file of rules ('-': standard input), or several "
               "separated by ','. docs/pt2e.md describes the file. No command accepts a quantizer "
               "with an error. A warning is about an entry that has no effect.",
    .run = run_action,
};
