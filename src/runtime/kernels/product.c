// SPDX-License-Identifier: Apache-2.0
// build: -O3
// The table of product kernels.
#include "runtime/kernels/product.h"

#include "core/system/caches.h"
#include "runtime/kernels/scratch.h"

const product_kernel tare__product_kernels[] = {
#define KERNEL(name, level, has, asks_saturation, takes_signed, wants_padding, tiles, mac_time,    \
               weight_time, ...)                                                                   \
    {{level, has},  name,  #name,    asks_saturation, takes_signed,                                \
     wants_padding, tiles, mac_time, weight_time,     {__VA_ARGS__}},
#include "runtime/kernels/qu8_product/kernels.def"
#undef KERNEL
};

// Of a run, for those who list it on the stack.
#define KERNEL(name, level, has, asks_saturation, takes_signed, wants_padding, tiles, ...)         \
    _Static_assert((tiles)*PRODUCT_ROWS <= PRODUCT_RUN_ROWS, "too many rows at once");
#include "runtime/kernels/qu8_product/kernels.def"
#undef KERNEL

const product_kernel *tare__product_choose(isa_level isa) {
    return tare__kernel_choose(tare__product_kernels, sizeof *tare__product_kernels, isa);
}

// The kernel without tiles.
static const product_kernel *vectors_of(const product_kernel *k) {
    const isa_level level = tare__isa_without_tiles(k->needs.level);
    return level != k->needs.level ? tare__product_choose(level) : k;
}

const char *tare__product_name(const product_kernel *k, size_t rows, size_t taps, size_t tap_size,
                               uint8_t flip) {
    return tare__product_is_for_vectors(rows, taps, tap_size, flip) ? vectors_of(k)->name : k->name;
}

bool tare__product_is_small(size_t rows, size_t depth, size_t channels) {
    enum { FEW_PRODUCTS = 1 << 17 };
    const double lanes = (double)(tare__product_vectors(channels) * PRODUCT_LANES);
    return (double)rows * (double)depth * lanes <= FEW_PRODUCTS;
}

const product_kernel *tare__product_choose_for(isa_level isa, size_t rows, size_t depth,
                                               size_t channels) {
    const product_kernel *k = tare__product_choose(isa);
    return tare__product_is_small(rows, depth, channels) ? vectors_of(k) : k;
}

// Several tiles at once meet a block of weights before the next block. A quarter of the first-level
// cache holds addresses of quantized values beside these: 1024 of 32 KiB.
static size_t most_addresses(void) {
    return tare__l1_bytes() / 4 / sizeof(uint8_t *);
}

size_t tare__product_run_rows(const product_kernel *k, size_t vectors, size_t taps, size_t rows) {
    const size_t tile = k->rows[vectors - 1];
    if (rows <= tile) return tile;
    const size_t most = tare__least(k->tiles, tare__ceil_div(rows, tile));
    return tile * tare__most(1, tare__least(most_addresses() / (tile * taps), most));
}

void tare__product_to_unsigned(const uint8_t *restrict x, size_t count, uint8_t *restrict to) {
    for (size_t i = 0; i < count; i++) to[i] = x[i] ^ PRODUCT_SIGN_BIT;
}

void tare__product_move_starts(const product_tile *t,
                               void (*sum_weights)(const product_tile *t, size_t c,
                                                   int32_t sums[PRODUCT_LANES]),
                               int32_t start[PRODUCT_BLOCK]) {
    const tile_epilogue *e = &t->epilogue;
    int32_t counted[PRODUCT_BLOCK] = {0};
    const int32_t *sums = e->weight_sums;
    for (size_t c = 0; sums == NULL && c < t->channels; c += PRODUCT_LANES)
        sum_weights(t, c, counted + c);
    if (sums == NULL) sums = counted;
    for (size_t c = 0; c < t->channels; c++)
        start[c] = tare__wrap_int32(e->start[c] + (int64_t)PRODUCT_SIGN_BIT * sums[c]);
}

#ifdef TARE_HAVE_X86_KERNELS
void qu8_product__avxvnni(const product_tile *t) {
    if (tare__isa_has_avx512_encoding())
        qu8_product__avx512vl(t);
    else
        qu8_product__avxvnni_vex(t);
}
#endif
