// SPDX-License-Identifier: Apache-2.0
// What `tare export --to onnx` takes beyond the other formats.
#ifndef CLI_ONNX_EXPORT_H
#define CLI_ONNX_EXPORT_H

#include "options/command.h"
#include "tare/tare.h"

/// A field of a command's own options.
typedef struct onnx_export {
    int64_t opset; // 0: the library's default
    bool external_data;
    const char *report; // a file; NULL: none
    const char *shapes; // "x=Nx3x224x224,.."
} onnx_export;

/// The rows of these options; `field` is that of the command's struct.
#define ONNX_EXPORT_OPTIONS(struct_name, field)                                                    \
    {"opset",                                                                                      \
     "N",                                                                                          \
     "ONNX: its operator set, 13 to 21 (18)",                                                      \
     offsetof(struct_name, field.opset),                                                           \
     OPTION_NUMBER,                                                                                \
     0,                                                                                            \
     false},                                                                                       \
        {"external-data",                                                                          \
         NULL,                                                                                     \
         "ONNX: tensors go to OUT.DIGEST.data",                                                    \
         offsetof(struct_name, field.external_data),                                               \
         OPTION_FLAG,                                                                              \
         0,                                                                                        \
         false},                                                                                   \
        {"report",                                                                                 \
         "FILE",                                                                                   \
         "ONNX: what it cannot express, and notes, as JSON",                                       \
         offsetof(struct_name, field.report),                                                      \
         OPTION_TEXT,                                                                              \
         0,                                                                                        \
         false},                                                                                   \
    {                                                                                              \
        "input-shape", "INPUT=NxN..,..",                                                           \
            "ONNX: shapes that the model does not say; the first size N: an open batch",           \
            offsetof(struct_name, field.shapes), OPTION_TEXT, 0, false                             \
    }

bool onnx_export_is_given(const onnx_export *o);
tare_status onnx_export_write(const tare_model *model, const onnx_export *o, const char *path,
                              tare_error *err);

#endif
