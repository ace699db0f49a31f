// SPDX-License-Identifier: Apache-2.0
// tare export: writes a model in another format.
#include <string.h>

#include "commands/onnx_export.h"
#include "options/common.h"
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

// The option's help and the notes below describe the formats.
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
    const model_format *format = formats;
    while (strcmp(format->name, name) != 0) format++;
    return format;
}

static void print_json(const export_options *o) {
    // If the model goes to standard output, messages go to standard error.
    json_out json = json_out_begin(strcmp(o->output, "-") == 0 ? stderr : stdout);
    json_out_string(&json, "output", o->output);
    json_out_string(&json, "format", o->format);
    json_out_end(&json);
}

static tare_status run_job(const char *path, const export_options *o, const model_format *format,
                           tare_error *err) {
    tare_model *model = NULL;
    TRY(format->check_output(o->output));
    TRY(read_model(path, &o->sizes, &model, err));
    const tare_status status = format->write(model, o, err);
    tare_model_destroy(model);
    if (status == TARE_OK && o->as_json) print_json(o);
    return status;
}

static int run(const command *self, int argc, char **argv) {
    export_options o = {0};
    const char *operands[OPERAND_CAPACITY];
    if (!parse_arguments(self, argc, argv, &o, operands)) return EXIT_WRONG_USAGE;
    tare_error *err = tare_error_create();
    const int exit_status =
        finish_job(self->name, run_job(operands[0], &o, find_format(o.format), err), err);
    tare_error_destroy(err);
    return exit_status;
}

#define FIELD(name) offsetof(export_options, name)
static const option options[] = {
    {.name = "to",
     .value = "FORMAT",
     .help = "format of OUT",
     .details =
         "tare: tare's own format, for example to store an ONNX file with its open sizes set. pt2: "
         "a model that was read from a program of torch.export, float or converted, as a file that "
         "torch.export.load reads. onnx: a float model, or a quantized one with QuantizeLinear and "
         "DequantizeLinear; a model that ONNX cannot express is an error that lists the operators.",
     .kind = OPTION_CHOICE,
     .choice_at = format_name,
     .is_required = true,
     .offset = FIELD(format)},
    MODEL_OUTPUT_OPTION(export_options, output),
    {.name = "packed",
     .help = "also write integer weights in the order of the kernels",
     .details = "The packed weights are used directly from the mapped file. The first result comes "
                "sooner; the file is twice as large.",
     .kind = OPTION_FLAG,
     .requires = "to=tare",
     .offset = FIELD(packed)},
    ONNX_EXPORT_OPTIONS(export_options, onnx),
    JSON_OPTION(export_options, as_json),
    SIZE_OPTIONS(export_options, sizes),
    {.name = NULL},
};

const command export_command = {
    .name = "export",
    .summary = "write a model in another format",
    .operands = {"MODEL"},
    .least_operands = 1,
    .options = options,
    .details = "Open sizes of an ONNX file are given once, here; OUT needs none.",
    .run = run,
};
