// SPDX-License-Identifier: Apache-2.0
// Options of `tare export --to onnx` that the other formats lack.
#ifndef CLI_ONNX_EXPORT_H
#define CLI_ONNX_EXPORT_H

#include "options/command.h"
#include "tare/tare.h"

/// Part of a command's options.
typedef struct onnx_export {
    int64_t opset; // 0: the library's default
    bool external_data;
    const char *report; // a file; NULL: none
    const char *shapes; // "x=Nx3x224x224,.."
} onnx_export;

// clang-format off
#define ONNX_EXPORT_OPTIONS(type, field)                                                           \
    {.name = "opset", .value = "N", .help = "operator set, 13 to 21", .library_default = "18",     \
     .kind = OPTION_NUMBER, .most = INT16_MAX, .requires = "to=onnx", .offset = offsetof(type, field.opset)},         \
    {.name = "external-data", .help = "write tensors to OUT.DIGEST.data",                          \
     .details = "The file stands beside OUT; DIGEST is a digest of its bytes.",                    \
     .kind = OPTION_FLAG, .requires = "to=onnx", .offset = offsetof(type, field.external_data)},   \
    {.name = "report", .value = "FILE",                                                            \
     .help = "write what ONNX cannot express, and notes, as JSON",                                 \
     .details = "Its keys are opset, batch (open or fixed), refused (a list of node, operator, "   \
                "reason) and notes (a list of node, note).",                                       \
     .kind = OPTION_FILE, .writes = "", .requires = "to=onnx", .offset = offsetof(type, field.report)},          \
    {.name = "input-shape", .value = "INPUT=NxN..,..",                                             \
     .help = "shapes of inputs that the model does not state",                                     \
     .details = "With a first size of N (x=Nx3x224x224) the batch is open.",                       \
     .kind = OPTION_TEXT, .requires = "to=onnx", .offset = offsetof(type, field.shapes)}
// clang-format on

tare_status onnx_export_write(const tare_model *model, const onnx_export *o, const char *path,
                              tare_error *err);

#endif
