// SPDX-License-Identifier: Apache-2.0
// Operators on integers, of ONNX and of ONNX Runtime, as float operators between DequantizeLinear
// and QuantizeLinear, which they are defined by.
// Private to io/onnx/read.
#ifndef IO_ONNX_READ_EXPAND_H
#define IO_ONNX_READ_EXPAND_H

#include "core/memory/arena.h"
#include "io/onnx/schema.h"

/// Replaces the operators on integers among g's nodes, which are steps (inline.h), by steps in
/// `memory`. The float operator keeps the name. What has no such form stays as it is.
tare_status tare__onnx_expand(Onnx__GraphProto *g, arena *memory, tare_error *err);

/// A product of integers whose first scale is found in a run (expand_products.c): what it becomes
/// of both operands dequantized, each with its scale and zero point. Names are lent.
typedef struct onnx_product {
    const char *becomes;
    char *input[3], *weight[3];
    int64_t weight_axis;             // of scales per channel
    const Onnx__NodeProto *absorbed[2]; // nodes that it replaces, too
    char *output;
} onnx_product;

/// Who reads what in a graph.
typedef struct onnx_products {
    struct product_search *search;
} onnx_products;
tare_status tare__onnx_products_begin(const Onnx__GraphProto *g, arena *memory, onnx_products *out,
                                      tare_error *err);
void tare__onnx_products_end(onnx_products *p);
/// Does such a product begin at n?
bool tare__onnx_find_product(const onnx_products *p, const Onnx__NodeProto *n, onnx_product *out);

#endif
