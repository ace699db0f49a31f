// SPDX-License-Identifier: Apache-2.0
// Commands with actions as first operands: "tare backend show NAME".
#include "commands/actions.h"

#include <string.h>

#include "options/common.h"
#include "options/rules.h"
#include "support/report.h"

typedef struct parsed_options {
    bool as_json;
} parsed_options;

const option action_options[] = {JSON_OPTION(parsed_options, as_json), {.name = NULL}};

static const char *action_name_at(const void *user, size_t index) {
    return ((const action *)user)[index].name;
}

static int unknown_action(const command *self, const char *name) {
    char names[SPELLINGS_SIZE];
    return wrong_usage(self->name, suggest(name, action_name_at, self->actions),
                       "expected %s, found '%s'", spell_names(action_name_at, self->actions, names),
                       name);
}

static int check_operand(const command *self, const action *a, const char *operand) {
    if (a->operand != NULL && operand == NULL)
        return wrong_usage(self->name, NULL, "%s: %s is missing", a->name, a->operand);
    if (a->operand == NULL && operand != NULL)
        return wrong_usage(self->name, NULL, "%s: one operand too many: '%s'", a->name, operand);
    return EXIT_JOB_DONE;
}

int run_action(const command *self, int argc, char **argv) {
    parsed_options o = {0};
    const char *operands[OPERAND_CAPACITY];
    if (!parse_arguments(self, argc, argv, &o, operands)) return EXIT_WRONG_USAGE;
    const action *a = self->actions;
    while (a->name != NULL && strcmp(a->name, operands[0]) != 0) a++;
    if (a->name == NULL) return unknown_action(self, operands[0]);
    if (check_operand(self, a, operands[1]) != EXIT_JOB_DONE) return EXIT_WRONG_USAGE;
    tare_error *err = tare_error_create();
    const int exit_status = finish_job(self->name, a->run(operands[1], o.as_json, err), err);
    tare_error_destroy(err);
    return exit_status;
}

const char *finding_severity(bool is_error) {
    return is_error ? "error" : "warning";
}

tare_status fail_findings(const char *name, size_t count, size_t error_count) {
    const char *plural = count == 1 ? "" : "s";
    if (error_count == 0)
        return fail_here(name, "it can be used as it is", "%zu finding%s, none of them an error",
                         count, plural);
    return fail_here(name, "no command takes it before they are corrected",
                     "%zu finding%s, errors among them: %zu", count, plural, error_count);
}
