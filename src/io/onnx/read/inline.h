// SPDX-License-Identifier: Apache-2.0
// Functions of a model's own: their nodes in place of the nodes that call them.
// Private to io/onnx/read.
#ifndef IO_ONNX_READ_INLINE_H
#define IO_ONNX_READ_INLINE_H

#include "core/memory/arena.h"
#include "io/onnx/schema.h"

struct onnx_scope;

/// A node of the flat graph.
typedef struct onnx_step onnx_step;
struct onnx_step {
    Onnx__NodeProto node;           // first: a pointer to it is one to its step
    int opset;                      // of the default domain
    onnx_step *caller;              // whose function it is of; NULL: the graph's own
    const struct onnx_scope *scope; // read already; NULL: not yet
    bool is_absorbed;               // another step computes it, too (expand.c)
};

static inline onnx_step *tare__onnx_step(const Onnx__NodeProto *n) {
    return (onnx_step *)n;
}

/// The file's graph with every call of a function replaced by what the function holds. Each node of
/// *out is the first member of an onnx_step in `memory`. Values and nodes inside get names of their
/// own; attributes that refer to the call's have its values, or the function's defaults. Circles,
/// calls nested too deeply and functions that come to too much are errors that name the call.
tare_status tare__onnx_inline(const onnx_file *f, arena *memory, Onnx__GraphProto *out,
                              tare_error *err);

#endif
