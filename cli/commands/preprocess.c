// SPDX-License-Identifier: Apache-2.0
// tare preprocess: what a model declares about pictures; and declaring it.
#include <stdio.h>
#include <string.h>

#include "options/command.h"
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
    // With the model on standard output, what is said goes to standard error.
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
    const char *operands[4];
    if (!parse_arguments(self, argc, argv, &o, operands)) return EXIT_WRONG_USAGE;
    if (o.set != NULL && o.clear)
        return wrong_usage(self->name, NULL, "--set and --clear exclude each other");
    if ((o.set != NULL || o.clear) != (o.output != NULL))
        return wrong_usage(self->name, NULL, "--set or --clear, and -o OUT, come together");
    tare_error *err = tare_error_create();
    const int exit_status = finish_job(self->name, run_job(operands[0], &o, err), err);
    tare_error_destroy(err);
    return exit_status;
}

#define FIELD(name) offsetof(preprocess_options, name)
static const option options[] = {
    {"set", "STEPS", "a preset, KEY=VALUE,.. or a JSON file", FIELD(set), OPTION_TEXT, 0, false,
     preprocess_choice_at},
    {"clear", NULL, "take back what is declared", FIELD(clear), OPTION_FLAG, 0, false},
    {"output", "OUT", "the model to write; '-': standard output", FIELD(output), OPTION_TEXT, 'o',
     false},
    {"json", NULL, "print JSON; what is declared on one line, null: nothing", FIELD(as_json),
     OPTION_FLAG, 0, false},
    SIZE_OPTIONS(preprocess_options, sizes),
    {.name = NULL},
};

const command preprocess_command = {
    .name = "preprocess",
    .summary = "show or declare how pictures become a model's input",
    .usage = "MODEL | MODEL --set STEPS -o OUT | MODEL --clear -o OUT  [--json]\n       [--dim "
             "NAME=N,..] [--shape INPUT=NxN..,..] [--max-memory SIZE]",
    .operands = {"MODEL"},
    .least_operands = 1,
    .options = options,
    .notes = "STEPS is a preset (imagenet, to_tensor), settings such as\n"
             "resize=256,crop=224,mean=0.5:0.5:0.5,std=0.5:0.5:0.5, a preset with settings\n"
             "behind it, or a JSON file. Settings: resize, crop (N or HEIGHTxWIDTH),\n"
             "interpolation, antialias, color, scale, mean, std, layout, dtype.\n",
    .run = run,
};
