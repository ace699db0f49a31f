// SPDX-License-Identifier: Apache-2.0
// safetensors files: 8 bytes little-endian header length, a JSON header, row-major little-endian
// data. Source: the format's reference implementation (huggingface/safetensors); files that it
// refuses are refused.
#ifndef IO_NATIVE_SAFETENSORS_H
#define IO_NATIVE_SAFETENSORS_H

#include <jansson.h>

#include "core/error.h"
#include "core/tensor/map.h"

#define SAFETENSORS_MAX_HEADER_BYTES 100000000u

/// A file's tensors and metadata; zero-initialized is a valid empty one.
typedef struct safetensors {
    map tensors;    // name -> tare_tensor *, in order of their data; references owned
    json_t *header; // holds the metadata's strings
} safetensors;

/// Maps PATH. Tensors are views of the mapping and keep it alive; a tensor whose data is not
/// aligned for its type is copied. Errors name the path, and the tensor or the byte.
tare_status tare__safetensors_read(const char *path, safetensors *out, tare_error *err);
/// The same from memory: `size` bytes at `data`, which belong to `store`.
tare_status tare__safetensors_parse(storage *store, const unsigned char *data, size_t size,
                                    safetensors *out, tare_error *err);
void tare__safetensors_release(safetensors *s);

tare_tensor *tare__safetensors_get(const safetensors *s, const char *name); // lent; NULL if absent
const char *tare__safetensors_metadata(const safetensors *s,
                                       const char *key); // lent; NULL if absent

/// Writes tensors (name -> tare_tensor *) and `metadata` (a JSON object of strings; may be NULL) to
/// PATH. The bytes depend on the content only: tensors by descending element size, then by name, as
/// the reference implementation sorts them, so that every tensor is aligned. Quantized tensors are
/// refused: the caller splits them into integers, scales and zero points.
tare_status tare__safetensors_write(const char *path, const map *tensors, const json_t *metadata,
                                    tare_error *err);
/// The same with the tensors of these names (keys of `first`) before all others, by name, the first
/// of them at a multiple of 64 bytes of the file.
tare_status tare__safetensors_write_first(const char *path, const map *tensors, const map *first,
                                          const json_t *metadata, tare_error *err);

#endif
