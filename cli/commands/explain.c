// SPDX-License-Identifier: Apache-2.0
// tare explain: the decision for every operator, with the reason.
#include <stdio.h>

#include "options/common.h"
#include "support/models.h"
#include "support/report.h"
#include "tare/tare.h"

typedef struct explain_options {
    const char *node;
    bool as_json;
    size_options sizes;
} explain_options;

static tare_status explain(const char *path, const explain_options *o, tare_error *err) {
    tare_model *model = NULL;
    TRY(read_model(path, &o->sizes, &model, err));
    tare_status status = TARE_OK;
    if (tare_model_decision_count(model) == 0)
        status =
            fail_here(path, "tare quantize makes models that do", "the model carries no decisions");
    else if (o->as_json)
        status = tare_model_explain_json(model, o->node, write_to_stream, stdout, err);
    else
        status = tare_model_explain(model, o->node, write_to_stream, stdout, err);
    tare_model_destroy(model);
    return status;
}

static int run(const command *self, int argc, char **argv) {
    explain_options o = {0};
    const char *operands[OPERAND_CAPACITY];
    if (!parse_arguments(self, argc, argv, &o, operands)) return EXIT_WRONG_USAGE;
    tare_error *err = tare_error_create();
    const int exit_status = finish_job(self->name, explain(operands[0], &o, err), err);
    tare_error_destroy(err);
    return exit_status;
}

static const option options[] = {
    {.name = "node",
     .value = "NAME",
     .help = "print every decision about one node",
     .kind = OPTION_TEXT,
     .offset = offsetof(explain_options, node)},
    JSON_OPTION(explain_options, as_json),
    MEMORY_OPTION(explain_options, sizes),
    {.name = NULL},
};

const command explain_command = {
    .name = "explain",
    .summary = "show how each operator was quantized, and why",
    .operands = {"MODEL"},
    .least_operands = 1,
    .options = options,
    .details = "MODEL is a file that tare quantize wrote. One sentence is printed for each "
               "operator of the float model.",
    .run = run,
};
