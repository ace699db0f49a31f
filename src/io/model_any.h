// SPDX-License-Identifier: Apache-2.0
// Reads a model file of any known format, which its first bytes determine.
#ifndef IO_MODEL_ANY_H
#define IO_MODEL_ANY_H

#include "io/native/model_file.h"
#include "tare/model.h"

/// The contents of a file.
typedef struct model_found {
    module *root;          // the caller releases it
    json_t *extra;         // the file's `record` (the caller's json_decref) or NULL
    bool from_onnx;        // as opposed to our own format
    bool is_quantized;     // an ONNX file of others with QuantizeLinear: in reference form
    size_t digest_count;   // tensors that were held against the file's digests
    bool norms_are_folded; // written by one of torch's ONNX exporters, which leave no batch norm
                           // behind a convolution
} model_found;

/// The origin of a model.
typedef struct model_source {
    const char *path;  // for messages, too: "memory"
    const void *bytes; // NULL: the file at `path`; else lent, unless options say copies_file
    size_t size;
} model_source;

/// Reads tare's own format, a program of torch.export (.pt2), or ONNX. For anything else the error
/// says what it is. options, and its limits, may be NULL.
tare_status tare__model_any_read(const model_source *from, const registry *classes,
                                 const model_state_io *state,
                                 const tare_model_read_options *options, model_found *out,
                                 tare_error *err);

/// What other bytes look like: "a JPEG image"; NULL if nothing is recognized.
const char *tare__describe_bytes(const unsigned char *bytes, size_t size);

#endif
