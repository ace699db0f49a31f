// SPDX-License-Identifier: Apache-2.0
// tare print: a model as text.
#define _XOPEN_SOURCE 700 // popen
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "support/models.h"
#include "support/report.h"

typedef struct print_options {
    bool nodes, json, dot, svg, state, verify;
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
    FILE *dot = popen("dot -Tsvg", "w");
    if (dot == NULL)
        return fail_here("dot", "install graphviz, or print --dot", "cannot be started: %s",
                         strerror(errno));
    const tare_status status = tare_model_print(model, TARE_PRINT_DOT, write_to_stream, dot, err);
    const int ended = pclose(dot);
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == 127)
        return fail_here("dot", "install graphviz, or take --dot", "there is no such program");
    if (ended != 0)
        return fail_here("dot", "print --dot shows what it was given",
                         "graphviz failed to draw the model");
    return status;
}

/// What was found right; what was not is an error.
static tare_status verify(const tare_model *model, tare_error *err) {
    tare_model_verified found = {.struct_size = sizeof found};
    TRY(tare_model_verify(model, &found, err));
    if (found.digest_count > 0)
        printf("the graph and %llu tensors are as they were written\n",
               (unsigned long long)found.digest_count);
    else
        printf("the file has no digests of its graph and tensors\n");
    if (found.packed_count > 0)
        printf("%llu packed weights are what packing gives\n",
               (unsigned long long)found.packed_count);
    return TARE_OK;
}

static tare_status print_form(const tare_model *model, const print_options *o, tare_error *err) {
    TRY(tare_model_print(model, chosen_form(o), write_to_stream, stdout, err));
    printf("\n");
    return TARE_OK;
}

static tare_status print_model(const char *path, const print_options *o, tare_error *err) {
    tare_model *model = NULL;
    TRY(read_model(path, &o->sizes, &model, err));
    const tare_status status = o->svg      ? print_svg(model, err)
                               : o->verify ? verify(model, err)
                                           : print_form(model, o, err);
    tare_model_destroy(model);
    return status;
}

static int run(const command *self, int argc, char **argv) {
    print_options o = {0};
    const char *operands[4];
    if (!parse_arguments(self, argc, argv, &o, operands)) return EXIT_WRONG_USAGE;
    if (o.nodes + o.json + o.dot + o.svg + o.state + o.verify > 1)
        return wrong_usage(
            self->name, NULL,
            "--nodes, --json, --dot, --svg, --state and --verify exclude each other");
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
    {"verify", NULL, "check what the file holds: its digests, and packed weights byte by byte",
     offsetof(print_options, verify), OPTION_FLAG, 0, false},
    SIZE_OPTIONS(print_options, sizes),
    {.name = NULL},
};

const command print_command = {
    .name = "print",
    .summary = "print a model as torch prints it",
    .usage =
        "MODEL [--nodes | --json | --dot | --svg | --state | --verify]\n       [--dim NAME=N,..] "
        "[--shape INPUT=NxN..,..] [--max-memory SIZE]",
    .operands = {"MODEL"},
    .least_operands = 1,
    .options = options,
    .notes = "MODEL is a model file (.safetensors, .pt2 or .onnx); '-' is standard input.\n"
             "Drawings: what computes in integers is green, in floats red; conversions are\n"
             "yellow, observers blue. Boxes are islands of one kind.\n"
             "Every command holds a file against its digests when it reads it; --verify also\n"
             "packs the weights of a file that has them packed once more, and compares.\n",
    .run = run,
};
