// SPDX-License-Identifier: Apache-2.0
// build: -O3 -mprefer-vector-width=512
// Products with AVX512-VNNI. Sums stay in registers: 6 pixels by 64 channels, or as many of fewer
// channels. vpdpbusd adds four products of unsigned and signed bytes to an int32 lane without
// saturating, so that sums are exact. For each word of depth weights are loaded once and each
// pixel's quantized values once; 24 instructions of arithmetic hide that. Rows of few words go by
// in pairs of registers of quantized values (avx512_register_pairs.h), others are pipelined
// (avx512_pipeline.h); those that are left make a tile (avx512_block.h).
#include "runtime/kernels/qu8_product/avx512_epilogue.h"

// The kind of epilogue for rule F, Q or O of floats that stay small and an addend of values.
static inline epilogue_kind kind_of_sum(const product_addend *a, bool is_o) {
    if (a->is_signed) return EPILOGUE_OF_OTHERS;
    return is_o ? EPILOGUE_WITH_O : EPILOGUE_WITH_VALUES;
}

static inline bool is_small_beside(float scales, float inverse) {
    return (double)scales * QUANTIZED_SPAN * (double)inverse < 0x1p29;
}

static void set_addend(block_epilogue *e, const product_addend *a, const requant *r) {
    const native_add *op = &a->add;
    if (a->kind == ADDEND_OF_VALUES) {
        const bool is_small = e->own.is_small && is_small_beside(a->scale, r->inverse);
        set_pack_numbers(&e->sum, r, is_small, r->lo < 0);
        e->zero_point = (float)a->zero_point;
        e->factor = tare__addend_factor(r, a->scale);
        e->kind = is_small ? kind_of_sum(a, e->own.is_o) : EPILOGUE_OF_OTHERS;
        return;
    }
    const requant sum = {
        .rule = REQUANT_F, .zero_point = op->zero_point, .lo = op->lo, .hi = op->hi};
    const bool is_small = is_small_beside(op->scale_a + op->scale_b, op->inverse);
    set_pack_numbers(&e->sum, &sum, is_small, op->lo < 0);
    e->own_shift = (float)((e->own.is_o ? 0 : r->zero_point) - op->zero_a);
    e->own_scale = op->scale_a;
    e->zero_point = (float)op->zero_b;
    e->factor = op->scale_b;
    e->inverse = op->inverse;
    e->kind = EPILOGUE_WITH_QUANTIZED;
}

void qu8_product_epilogue__avx512vnni(block_epilogue *e, const product_tile *t) {
    const requant *r = t->epilogue.requant;
    set_pack_numbers(&e->own, r, t->epilogue.is_small, r->lo < 0);
    e->last = (__mmask16)(0xFFFFU >> (-t->channels % PRODUCT_LANES));
    e->kind = !e->own.is_small ? EPILOGUE_OF_OTHERS : e->own.is_o ? EPILOGUE_OF_O : EPILOGUE_OF_F;
    if (t->real != NULL)
        e->kind = EPILOGUE_AS_VALUES;
    else if (t->addend != NULL)
        set_addend(e, t->addend, r);
}

void qu8_product__avx512vnni(const product_tile *t) {
    static void (*const blocks[PRODUCT_VECTORS])(const product_tile *, const block_epilogue *) = {
        qu8_product_block__avx512vnni_1, qu8_product_block__avx512vnni_2,
        qu8_product_block__avx512vnni_3, qu8_product_block__avx512vnni_4};
    block_epilogue e;
    qu8_product_epilogue__avx512vnni(&e, t);
    blocks[tare__product_vectors(t->channels) - 1](t, &e);
}

void qu8_product_kept__avx512vnni(const product_tile *t, const block_epilogue *e,
                                  const kept_sums *s) {
    static void (*const epilogues[PRODUCT_VECTORS])(const product_tile *, const block_epilogue *,
                                                    const kept_sums *) = {
        qu8_product_kept__avx512vnni_1, qu8_product_kept__avx512vnni_2,
        qu8_product_kept__avx512vnni_3, qu8_product_kept__avx512vnni_4};
    epilogues[tare__product_vectors(t->channels) - 1](t, e, s);
}

void qu8_product_finish__avx512vnni(const product_tile *t, const int32_t *sums,
                                    size_t sums_stride) {
    block_epilogue e;
    qu8_product_epilogue__avx512vnni(&e, t);
    const kept_sums kept = {.at = sums, .stride = sums_stride, .rows = t->rows, .starts = true};
    qu8_product_kept__avx512vnni(t, &e, &kept);
}
