// SPDX-License-Identifier: Apache-2.0
// Model files: a safetensors file whose metadata key `tare.graph` holds module tree and graph as
// JSON. Beside it stand the digests of all that the file holds (model_digests.h).
//
// Beyond the form that traced models come in, a file may hold (all optional):
//   per module: `same_as`: the path of the module that stands here too, instead of all other keys
//   but `path`;
//               `quantized`: {tensor: {dtype, qscheme, axis?, quant_min?, quant_max?}}, the
//               integers being stored as TENSOR.int_repr, the rest as TENSOR.scale (F64) and
//               TENSOR.zero_point (I64, or F64 with float qparams); `state`: [name, ..], tensors of
//               the class's own state, stored as PATH.name; `graph`: {nodes, codegen} of a module
//               that has a graph of its own;
//   per node: `origin`: the node of the float model that it computes;
//             `debug_handle`: its handle of the numeric debugger, over what `meta` says of it;
//   at the top: `quantized` and `state` of the root, `record`: what the caller gave as extra
//               (model/model_io.c; docs/pt2e.md says what quantizers leave there), `tare`:
//               {version} of the writer; `packed`: [{weight, form, bytes}, ..], weights in the
//               order of kernels, beside the plain ones: which tensor's, in which form (numbers),
//               and the tensor that holds them, 64-byte aligned. Forms that nobody asks for are
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

/// Packed weights, stored in addition to the plain ones: for a caller of tare__derive that requests
/// an item with these numbers.
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

/// Reads PATH. *root is a torch.fx.GraphModule whose config key `class_name` holds what print shows
/// before the parenthesis, with its graph; the caller releases it. Tensors are views of the mapped
/// file. Graph and module classes are checked. state may be NULL: a file with states is then
/// refused. extra may be NULL; else *extra is the file's `record` (the caller's json_decref) or
/// NULL.
tare_status tare__model_file_read(const char *path, const registry *classes,
                                  const model_state_io *state, module **root, json_t **extra,
                                  tare_error *err);
/// The same from JSON and tensors, which are lent.
tare_status tare__model_from_json_and_tensors(const char *json, const map *tensors,
                                              const registry *classes, const model_state_io *state,
                                              module **root, json_t **extra, tare_error *err);
/// The same from an open file, which is held against its digests (model_digests.h).
tare_status tare__model_from_file(const safetensors *file, const registry *classes,
                                  const model_state_io *state, module **root, json_t **extra,
                                  tare_error *err);
/// The same; *digest_count: the tensors that were held against digests, 0: the file has none.
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
/// JSON and tensors (name -> tare_tensor *, references owned by the caller), for files of another
/// format that hold both.
tare_status tare__model_to_json_and_tensors(const module *root, const model_state_io *state,
                                            const json_t *extra, text *json, map *tensors,
                                            tare_error *err);
/// Only the JSON: the value of `tare.graph`.
tare_status tare__model_to_json(const module *root, const model_state_io *state,
                                const json_t *extra, text *out, tare_error *err);

#endif
