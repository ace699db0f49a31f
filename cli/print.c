// SPDX-License-Identifier: Apache-2.0
// tare print: a model as text.
#include <stdio.h>

#include "models.h"
#include "report.h"

typedef struct print_options {
    bool nodes, json, dot, state;
    size_options sizes;
} print_options;

static tare_print_form chosen_form(const print_options *o) {
    return o->nodes   ? TARE_PRINT_NODES
           : o->json  ? TARE_PRINT_JSON
           : o->dot   ? TARE_PRINT_DOT
           : o->state ? TARE_PRINT_STATE
                      : TARE_PRINT_MODEL;
}

static tare_status print_model(const char *path, const print_options *o, tare_error *err) {
    tare_model *model = NULL;
    TRY(read_model(path, &o->sizes, &model, err));
    const tare_status status =
        tare_model_print(model, chosen_form(o), write_to_stream, stdout, err);
    if (status == TARE_OK) printf("\n");
    tare_model_destroy(model);
    return status;
}

static int run(const command *self, int argc, char **argv) {
    print_options o = {0};
    const char *operands[4];
    if (!parse_arguments(self, argc, argv, &o, operands)) return EXIT_WRONG_USAGE;
    if (o.nodes + o.json + o.dot + o.state > 1)
        return wrong_usage(self->name, NULL,
                           "--nodes, --json, --dot and --state exclude each other");
    tare_error *err = tare_error_create();
    const tare_status status = print_model(operands[0], &o, err);
    const int exit_status = finish_job(self->name, status, err);
    tare_error_destroy(err);
    return exit_status;
}

static const option options[] = {
    {"nodes", NULL, "the graph, a line a node", offsetof(print_options, nodes), OPTION_FLAG, 0,
     false},
    {"json", NULL, "modules and graph as they stand in the file", offsetof(print_options, json),
     OPTION_FLAG, 0, false},
    {"dot", NULL, "a drawing for graphviz: tare print MODEL --dot | dot -Tsvg",
     offsetof(print_options, dot), OPTION_FLAG, 0, false},
    {"state", NULL, "the tensors' names as torch's state_dict() lists them",
     offsetof(print_options, state), OPTION_FLAG, 0, false},
    SIZE_OPTIONS(print_options, sizes),
    {.name = NULL},
};

const command print_command = {
    .name = "print",
    .summary = "print a model as torch prints it",
    .usage = "MODEL [--nodes | --json | --dot | --state] [--dim NAME=N,..]\n       [--shape "
             "INPUT=NxN..,..]",
    .operands = {"MODEL"},
    .least_operands = 1,
    .options = options,
    .notes = "MODEL is a model file (.safetensors or .onnx); '-' is standard input.\n",
    .run = run,
};
