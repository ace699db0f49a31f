// SPDX-License-Identifier: Apache-2.0
// Dimensions of inputs that stay open: all that a file gives a name, or nothing, in place of a
// size. Where they are more than the batch, the file is read for sizes that stand in for them. Two
// stand in at once, so that what follows them shows (sizes.h); and the file is read a second time
// for two others: only if that gives the very same model do the dimensions stay open. Private to
// io/onnx/read.
#ifndef IO_ONNX_READ_OPEN_H
#define IO_ONNX_READ_OPEN_H

#include "core/memory/map.h"
#include "io/onnx/schema.h"
#include "ir/module.h"
#include "tare/model.h"

typedef struct onnx_open_dim {
    const char *name;  // as in the file, or of our own where it has none
    const char *input; // the first input that has it
    int dim;
    bool is_named, is_image; // image: among others, of four or more dimensions
    int64_t now, other;      // what stands in
} onnx_open_dim;

typedef struct onnx_open {
    onnx_open_dim *items;
    size_t count;
    bool is_exact; // what stands in has nothing in common: what is the same number is the same size
} onnx_open;

/// The open dimensions of g's inputs, but those with a size in the options. out->count is 0 where
/// there are none, or none but first ones. In `memory`.
tare_status tare__onnx_open_find(const Onnx__GraphProto *g, const tare_model_read_options *options,
                                 arena *memory, onnx_open *out, tare_error *err);
/// Adds a dimension d of an input of ndim dimensions; name NULL: it has none. out: empty, or what
/// was added to before.
tare_status tare__onnx_open_add(onnx_open *out, arena *memory, const char *input, int ndim, int d,
                                const char *name, tare_error *err);
/// Sets what stands in for them: choice `attempt` (false past the last one), for the first or the
/// second reading.
bool tare__onnx_open_choose(onnx_open *open, int attempt, bool is_second);
/// What stands in for dimension d of an input, of this name (NULL: none). The name may be an
/// expression of others ("past + 1"). False: it is not open.
bool tare__onnx_open_size(const onnx_open *open, const char *input, int d, const char *name,
                          int64_t *now, int64_t *other);
enum { ONNX_SIZE_KEY = 64 };
/// A size by what it is for both that stand in, as the key of a map.
void tare__onnx_size_key(int64_t now, int64_t other, char key[ONNX_SIZE_KEY]);
/// Are two models the same: graphs, modules and tensors?
tare_status tare__onnx_open_agree(const module *a, const module *b, bool *agree, tare_error *err);

#endif
