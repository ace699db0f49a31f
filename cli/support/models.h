// SPDX-License-Identifier: Apache-2.0
// Reads the model of a command, and sets the sizes of its dynamic dimensions.
#ifndef CLI_MODELS_H
#define CLI_MODELS_H

#include "options/command.h"
#include "tare/tare.h"

/// The values of --dim, --shape and --max-memory; part of a command's options.
typedef struct size_options {
    const char *dims;   // "batch=1,seq=128"
    const char *shapes; // "x=1x3x224x224,mask=1x128"
    int64_t max_memory; // bytes for reading the model, for its data and its runs; 0: defaults
} size_options;

// clang-format off
/// The option --max-memory, for commands whose models have no dynamic dimensions.
#define MEMORY_OPTION(type, field)                                                                 \
    {.name = "max-memory", .value = "SIZE", .help = "most memory for tensors of files and runs",   \
     .library_default = "by the files' sizes and the machine",                                     \
     .details = "MODELS says what is counted.",                                                    \
     .kind = OPTION_BYTES, .offset = offsetof(type, field.max_memory)}
/// All three options; `field` is the size_options of the command's struct.
#define SIZE_OPTIONS(type, field)                                                                  \
    {.name = "dim", .value = "NAME=N,..",                                                          \
     .help = "sizes of dimensions that an ONNX file leaves open",                                  \
     .kind = OPTION_TEXT, .offset = offsetof(type, field.dims)},                                   \
    {.name = "shape", .value = "INPUT=NxN..,..", .help = "shapes of the inputs of an ONNX file",   \
     .kind = OPTION_TEXT, .offset = offsetof(type, field.shapes)},                                 \
    MEMORY_OPTION(type, field)
// clang-format on

enum { MOST_NAMES = 32 };

/// A parsed "INPUT=NxNxN,..", as an array for the library.
typedef struct shape_list {
    bool has_batch; // the first size may be "N"
    char *text;     // a copy that the names point into
    size_t count;
    tare_input_shape shapes[MOST_NAMES];
    int64_t sizes[MOST_NAMES][TARE_MAX_DIMS];
} shape_list;
/// given NULL: an empty list. Release it in any case.
tare_status read_shape_list(const char *option_name, const char *given, shape_list *list);
void shape_list_release(shape_list *list);

tare_status read_model(const char *path, const size_options *sizes, tare_model **out,
                       tare_error *err);

/// Prints what calibration noticed about its data, a line each, to standard error.
tare_status warn_of_calibration_data(const char *command_name, const tare_model *prepared,
                                     tare_error *err);

#endif
