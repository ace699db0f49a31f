// SPDX-License-Identifier: Apache-2.0
// The tuner: among kernels that give the same bits for a layer, the one that is fastest for its
// shape on this machine. What it measured is kept, by processor and shape, in a file where one is
// named, so that the next session need not measure again.
//
// A file is JSON: {"format": "tare-tune-1", "layers": [{"key": .., "kernel": "product" or
// "library", "product_ns": .., "library_ns": ..}, ..]}. Keys are opaque. Whatever a file says,
// results are the same.
#ifndef RUNTIME_TUNE_TUNER_H
#define RUNTIME_TUNE_TUNER_H

#include "runtime/gemm/qlayer.h"

typedef struct tuner tuner;

/// path: NULL: nothing is kept. A file that is not there yet is made by tare__tuner_save.
/// TARE_MALFORMED_FILE for one that is no such file. The caller destroys *out.
tare_status tare__tuner_create(const char *path, tuner **out, tare_error *err);
void tare__tuner_destroy(tuner *t); // NULL is fine
/// Writes the file if something was measured since.
tare_status tare__tuner_save(tuner *t, tare_error *err);

/// A layer that is planned, and what tare__qlayer_create was given for it.
typedef struct tuned_layer {
    qlayer *layer;
    const quantized_layer *of;
    const tare_tensor *x, *y;
    isa_level isa;
    size_t batch;           // images
    const workspace *space; // whose threads run it
} tuned_layer;
/// Chooses the layer's kernel. *why: what was measured, in words, as long as the tuner lives; NULL
/// where there is no choice.
tare_status tare__tuner_choose(tuner *t, const tuned_layer *wanted, const char **why,
                               tare_error *err);

#endif
