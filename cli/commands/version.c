// SPDX-License-Identifier: Apache-2.0
// tare version: the version and the features of this build.
#include <stdio.h>

#include "options/common.h"
#include "support/json.h"
#include "support/report.h"
#include "tare/tare.h"

typedef struct version_options {
    bool as_json;
} version_options;

static int run(const command *self, int argc, char **argv) {
    version_options o = {0};
    const char *operands[OPERAND_CAPACITY];
    if (!parse_arguments(self, argc, argv, &o, operands)) return EXIT_WRONG_USAGE;
    if (o.as_json) {
        json_out json = json_out_begin(stdout);
        json_out_string(&json, "version", tare_version());
        json_out_string(&json, "features", tare_build_features());
        json_out_string(&json, "isa", tare_isa_name());
        json_out_end(&json);
    } else {
        printf("tare %s\nbuilt with: %s\ninstruction set in use: %s\n", tare_version(),
               tare_build_features(), tare_isa_name());
    }
    return finish_job(self->name, TARE_OK, NULL);
}

static const option options[] = {JSON_OPTION(version_options, as_json), {.name = NULL}};

const command version_command = {
    .name = "version",
    .summary = "print the version, the features of the build and the instruction set in use",
    .options = options,
    .run = run,
};
