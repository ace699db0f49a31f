// SPDX-License-Identifier: Apache-2.0
// Files that a command writes itself: made in memory, and written in one piece (tare_file_write).
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdbool.h>

#include "support/page.h"
#include "tare/status.h"

typedef struct output_file {
    page text;
    char *path;
    struct tare_file *prepared;
} output_file;

/// Refuses, before the work, a file that could not be written when it is done. "-" is standard
/// output.
tare_status output_check(const char *path);
/// The same for a model, which is neither ONNX nor a program whatever its name says.
tare_status output_check_model(const char *path);
/// The same as output_check for a folder that is made unless it is there.
tare_status output_check_folder(const char *folder);
/// Makes the folder unless it is there.
tare_status output_make_folder(const char *folder);
/// A path for a file that another program reads, in TMPDIR or /tmp: "tare-STEM-.." with numbers.
/// False where the folder's name is too long, or holds a quote that a shell would end at.
bool output_temporary_path(const char *stem, const char *ending, char *out, size_t size);
/// Removes a file that the command wrote for another program. No effect if there is none.
void output_remove(const char *path);
/// FOLDER/NAME; folder NULL: NAME is a path. Failures are told (fail_here).
tare_status output_open(output_file *out, const char *folder, const char *name);
/// Brings the file to the disk under another name, if `status` is well. Returns what came of it.
tare_status output_prepare(output_file *out, tare_status status);
/// Gives a prepared file its name, if `status` is well, and frees. Returns what came of it.
tare_status output_place(output_file *out, tare_status status);
/// Both.
tare_status output_close(output_file *out, tare_status status);

#endif
