// SPDX-License-Identifier: Apache-2.0
// The table of product kernels.
#include "runtime/kernels/product.h"

const product_kernel tare__product_kernels[] = {
#define KERNEL(name, needs, ...) {name, #name, needs, {__VA_ARGS__}},
#include "runtime/kernels/qu8_product/kernels.def"
#undef KERNEL
};

const product_kernel *tare__product_choose(isa_level isa) {
    const product_kernel *k = tare__product_kernels;
    while (k->needs > isa) k++; // ends: the last row needs nothing
    return k;
}
