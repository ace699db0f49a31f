// SPDX-License-Identifier: Apache-2.0
// Models as ONNX files: what the writer is asked for, and the bytes.
#ifndef IO_ONNX_WRITE_FILE_H
#define IO_ONNX_WRITE_FILE_H

#include "core/memory/arena.h"
#include "core/memory/map.h"
#include "core/system/file.h"
#include "core/text/text.h"
#include "io/data/data.h"
#include "ir/module.h"

enum { ONNX_OLDEST_WRITTEN = 13, ONNX_NEWEST_WRITTEN = 21, ONNX_DEFAULT_OPSET = 18 };

/// Keys of the metadata: the model as our own files have it, and where its tensors are: {"plain":
/// [names of initializers], "made": {name: how}}, where how is {"initializer", "dtype", "shape"},
/// {"codes", "scale", "zero_point", "axis"} (dequantized) or {"values", "dtype", "shape"}.
#define ONNX_MODEL_KEY   "tare.graph"
#define ONNX_TENSORS_KEY "tare.tensors"

/// What to write.
typedef struct onnx_write_spec {
    module *root;
    const data_input *inputs; // what is known of them; ndim -1: nothing
    size_t input_count;
    int opset;          // 0: the default
    bool external_data; // tensors go to a file beside it
    const char *json;   // the model in our own format's words; NULL: not kept
    const map *tensors; // and the tensors that it names
    const char *producer_version;
} onnx_write_spec;

/// An initializer.
typedef struct out_tensor {
    const char *name;
    const tare_tensor *t; // a reference is held
    int type;             // ONNX's number of the element type
    uint64_t offset;      // in the data file
    bool is_external;
} out_tensor;

/// A model in the making, all but the elements of its tensors.
typedef struct onnx_image {
    text head;  // fields of the model before the graph
    text nodes; // fields of the graph before the initializers
    text tail;  // fields of the graph behind them
    text foot;  // fields of the model behind the graph
    out_tensor *tensors;
    size_t tensor_count;
    arena memory; // of names
    text report;  // JSON: what could not be written, and what is worth knowing
    bool is_refused;
} onnx_image;
void tare__onnx_image_release(onnx_image *image);

/// Makes the image. Nodes that ONNX cannot express are an error that lists them; *out has the
/// report all the same, and must be released in any case.
tare_status tare__onnx_image(const onnx_write_spec *spec, onnx_image *out, tare_error *err);
/// Writes it to PATH ("-": standard output), and what is external to PATH.DIGEST.data, sixteen
/// hexadecimal digits. The model is put in place last, and data of models that PATH had before is
/// removed then: at every moment, PATH is a model whose data is there.
tare_status tare__onnx_image_write(onnx_image *image, const char *path, bool external_data,
                                   tare_error *err);
/// The model without its initializers, into memory.
tare_status tare__onnx_image_outline(const onnx_image *image, text *out, tare_error *err);

#endif
