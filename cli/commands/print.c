// SPDX-License-Identifier: Apache-2.0
// tare print: prints a model as text.
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

/// Pipes the drawing to graphviz' dot, which writes to standard output.
static tare_status print_svg(const tare_model *model, tare_error *err) {
    (void)fflush(stdout);
    // Without this check the shell would print a message of its own if dot is missing.
    FILE *dot = popen("command -v dot >/dev/null || exit 127; exec dot -Tsvg", "w");
    if (dot == NULL)
        return fail_here("dot", "install graphviz, or print --dot", "cannot be started: %s",
                         strerror(errno));
    const tare_status status = tare_model_print(model, TARE_PRINT_DOT, write_to_stream, dot, err);
    const int ended = pclose(dot);
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == 127)
        return fail_here("dot", "install graphviz, or use --dot", "there is no such program");
    if (ended != 0)
        return fail_here("dot", "print --dot shows its input", "graphviz failed to draw the model");
    return status;
}

/// Verifies the digests and packed weights of the file and prints their numbers. A mismatch is an
/// error.
static tare_status verify(const tare_model *model, tare_error *err) {
    tare_model_verified found = {.struct_size = sizeof found};
    TRY(tare_model_verify(model, &found, err));
    if (found.digest_count > 0)
        printf("the graph and %llu tensors are unchanged since they were written\n",
               (unsigned long long)found.digest_count);
    else
        printf("the file has no digests of its graph and tensors\n");
    if (found.packed_count > 0)
        printf("%llu packed weights are correct\n", (unsigned long long)found.packed_count);
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
    const char *operands[OPERAND_CAPACITY];
    if (!parse_arguments(self, argc, argv, &o, operands)) return EXIT_WRONG_USAGE;
    tare_error *err = tare_error_create();
    const tare_status status = print_model(operands[0], &o, err);
    const int exit_status = finish_job(self->name, status, err);
    tare_error_destroy(err);
    return exit_status;
}

#define FORM(text, ...)                                                                            \
    .name = #text, .kind = OPTION_FLAG, .offset = offsetof(print_options, text), __VA_ARGS__
static const option options[] = {
    {FORM(nodes, .help = "print the graph, one line for each node",
          .excludes = "json|dot|svg|state|verify")},
    {FORM(json, .help = "print modules and graph as stored in the file",
          .excludes = "dot|svg|state|verify")},
    {FORM(dot, .help = "print a drawing for graphviz", .excludes = "svg|state|verify",
          .details = "Integer operators are green, float ones red, conversions yellow, observers "
                     "blue. Boxes are islands of one kind.")},
    {FORM(svg, .help = "print the drawing as SVG, made by graphviz' program dot",
          .excludes = "state|verify")},
    {FORM(state, .help = "print the names of the tensors as torch's state_dict() lists them",
          .excludes = "verify")},
    {FORM(verify, .help = "check the file's digests, and its packed weights byte by byte",
          .details =
              "Every command checks the digests of the graph, tensors and packed weights in tare's "
              "own files and refuses damaged or edited files. This option also packs the weights "
              "again and compares. Files of other programs and of earlier versions have no "
              "digests. To edit a file on purpose, remove tare.digests from its metadata.")},
    SIZE_OPTIONS(print_options, sizes),
    {.name = NULL},
};

const command print_command = {
    .name = "print",
    .summary = "print a model as torch prints a GraphModule",
    .operands = {"MODEL"},
    .least_operands = 1,
    .options = options,
    .details = "MODEL is a model file (.safetensors, .pt2 or .onnx); '-' is standard input.",
    .run = run,
};
