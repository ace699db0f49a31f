// SPDX-License-Identifier: Apache-2.0
// tare export: a model in another format.
#include <string.h>

#include "commands/onnx_export.h"
#include "support/json.h"
#include "support/models.h"
#include "support/output.h"
#include "support/report.h"

typedef struct export_options {
    const char *format, *output;
    bool as_json, packed;
    size_options sizes;
    onnx_export onnx;
} export_options;

typedef struct model_format {
    const char *name;
    tare_status (*check_output)(const char *path);
    tare_status (*write)(const tare_model *model, const export_options *o, tare_error *err);
} model_format;

static tare_status write_own(const tare_model *model, const export_options *o, tare_error *err) {
    return o->packed ? tare_model_write_packed(model, o->output, err)
                     : tare_model_write(model, o->output, err);
}

static tare_status write_pt2(const tare_model *model, const export_options *o, tare_error *err) {
    return tare_model_write_pt2(model, o->output, err);
}

static tare_status write_onnx(const tare_model *model, const export_options *o, tare_error *err) {
    return onnx_export_write(model, &o->onnx, o->output, err);
}

// The option's help and the notes below say what each one is.
static const model_format formats[] = {
    {"tare", output_check_model, write_own},
    {"pt2", output_check, write_pt2},
    {"onnx", output_check, write_onnx},
};

static const char *format_name(const void *user, size_t index) {
    (void)user;
    return index < sizeof formats / sizeof *formats ? formats[index].name : NULL;
}

static const model_format *find_format(const char *name) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i].name, name) == 0) return &formats[i];
    return NULL;
}

static void print_json(const export_options *o) {
    // With the model on standard output, what is said goes to standard error.
    json_out json = json_out_begin(strcmp(o->output, "-") == 0 ? stderr : stdout);
    json_out_string(&json, "output", o->output);
    json_out_string(&json, "format", o->format);
    json_out_end(&json);
}

static tare_status run_job(const char *path, const export_options *o, const model_format *format,
                           tare_error *err) {
    tare_model *model = NULL;
    TRY(format->check_output(o->output));
    TRY(output_refuse_inputs(o->output, &path, 1));
    TRY(read_model(path, &o->sizes, &model, err));
    const tare_status status = format->write(model, o, err);
    tare_model_destroy(model);
    if (status == TARE_OK && o->as_json) print_json(o);
    return status;
}

static int unknown_format(const command *self, const char *name) {
    char known[64] = "there are";
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const size_t length = strlen(known);
        (void)snprintf(known + length, sizeof known - length, " %s", formats[i].name);
    }
    return wrong_usage(self->name, known, "no format '%s'", name);
}

static int run(const command *self, int argc, char **argv) {
    export_options o = {0};
    const char *operands[4];
    if (!parse_arguments(self, argc, argv, &o, operands)) return EXIT_WRONG_USAGE;
    const model_format *format = find_format(o.format);
    if (format == NULL) return unknown_format(self, o.format);
    if (strcmp(o.format, "onnx") != 0 && onnx_export_is_given(&o.onnx))
        return wrong_usage(self->name,
                           "--opset, --external-data, --report and --input-shape are "
                           "for --to onnx",
                           "an option without effect");
    if (strcmp(o.format, "tare") != 0 && o.packed)
        return wrong_usage(self->name, "--packed is for --to tare", "an option without effect");
    tare_error *err = tare_error_create();
    const int exit_status = finish_job(self->name, run_job(operands[0], &o, format, err), err);
    tare_error_destroy(err);
    return exit_status;
}

#define FIELD(name) offsetof(export_options, name)
static const option options[] = {
    {"to", "FORMAT",
     "tare: a .safetensors file with the graph in it; pt2: a program of torch.export; onnx",
     FIELD(format), OPTION_TEXT, 0, true, format_name},
    {"output", "OUT", "the model to write; '-': standard output", FIELD(output), OPTION_TEXT, 'o',
     true},
    {"packed", NULL, "tare: integer weights in the order of the kernels, too: a faster start",
     FIELD(packed), OPTION_FLAG, 0, false},
    {"json", NULL, "print the result as JSON", FIELD(as_json), OPTION_FLAG, 0, false},
    SIZE_OPTIONS(export_options, sizes),
    ONNX_EXPORT_OPTIONS(export_options, onnx),
    {.name = NULL},
};

const command export_command = {
    .name = "export",
    .summary = "write a model in another format",
    .usage =
        "MODEL --to tare|pt2|onnx [--opset N] [--external-data] [--report FILE]\n"
        "            [--input-shape INPUT=NxN..,..] [--dim NAME=N,..] [--shape INPUT=NxN..,..]\n"
        "            [--packed] [--json] [--max-memory SIZE] -o OUT",
    .operands = {"MODEL"},
    .least_operands = 1,
    .options = options,
    .notes = "An ONNX file is read once, with the sizes that it leaves open; OUT needs none. A\n"
             "program calls operators only: pt2 is for models that were read from one (.pt2),\n"
             "float or converted, and is what torch.export.load reads. Quantized models become\n"
             "onnx with QuantizeLinear and DequantizeLinear; what ONNX cannot express is an error\n"
             "that lists it, and --report has all of it as JSON.\n",
    .run = run,
};
