// SPDX-License-Identifier: Apache-2.0
// The table of product kernels.
#include "runtime/kernels/product.h"

const product_kernel tare__product_kernels[] = {
#define KERNEL(name, needs, asks_pairs, ...) {name, #name, needs, asks_pairs, {__VA_ARGS__}},
#include "runtime/kernels/qu8_product/kernels.def"
#undef KERNEL
};

const product_kernel *tare__product_choose(isa_level isa) {
    const product_kernel *k = tare__product_kernels;
    while (k->needs > isa) k++; // ends: the last row needs nothing
    return k;
}

#ifdef TARE_HAVE_X86_KERNELS
void qu8_product__avxvnni(const product_tile *t) {
    if (tare__isa_has_avx512_encoding())
        qu8_product__avx512vl(t);
    else
        qu8_product__avxvnni_vex(t);
}
#endif
