// SPDX-License-Identifier: Apache-2.0
// Files that a command writes itself: under a temporary name until all is written.
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdio.h>

#include "tare/status.h"

typedef struct output_file {
    FILE *stream;
    char *path, *temporary;
} output_file;

/// Refuses, before the work, a file that could not be written when it is done. "-" is standard
/// output.
tare_status output_check(const char *path);
/// The same for a model, which is neither ONNX nor a program whatever its name says.
tare_status output_check_model(const char *path);
/// The same for a folder that is made unless it is there.
tare_status output_check_folder(const char *folder);
/// Makes the folder unless it is there.
tare_status output_make_folder(const char *folder);
/// FOLDER/NAME; folder NULL: NAME is a path. Failures are told (fail_here).
tare_status output_open(output_file *out, const char *folder, const char *name);
/// Renames the file if `status` and writing were well, else removes it. Returns what came of it.
/// Frees.
tare_status output_close(output_file *out, tare_status status);
void output_remove(const char *folder, const char *name);

#endif
