// SPDX-License-Identifier: Apache-2.0
// Open dimensions of inputs, which ONNX calls symbolic: those with a name, or nothing, in place of
// a size. If not only the batch is open, the file is read with a stand-in size for each open
// dimension. Every dimension has two stand-ins at once, which shows what depends on it (sizes.h).
// The file is then read again with two other stand-ins. Dimensions stay open only if both readings
// give the same model.
// Private to io/onnx.
#ifndef IO_ONNX_READ_OPEN_H
#define IO_ONNX_READ_OPEN_H

#include "core/memory/map.h"
#include "io/onnx/schema.h"
#include "ir/module.h"
#include "tare/model.h"

typedef struct onnx_open_dim {
    const char *name;  // as in the file, or generated if it has none
    const char *input; // the first input that has it
    int dim;
    bool is_named, is_image; // is_image: of an input with at least four dimensions
    int64_t now, other;      // the stand-in sizes
} onnx_open_dim;

typedef struct onnx_open {
    onnx_open_dim *items;
    size_t count;
    bool is_exact; // the stand-ins have no common factors: equal numbers mean equal sizes
} onnx_open;

/// Finds the open dimensions of g's inputs, except those with a size in the options. out->count is
/// 0 if there are none, or only first dimensions. Allocates in `memory`.
tare_status tare__onnx_open_find(const Onnx__GraphProto *g, const tare_model_read_options *options,
                                 arena *memory, onnx_open *out, tare_error *err);
/// Adds dimension d of an input with ndim dimensions. name NULL: it has none. out: empty, or the
/// result of earlier calls.
tare_status tare__onnx_open_add(onnx_open *out, arena *memory, const char *input, int ndim, int d,
                                const char *name, tare_error *err);
/// Sets the stand-in sizes of an attempt, for the first or the second reading. Returns false past
/// the last attempt.
bool tare__onnx_open_choose(onnx_open *open, int attempt, bool is_second);
/// The stand-in sizes of dimension d of an input. The name (NULL: none) may be an expression of
/// other names ("past + 1"). Returns false if the dimension is not open.
bool tare__onnx_open_size(const onnx_open *open, const char *input, int d, const char *name,
                          int64_t *now, int64_t *other);
enum { ONNX_SIZE_KEY = 64 };
/// The key of a size in a map: its values for both stand-ins.
void tare__onnx_size_key(int64_t now, int64_t other, char key[ONNX_SIZE_KEY]);
/// Compares two models: *same is true if graphs, modules and tensors are equal.
tare_status tare__onnx_open_agree(const module *a, const module *b, bool *agree, tare_error *err);

#endif
