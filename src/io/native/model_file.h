// SPDX-License-Identifier: Apache-2.0
// Model files: safetensors files whose metadata key `tare.graph` holds the module tree and the
// graph as JSON. Another key holds digests of the contents (model_digests.h).
//
// In addition to what files of traced models contain, the JSON may have (all optional):
//   per module: `same_as`: the path of another entry, which is the same module; the only other key
//               is then `path`;
//               `quantized`: {tensor: {dtype, qscheme, axis?, quant_min?, quant_max?}}; the
//               integers are stored as TENSOR.int_repr, the parameters as TENSOR.scale (F64) and
//               TENSOR.zero_point (I64, or F64 with float qparams);
//               `state`: [name, ..], tensors of the class's state, stored as PATH.name;
//               `graph`: {nodes, codegen} of a module that has a graph of its own;
//   per node: `origin`: the node of the float model that it computes;
//             `debug_handle`: its handle of the numeric debugger, which overrides that in `meta`;
//   at the top: `quantized` and `state` of the root;
//               `record`: the caller's extra (model/model_io.c; see docs/pt2e.md for what
//               quantizers store there);
//               `tare`: {version} of the writer;
//               `packed`: [{weight, form, bytes}, ..], weights that are also stored in the layout
//               of a kernel: the name of the weight, the layout as numbers, and the name of the
//               packed tensor, which is 64-byte aligned. Layouts that no kernel requests are
//               ignored.
#ifndef IO_NATIVE_MODEL_FILE_H
#define IO_NATIVE_MODEL_FILE_H

#include <jansson.h>

#include "core/tensor/derived.h"
#include "core/text/text.h"
#include "io/native/safetensors.h"
#include "ir/module.h"
#include "ops/classes/classes.h"

#define MODEL_FILE_VERSION 1

/// Packed weights, stored in addition to the plain ones. A kernel that calls tare__derive with
/// these numbers gets them.
typedef struct model_packing {
    const tare_tensor *weight; // of the model
    uint64_t numbers[DERIVED_NUMBERS];
    tare_tensor *bytes; // uint8 [n], n a multiple of 64
} model_packing;
typedef struct model_packings {
    model_packing *items;
    size_t count, capacity;
} model_packings;

/// Converts the `state` of modules (an observer's statistics) to tensors and back. observe/
/// provides one.
typedef struct model_state_io {
    /// Adds tensors under bare names ("min_val"), references handed over to the map; none: nothing
    /// is written.
    tare_status (*save)(const module *m, map *tensors, tare_error *err);
    /// Sets m->state from such tensors, which are lent. Input is hostile.
    tare_status (*load)(module *m, const map *tensors, tare_error *err);
} model_state_io;

/// Reads PATH. *root is a torch.fx.GraphModule with its graph; its config `class_name` is the name
/// that it is printed with. The caller releases it. Tensors are views of the mapped file. Graph and
/// module classes are checked. If state is NULL, files with states are refused. extra may be NULL;
/// else *extra is the file's `record`, or NULL; the caller calls json_decref.
tare_status tare__model_file_read(const char *path, const registry *classes,
                                  const model_state_io *state, module **root, json_t **extra,
                                  tare_error *err);
/// The same from JSON and tensors, which are lent.
tare_status tare__model_from_json_and_tensors(const char *json, const map *tensors,
                                              const registry *classes, const model_state_io *state,
                                              module **root, json_t **extra, tare_error *err);
/// The same from an open file. Its digests are checked (model_digests.h).
tare_status tare__model_from_file(const safetensors *file, const registry *classes,
                                  const model_state_io *state, module **root, json_t **extra,
                                  tare_error *err);
/// The same; *digest_count: number of tensors whose digests were checked, 0: the file has none.
tare_status tare__model_from_file_counted(const safetensors *file, const registry *classes,
                                          const model_state_io *state, module **root,
                                          json_t **extra, size_t *digest_count, tare_error *err);
/// The same without checking digests.
tare_status tare__model_from_file_unchecked(const safetensors *file, const registry *classes,
                                            const model_state_io *state, module **root,
                                            json_t **extra, tare_error *err);

/// Writes root and its graph to PATH; extra (may be NULL) is stored as it is. Equal models give
/// equal bytes.
tare_status tare__model_file_write(const char *path, const module *root,
                                   const model_state_io *state, const json_t *extra,
                                   tare_error *err);
/// The same with weights packed, too. packings: lent; NULL: none.
tare_status tare__model_file_write_packed(const char *path, const module *root,
                                          const model_state_io *state, const json_t *extra,
                                          const model_packings *packings, tare_error *err);
/// The JSON and the tensors (name -> tare_tensor *, references owned by the caller), for files of
/// other formats.
tare_status tare__model_to_json_and_tensors(const module *root, const model_state_io *state,
                                            const json_t *extra, text *json, map *tensors,
                                            tare_error *err);
/// Only the JSON: the value of `tare.graph`.
tare_status tare__model_to_json(const module *root, const model_state_io *state,
                                const json_t *extra, text *out, tare_error *err);

#endif
