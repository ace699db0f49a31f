// SPDX-License-Identifier: Apache-2.0
// Fast ways through single nodes: where one fits, its kernels replace the row's reference, with the
// same bits.
#ifndef RUNTIME_FAST_H
#define RUNTIME_FAST_H

#include <string.h>

#include "ops/call.h"
#include "ops/op.h"
#include "runtime/isa.h"
#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/lines.h"
#include "runtime/kernels/scratch.h"

typedef struct fast_context {
    isa_level isa;
    const elementwise_kernels *elementwise;
    const line_kernels *lines;
    workspace space;
} fast_context;

/// One way. A way may keep what it learns about a node (packed weights) in *state.
typedef struct fast_path {
    const char *name;
    /// Could this be the way of calls like this one? Asked once per node, of a shaped and bound
    /// call.
    bool (*suits)(const op_call *call);
    /// Fills the call's allocated result, or leaves *handled false for the reference.
    tare_status (*run)(fast_context *context, void **state, op_call *call, bool *handled);
    void (*destroy)(void *state); // NULL: it keeps nothing
} fast_path;

/// The way that suits, or NULL.
const fast_path *tare__fast_path_find(const op_call *call);

/// Integer linear and convolution modules, packed (fast_layer.c).
extern const fast_path tare__fast_layer;
/// Linear layers whose input is quantized on the fly (fast_dynamic.c).
extern const fast_path tare__fast_dynamic;
/// max_pool2d and adaptive_avg_pool2d on codes (fast_pool.c).
extern const fast_path tare__fast_max_pool, tare__fast_average_pool;

/// Is the call one of this operator?
static inline bool tare__fast_is_op(const op_call *call, const char *id) {
    return call->op != NULL && strcmp(call->op->id, id) == 0;
}
/// The i-th argument if it is a tensor, else NULL.
static inline const tare_tensor *tare__fast_input(const op_call *call, size_t i) {
    const value *v = call->param[i];
    return v != NULL && v->kind == VALUE_TENSOR ? v->as.tensor : NULL;
}

#endif
