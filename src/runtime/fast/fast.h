// SPDX-License-Identifier: Apache-2.0
// Fast ways through single nodes: where one fits, its kernels replace the row's reference, with the
// same bits.
#ifndef RUNTIME_FAST_FAST_H
#define RUNTIME_FAST_FAST_H

#include <string.h>

#include "ops/call.h"
#include "ops/op.h"
#include "ops/quantized/dynamic.h"
#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/product.h"
#include "runtime/kernels/rows.h"
#include "runtime/kernels/scan.h"
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

/// Integer linear and convolution modules, packed (fast/layer.c).
extern const fast_path tare__fast_layer;
/// Is a call that it suits a linear layer, and no convolution?
bool tare__fast_layer_is_linear(const op_call *call);
/// Linear layers whose input is quantized on the fly (fast/dynamic.c).
extern const fast_path tare__fast_dynamic;
/// A layer of such weights, packed; *out is NULL if no kernel covers it. y: its result.
struct qlayer;
tare_status tare__dynamic_pack(const module *m, const dynamic_weights *w, const tare_tensor *y,
                               isa_level isa, struct qlayer **out, tare_error *err);
/// Least and greatest of count > 0 floats, as such layers find them.
void tare__dynamic_range(const scan_kernels *k, const float *x, size_t count, float *min,
                         float *max);
/// The codes that floats of this range get, and their scale: unsigned ones, 128 higher where the
/// layer's are signed, as products take them.
code_scheme tare__dynamic_scheme(const dynamic_weights *w, float min, float max, double *scale);
/// y = weights * x for floats x [rows][inner], rows > 0, by packed weights that have inner > 0
/// columns.
typedef struct dynamic_product {
    struct qlayer *layer;
    const dynamic_weights *w;
    const float *x;
    size_t rows;
    float *y; // [rows][outer]
} dynamic_product;
tare_status tare__dynamic_product_run(fast_context *context, const dynamic_product *p,
                                      tare_error *err);
/// LSTM, GRU and cells, of floats or with products that quantize their input on the fly
/// (fast/recurrent.c).
extern const fast_path tare__fast_recurrent;
/// Layer norm of codes, as module and as function (fast/norm.c).
extern const fast_path tare__fast_norm;
/// max_pool2d and adaptive_avg_pool2d on codes (fast/pool.c).
extern const fast_path tare__fast_max_pool, tare__fast_average_pool;

/// Is the call one of this operator?
static inline bool tare__fast_is_op(const op_call *call, op_id id) {
    return tare__op_id(call->op) == id;
}
/// The i-th argument if it is a tensor, else NULL.
static inline const tare_tensor *tare__fast_input(const op_call *call, size_t i) {
    const value *v = call->param[i];
    return v != NULL && v->kind == VALUE_TENSOR ? v->as.tensor : NULL;
}

/// The scheme of byte codes of a tensor.
code_scheme tare__code_scheme_of(const tare_tensor *t);
/// A sum or product of codes, as quantized.add, mul and those with a ReLU compute it.
typedef struct code_binary {
    bool is_signed, is_product;
    native_add add;
    quantized_mul mul;
} code_binary;
/// Is it such a call, and no sum in fixed point?
bool tare__is_code_binary(const op_call *call);
bool tare__is_code_sum(const op_call *call);
/// Of operands and a result with these schemes; they need not be the call's.
code_binary tare__code_binary_of(const op_call *call, const tare_tensor *a, const tare_tensor *b,
                                 const tare_tensor *y);
void tare__code_binary_run(const code_binary *op, const elementwise_kernels *k, const uint8_t *a,
                           const uint8_t *b, size_t count, uint8_t *y);

/// What a layer that adds takes from these codes.
product_addend tare__value_addend_of(const tare_tensor *t);

/// How an average of codes is rounded, as torch does for this call.
typedef struct average_rule {
    int64_t zero_point, least, most;
    bool rounds_with_zero_point;
} average_rule;
average_rule tare__average_rule_of(const op_call *call, const tare_tensor *x);
/// Is the sum over any window of the last two dimensions exact in floats too, as references add?
bool tare__average_is_exact(const tare_tensor *x);
uint8_t tare__average_code(const average_rule *r, int64_t sum, int64_t count);
/// The same of sums of `count` codes, divided by `divisor`, for kernels.
code_average tare__code_average_of(const average_rule *r, int64_t count, double divisor);

#endif
