// SPDX-License-Identifier: Apache-2.0
// ONNX files: the specification of what to write, and the bytes.
#ifndef IO_ONNX_WRITE_FILE_H
#define IO_ONNX_WRITE_FILE_H

#include "core/memory/arena.h"
#include "core/memory/map.h"
#include "core/system/file.h"
#include "core/text/text.h"
#include "io/data/data.h"
#include "ir/module.h"

enum { ONNX_OLDEST_WRITTEN = 13, ONNX_NEWEST_WRITTEN = 21, ONNX_DEFAULT_OPSET = 18 };

/// Metadata keys: the model in tare's own format, and where its tensors are: {"plain": [names of
/// initializers], "made": {name: how}}, where how is {"initializer", "dtype", "shape"}, {"codes",
/// "scale", "zero_point", "axis"} (dequantized) or {"values", "dtype", "shape"}.
#define ONNX_MODEL_KEY   "tare.graph"
#define ONNX_TENSORS_KEY "tare.tensors"

/// What to write.
typedef struct onnx_write_spec {
    module *root;
    const data_input *inputs; // what is known of each; ndim -1: nothing
    size_t input_count;
    int opset;          // 0: the default
    bool external_data; // store tensors in a file beside the model
    const char *json;   // the model in tare's own format; NULL: not stored
    const map *tensors; // the tensors that `json` names
    const char *producer_version;
} onnx_write_spec;

/// An initializer.
typedef struct out_tensor {
    const char *name;
    const tare_tensor *t; // a reference is held
    int type;             // ONNX's element type
    uint64_t offset;      // in the external data file
    bool is_external;
} out_tensor;

/// A model message without the elements of its tensors.
typedef struct onnx_image {
    text head;  // fields of the model before the graph
    text nodes; // fields of the graph before the initializers
    text tail;  // fields of the graph after the initializers
    text foot;  // fields of the model after the graph
    out_tensor *tensors;
    size_t tensor_count;
    arena memory; // for names
    text report;  // JSON: nodes that could not be written, and notes
    bool is_refused;
} onnx_image;
void tare__onnx_image_release(onnx_image *image);

/// Makes the image. If ONNX cannot express some nodes, the error lists them; *out then has the
/// report all the same. The caller releases *out in any case.
tare_status tare__onnx_image(const onnx_write_spec *spec, onnx_image *out, tare_error *err);
/// Writes the image to PATH ("-": standard output), and external data to PATH.DIGEST.data (sixteen
/// hexadecimal digits). The model is put in place last, then the data of older models at PATH is
/// removed: at every moment PATH is a complete model.
tare_status tare__onnx_image_write(onnx_image *image, const char *path, bool external_data,
                                   tare_error *err);
/// Writes the model without its initializers to memory.
tare_status tare__onnx_image_outline(const onnx_image *image, text *out, tare_error *err);

#endif
