// SPDX-License-Identifier: Apache-2.0
// tare preprocess: prints or sets the image preprocessing that a model declares.
#include <stdio.h>
#include <string.h>

#include "options/common.h"
#include "support/configs.h"
#include "support/json.h"
#include "support/models.h"
#include "support/output.h"
#include "support/report.h"
#include "tare/tare.h"

typedef struct preprocess_options {
    const char *set, *output;
    bool clear, as_json;
    size_options sizes;
} preprocess_options;

static tare_status show(const tare_model *model, const char *path, const preprocess_options *o,
                        tare_error *err) {
    const tare_preprocess *declared = tare_model_preprocess(model);
    char *json = NULL;
    if (declared == NULL) {
        if (o->as_json)
            printf("null\n");
        else
            printf("%s declares no preprocessing\n", path);
        return TARE_OK;
    }
    TRY(tare_preprocess_to_json(declared, &json, err));
    if (o->as_json)
        printf("%s\n", json);
    else
        json_out_indent(stdout, json);
    tare_string_free(json);
    return TARE_OK;
}

static tare_status write_changed(tare_model *model, const preprocess_options *o, tare_error *err) {
    tare_preprocess *declared = NULL;
    if (o->set != NULL) TRY(load_preprocess(o->set, &declared, err));
    tare_status status = tare_model_set_preprocess(model, declared, err);
    tare_preprocess_destroy(declared);
    if (status == TARE_OK) status = tare_model_write(model, o->output, err);
    if (status != TARE_OK || !o->as_json) return status;
    // If the model goes to standard output, messages go to standard error.
    json_out json = json_out_begin(strcmp(o->output, "-") == 0 ? stderr : stdout);
    json_out_string(&json, "output", o->output);
    json_out_end(&json);
    return TARE_OK;
}

static tare_status run_job(const char *path, const preprocess_options *o, tare_error *err) {
    tare_model *model = NULL;
    if (o->output != NULL) TRY(output_check_model(o->output));
    TRY(read_model(path, &o->sizes, &model, err));
    const tare_status status =
        o->output != NULL ? write_changed(model, o, err) : show(model, path, o, err);
    tare_model_destroy(model);
    return status;
}

static int run(const command *self, int argc, char **argv) {
    preprocess_options o = {0};
    const char *operands[OPERAND_CAPACITY];
    if (!parse_arguments(self, argc, argv, &o, operands)) return EXIT_WRONG_USAGE;
    tare_error *err = tare_error_create();
    const int exit_status = finish_job(self->name, run_job(operands[0], &o, err), err);
    tare_error_destroy(err);
    return exit_status;
}

#define FIELD(name) offsetof(preprocess_options, name)
static const option options[] = {
    {.name = "set",
     .value = "STEPS",
     .help = "declare these steps: a preset, KEY=VALUE,.. or a JSON file",
     .kind = OPTION_FILE,
     .choice_at = preprocess_choice_at,
     .requires = "output",
     .excludes = "clear",
     .offset = FIELD(set)},
    {.name = "clear",
     .help = "remove the declaration",
     .kind = OPTION_FLAG,
     .requires = "output",
     .offset = FIELD(clear)},
    {.name = "output",
     .letter = 'o',
     .value = "OUT",
     .help = "the model to write; '-': standard output",
     .kind = OPTION_FILE,
     .writes = "",
     .requires = "set|clear",
     .offset = FIELD(output)},
    JSON_OPTION(preprocess_options, as_json),
    SIZE_OPTIONS(preprocess_options, sizes),
    {.name = NULL},
};

const command preprocess_command = {
    .name = "preprocess",
    .summary = "show or declare the preprocessing of images",
    .operands = {"MODEL"},
    .least_operands = 1,
    .options = options,
    .details = "Without --set and --clear, prints the declaration. STEPS is a preset (imagenet, "
               "to_tensor), settings such as resize=256,crop=224,mean=0.5:0.5:0.5,std=0.5:0.5:0.5, "
               "a preset followed by settings, or a JSON file. Settings: resize and crop (N or "
               "HEIGHTxWIDTH), interpolation (bilinear, bicubic, nearest), antialias, color (rgb, "
               "bgr, gray), scale, mean, std, layout (NCHW, NHWC), dtype (float32, uint8).\n\nThe "
               "tensors equal those of Pillow and torchvision. The declaration is stored in the "
               "model's file and applies wherever that model reads images.",
    .run = run,
};
