// SPDX-License-Identifier: Apache-2.0
// Kernels whose instructions few machines have, compiled once more with those in C.
#ifndef SUPPORT_EMULATED_H
#define SUPPORT_EMULATED_H

#include "runtime/kernels/product.h"

enum { MOST_PRODUCTS_UNDER_TEST = 16 };

/// The rows of product kernels that this machine can test, best first: those that it has, and those
/// that it can emulate. How many.
size_t products_under_test(product_kernel out[MOST_PRODUCTS_UNDER_TEST]);

void emulated_product__amxint8(const product_tile *t);
void emulated_product__avxvnniint8(const product_tile *t);

#endif
