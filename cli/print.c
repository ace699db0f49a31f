// SPDX-License-Identifier: Apache-2.0
// tare print: a model as text.
#define _XOPEN_SOURCE 700 // popen
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "models.h"
#include "report.h"

typedef struct print_options {
    bool nodes, json, dot, svg, state;
    size_options sizes;
} print_options;

static tare_print_form chosen_form(const print_options *o) {
    return o->nodes   ? TARE_PRINT_NODES
           : o->json  ? TARE_PRINT_JSON
           : o->dot   ? TARE_PRINT_DOT
           : o->state ? TARE_PRINT_STATE
                      : TARE_PRINT_MODEL;
}

/// Hands the drawing to graphviz' dot, which writes to our standard output.
static tare_status print_svg(const tare_model *model, tare_error *err) {
    (void)fflush(stdout);
    (void)signal(SIGPIPE, SIG_IGN); // a dot that is not there takes no text
    FILE *dot = popen("dot -Tsvg", "w");
    if (dot == NULL) return fail_here("dot", NULL, "cannot be started: %s", strerror(errno));
    const tare_status status = tare_model_print(model, TARE_PRINT_DOT, write_to_stream, dot, err);
    const int ended = pclose(dot);
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == 127)
        return fail_here("dot", "install graphviz, or take --dot", "there is no such program");
    if (ended != 0) return fail_here("dot", NULL, "graphviz failed to draw the model");
    return status;
}

static tare_status print_model(const char *path, const print_options *o, tare_error *err) {
    tare_model *model = NULL;
    TRY(read_model(path, &o->sizes, &model, err));
    const tare_status status =
        o->svg ? print_svg(model, err)
               : tare_model_print(model, chosen_form(o), write_to_stream, stdout, err);
    if (status == TARE_OK && !o->svg) printf("\n");
    tare_model_destroy(model);
    return status;
}

static int run(const command *self, int argc, char **argv) {
    print_options o = {0};
    const char *operands[4];
    if (!parse_arguments(self, argc, argv, &o, operands)) return EXIT_WRONG_USAGE;
    if (o.nodes + o.json + o.dot + o.svg + o.state > 1)
        return wrong_usage(self->name, NULL,
                           "--nodes, --json, --dot, --svg and --state exclude each other");
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
    {"dot", NULL, "a drawing for graphviz", offsetof(print_options, dot), OPTION_FLAG, 0, false},
    {"svg", NULL, "the drawing as SVG, by graphviz' program dot", offsetof(print_options, svg),
     OPTION_FLAG, 0, false},
    {"state", NULL, "the tensors' names as torch's state_dict() lists them",
     offsetof(print_options, state), OPTION_FLAG, 0, false},
    SIZE_OPTIONS(print_options, sizes),
    {.name = NULL},
};

const command print_command = {
    .name = "print",
    .summary = "print a model as torch prints it",
    .usage =
        "MODEL [--nodes | --json | --dot | --svg | --state] [--dim NAME=N,..]\n       [--shape "
        "INPUT=NxN..,..]",
    .operands = {"MODEL"},
    .least_operands = 1,
    .options = options,
    .notes = "MODEL is a model file (.safetensors, .pt2 or .onnx); '-' is standard input.\n"
             "Drawings: what computes in integers is green, in floats red; conversions are\n"
             "yellow, observers blue. Boxes are islands of one kind.\n",
    .run = run,
};
