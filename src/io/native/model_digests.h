// SPDX-License-Identifier: Apache-2.0
// Digests of a model file's contents, which detect files that were damaged, edited, or assembled
// from several files. They are stored in the metadata beside the graph:
//
//   "tare.digests": {"algorithm": "xxh3-64", "graph": DIGEST, "tensors": {NAME: DIGEST, ..},
//                    "packed": {NAME: {"of": [NAME, ..], "digest": DIGEST}, ..}}
//
// A DIGEST has 16 hexadecimal digits. `graph` is that of the text of `tare.graph`. A tensor's is
// that of its bytes, with the digest of "DTYPE[SIZE,..]" (as spelled in the file's header) as the
// seed. That of packed weights is computed from the text "DIGEST DIGEST ..", the digests of the
// packed tensor and of all tensors that it was packed from. Files without digests are allowed.
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
    const char *of[MOST_ORIGINS]; // unused entries: NULL
} packed_origin;

/// The digests of a file to be written, as JSON. tensors: name -> tare_tensor *.
tare_status tare__model_digests_to_json(const text *graph, const map *tensors,
                                        const packed_origin *origins, size_t origin_count,
                                        text *out, tare_error *err);
/// The digests of a file's tensors, being computed. For a large file, threads compute them while
/// the caller continues.
typedef struct model_digests model_digests;
/// *out: NULL for a file without digests; otherwise the caller must end or abandon it before it
/// releases the file.
tare_status tare__model_digests_begin(const safetensors *file, model_digests **out,
                                      tare_error *err);
/// Compares the file with its digests, which must cover all of it, and frees d (NULL is allowed).
/// *count: number of compared tensors, 0 without digests. Messages of TARE_MALFORMED_FILE state the
/// tensor, and the expected and found digest.
tare_status tare__model_digests_end(model_digests *d, size_t *count, tare_error *err);
void tare__model_digests_abandon(model_digests *d); // NULL is fine

#endif
