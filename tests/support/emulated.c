// SPDX-License-Identifier: Apache-2.0
// The rows of product kernels that this machine can test, emulated ones among them.
#include "support/emulated.h"

#include <string.h>

// What a row is emulated by, and which of the machine's instructions that takes.
typedef struct emulated_row {
    const char *name;
    void (*run)(const product_tile *t);
    isa_level level;
} emulated_row;

static const emulated_row emulated_rows[] = {
#ifdef TARE_HAVE_AMXINT8
    {"qu8_product__amxint8", emulated_product__amxint8, ISA_AVX512VNNI},
#endif
#ifdef TARE_HAVE_AVXVNNIINT8
    {"qu8_product__avxvnniint8", emulated_product__avxvnniint8, ISA_AVXVNNI},
#endif
    {NULL, NULL, ISA_SCALAR},
};

static bool emulate(const product_kernel *k, product_kernel *out) {
    for (const emulated_row *e = emulated_rows; e->name != NULL; e++)
        if (strcmp(e->name, k->name) == 0 && e->level <= tare__isa_detect()) {
            *out = *k;
            out->run = e->run;
            return true;
        }
    return false;
}

size_t products_under_test(product_kernel out[MOST_PRODUCTS_UNDER_TEST]) {
    size_t count = 0;
    for (const product_kernel *k = tare__product_kernels;; k++) {
        if (tare__kernel_suits(&k->needs, tare__isa_detect())) out[count++] = *k;
        if (emulate(k, &out[count])) count++;
        if (k->needs.level == ISA_SCALAR) return count;
    }
}
