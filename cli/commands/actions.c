// SPDX-License-Identifier: Apache-2.0
// Commands whose first operand is a verb.
#include "commands/actions.h"

#include <string.h>

#include "support/report.h"

typedef struct parsed_options {
    bool as_json;
} parsed_options;

const option action_options[] = {
    {"json", NULL, "print JSON", offsetof(parsed_options, as_json), OPTION_FLAG, 0, false},
    {.name = NULL},
};

static const char *action_name_at(const void *user, size_t index) {
    return ((const action *)user)[index].name;
}

int run_action(const command *self, const action *actions, int argc, char **argv) {
    parsed_options o = {0};
    const char *operands[4];
    if (!parse_arguments(self, argc, argv, &o, operands)) return EXIT_WRONG_USAGE;
    const action *a = actions;
    while (a->name != NULL && strcmp(a->name, operands[0]) != 0) a++;
    if (a->name == NULL)
        return wrong_usage(self->name, suggest(operands[0], action_name_at, actions),
                           "no action '%s'", operands[0]);
    if (a->needs_name != (operands[1] != NULL))
        return wrong_usage(self->name, NULL,
                           a->needs_name ? "%s: NAME is missing" : "%s takes no name", a->name);
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
