// SPDX-License-Identifier: Apache-2.0
// Autotuning: chooses the fastest of the kernels that give the same bits for a layer's shape on
// this machine. Measured times are stored by processor and shape in a file, if one is given, so
// that later sessions need not measure again.
//
// A file is JSON: {"format": "tare-tune-1", "layers": [{"key": .., "kernel": "product" or
// "library", "product_ns": .., "library_ns": ..}, ..]}. Keys are opaque. The contents of a file
// never change results.
#ifndef RUNTIME_TUNE_TUNER_H
#define RUNTIME_TUNE_TUNER_H

#include "runtime/gemm/qlayer.h"

typedef struct tuner tuner;

/// path NULL: times are not stored. A missing file is created by tare__tuner_save.
/// TARE_MALFORMED_FILE for another kind of file. The caller destroys *out.
tare_status tare__tuner_create(const char *path, tuner **out, tare_error *err);
void tare__tuner_destroy(tuner *t); // NULL is allowed
/// Writes the file if anything was measured.
tare_status tare__tuner_save(tuner *t, tare_error *err);

/// A layer that is being planned, with the arguments of tare__qlayer_create.
typedef struct tuned_layer {
    qlayer *layer;
    const quantized_layer *of;
    const tare_tensor *x, *y;
    isa_level isa;
    size_t batch;           // images
    const workspace *space; // its threads run the layer
} tuned_layer;
/// Chooses the layer's kernel. *why: the measurement as a sentence, valid as long as the tuner;
/// NULL if there was no choice.
tare_status tare__tuner_choose(tuner *t, const tuned_layer *wanted, const char **why,
                               tare_error *err);

#endif
