// SPDX-License-Identifier: Apache-2.0
// Output files of commands: collected in memory, written to a temporary file, then renamed.
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

/// Fails if the file could not be written, before the work begins. "-" is standard output.
tare_status output_check(const char *path);
/// The same for a model in tare's format, which must not be named like an ONNX file or a program.
tare_status output_check_model(const char *path);
/// The same for a folder, which is created if necessary.
tare_status output_check_folder(const char *folder);
/// Creates the folder unless it exists.
tare_status output_make_folder(const char *folder);
/// A path for a file that another program reads, in TMPDIR or /tmp: "tare-STEM-.." with numbers.
/// False if the folder's name is too long, or contains a quote that would end a shell's quoting.
bool output_temporary_path(const char *stem, const char *ending, char *out, size_t size);
/// Removes a file that was written for another program. No effect if it does not exist.
void output_remove(const char *path);
/// Opens FOLDER/NAME; folder NULL: NAME is a path. Prints failures (fail_here).
tare_status output_open(output_file *out, const char *folder, const char *name);
/// Writes the file to disk under a temporary name if `status` is TARE_OK. Returns the resulting
/// status.
tare_status output_prepare(output_file *out, tare_status status);
/// Renames a prepared file if `status` is TARE_OK, and frees it. Returns the resulting status.
tare_status output_place(output_file *out, tare_status status);
/// Both of these.
tare_status output_close(output_file *out, tare_status status);

#endif
