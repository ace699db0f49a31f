// SPDX-License-Identifier: Apache-2.0
// Digests of what a model file holds, so that a file that was damaged, edited or put together of
// others is found out. They stand in the metadata beside the graph:
//
//   "tare.digests": {"algorithm": "xxh3-64", "graph": DIGEST, "tensors": {NAME: DIGEST, ..},
//                    "packed": {NAME: {"of": [NAME, ..], "digest": DIGEST}, ..}}
//
// A DIGEST is 16 hexadecimal digits: of the text of `tare.graph`; of a tensor's bytes, with that of
// "DTYPE[SIZE,..]" (as the file's header spells them) as its seed; of packed weights, of the text
// "DIGEST DIGEST .." of the packed tensor and of all that it was packed from. Files may have none.
// Private to io/native.
#ifndef IO_NATIVE_MODEL_DIGESTS_H
#define IO_NATIVE_MODEL_DIGESTS_H

#include "core/text/text.h"
#include "io/native/safetensors.h"

#define MODEL_GRAPH   "tare.graph" // keys of the metadata
#define MODEL_DIGESTS "tare.digests"

enum { MOST_ORIGINS = 3 };
/// Packed weights, and the tensors of the file that they were packed from, by name.
typedef struct packed_origin {
    const char *packed;
    const char *of[MOST_ORIGINS]; // the others NULL
} packed_origin;

/// The digests of a file to be written, as JSON. tensors: name -> tare_tensor *.
tare_status tare__model_digests_to_json(const text *graph, const map *tensors,
                                        const packed_origin *origins, size_t origin_count,
                                        text *out, tare_error *err);
/// The digests of a file's tensors, being computed. For a large file, threads read it from the
/// beginning on while the caller does something else.
typedef struct model_digests model_digests;
/// *out: NULL for a file without digests; else ended or abandoned before the file is released.
tare_status tare__model_digests_begin(const safetensors *file, model_digests **out,
                                      tare_error *err);
/// Compares the file with its digests, which cover all of it, and frees d (NULL is allowed).
/// *count: number of compared tensors, 0 without digests. TARE_MALFORMED_FILE states the tensor,
/// and the expected and found digest.
tare_status tare__model_digests_end(model_digests *d, size_t *count, tare_error *err);
void tare__model_digests_abandon(model_digests *d); // NULL is fine

#endif
