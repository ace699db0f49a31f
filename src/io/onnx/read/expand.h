// SPDX-License-Identifier: Apache-2.0
// Rewrites integer operators of ONNX and ONNX Runtime as float operators between DequantizeLinear
// and QuantizeLinear, by which they are defined.
// Private to io/onnx/read.
#ifndef IO_ONNX_READ_EXPAND_H
#define IO_ONNX_READ_EXPAND_H

#include "core/memory/arena.h"
#include "io/onnx/schema.h"

/// Replaces the integer operators among g's nodes, which are steps (inline.h), by steps in
/// `memory`. The float operator keeps the name. Operators without such a form stay.
tare_status tare__onnx_expand(Onnx__GraphProto *g, arena *memory, tare_error *err);

/// An integer product with a scale that is computed at run time (expand_products.c): the float
/// operator that replaces it, and both operands with scale and zero point. Names are lent.
typedef struct onnx_product {
    const char *becomes;
    char *input[3], *weight[3];
    int64_t weight_axis;                // of scales per channel
    const Onnx__NodeProto *absorbed[2]; // further nodes that it replaces
    char *output;
} onnx_product;

/// The producer and the readers of each value of a graph.
typedef struct onnx_products {
    struct product_search *search;
} onnx_products;
tare_status tare__onnx_products_begin(const Onnx__GraphProto *g, arena *memory, onnx_products *out,
                                      tare_error *err);
void tare__onnx_products_end(onnx_products *p);
/// True if such a product begins at n.
bool tare__onnx_find_product(const onnx_products *p, const Onnx__NodeProto *n, onnx_product *out);

#endif
