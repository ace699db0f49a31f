// SPDX-License-Identifier: Apache-2.0
// Inlines the functions that a model defines.
// Private to io/onnx/read.
#ifndef IO_ONNX_READ_INLINE_H
#define IO_ONNX_READ_INLINE_H

#include "core/memory/arena.h"
#include "io/onnx/schema.h"

struct onnx_scope;

/// A node of the graph after inlining.
typedef struct onnx_step onnx_step;
struct onnx_step {
    Onnx__NodeProto node; // first: a pointer to it is one to its step
    int opset;            // of the default domain
    onnx_step *caller;    // the call it was inlined from; NULL: a node of the graph itself
    const struct onnx_scope *scope; // once it is read; NULL: not yet
    bool is_absorbed;               // another step also computes it (expand.c)
};

static inline onnx_step *tare__onnx_step(const Onnx__NodeProto *n) {
    return (onnx_step *)n;
}

/// The file's graph with every call of a function replaced by the function's nodes. Each node of
/// *out is the first member of an onnx_step in `memory`. Values and nodes inside get unique names;
/// references to attributes get the call's values or the function's defaults. Cycles, calls nested
/// too deeply and functions that expand to too much are errors that name the call.
tare_status tare__onnx_inline(const onnx_file *f, arena *memory, Onnx__GraphProto *out,
                              tare_error *err);

#endif
