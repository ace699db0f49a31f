// SPDX-License-Identifier: Apache-2.0
// Packed weights hold every weight where the product kernels look for it and zeros elsewhere; the
// sums are those of the channels; all users of a tensor share them.
#include "support/test.h"

#include "core/memory/alloc.h"
#include "runtime/gemm/product_weights.h"
#include "runtime/gemm/weight_sum.h"
#include "runtime/kernels/product.h"
#include "support/models.h"

static tare_tensor *make_weights(const product_form *f) {
    const int64_t shape[] = {(int64_t)(f->groups * f->outs), (int64_t)f->ins, (int64_t)f->height,
                             (int64_t)f->width};
    tare_tensor *t = new_integers(TARE_QINT8, 4, shape, 1, 0);
    uint32_t state = 1;
    for (int64_t i = 0; i < t->count; i++) {
        state = state * 1664525u + 1013904223u;
        ((int8_t *)t->data)[i] = (int8_t)(state >> 24);
    }
    return t;
}

// As product.h says: [taps][words][channels rounded up] words of four quantized values.
static int8_t packed_at(const packed_weights *p, const product_form *f, size_t channel, size_t tap,
                        size_t code) {
    const size_t group = channel / f->outs, in_group = channel % f->outs;
    const size_t block = in_group / PRODUCT_BLOCK, lane = in_group % PRODUCT_BLOCK;
    const size_t lanes =
        tare__product_vectors(tare__product_block_channels(f, block)) * PRODUCT_LANES;
    const size_t words = (tare__product_tap_size(f) + 3) / 4;
    const uint32_t word = p->words[group * tare__product_group_words(f) +
                                   block * PRODUCT_BLOCK * tare__product_depth(f) +
                                   (tap * words + code / 4) * lanes + lane];
    return (int8_t)(uint8_t)(word >> code % 4 * 8);
}

static void check_channel(const packed_weights *p, const product_form *f, size_t channel,
                          const int8_t *w) {
    int64_t sum = 0;
    for (size_t i = 0; i < f->ins; i++)
        for (size_t h = 0; h < f->height; h++)
            for (size_t x = 0; x < f->width; x++) {
                const int8_t weight = w[(i * f->height + h) * f->width + x];
                const size_t taps[] = {
                    [TAP_IS_PIXEL] = h * f->width + x, [TAP_IS_ROW] = h, [TAP_IS_WINDOW] = 0};
                const size_t quantized[] = {[TAP_IS_PIXEL] = i,
                                            [TAP_IS_ROW] = x * f->ins + i,
                                            [TAP_IS_WINDOW] = (x * f->height + h) * f->ins + i};
                assert_int_equal(packed_at(p, f, channel, taps[f->tap], quantized[f->tap]), weight);
                sum += weight;
            }
    assert_int_equal(p->sums[channel], sum);
}

static uint64_t count_nonzero(const void *bytes, size_t count) {
    uint64_t found = 0;
    for (size_t i = 0; i < count; i++) found += ((const uint8_t *)bytes)[i] != 0;
    return found;
}

static void check_form(const product_form *f) {
    tare_tensor *t = make_weights(f);
    packed_weights *p = NULL, *again = NULL;
    CHECK_OK(tare__product_weights_get(t, f, &p, NULL));
    CHECK_OK(tare__product_weights_get(t, f, &again, NULL));
    assert_ptr_equal(p, again);
    const size_t channels = f->groups * f->outs, size = (size_t)t->count / channels;
    for (size_t c = 0; c < channels; c++)
        check_channel(p, f, c, (const int8_t *)t->data + c * size);
    // Nothing but the weights is there.
    assert_int_equal(count_nonzero(p->words, tare__product_group_words(f) * f->groups * 4),
                     count_nonzero(t->data, (size_t)t->count));
    tare__packed_weights_release(again);
    tare_tensor_release(t); // the packed ones keep the bytes
    tare__packed_weights_release(p);
}

static void test_forms(void **state) {
    (void)state;
    const product_form forms[] = {
        {1, 1, 1, 1, 1, TAP_IS_PIXEL},   {1, 64, 8, 1, 1, TAP_IS_PIXEL},
        {1, 65, 7, 1, 1, TAP_IS_PIXEL},  {1, 150, 9, 3, 3, TAP_IS_PIXEL},
        {3, 20, 5, 3, 3, TAP_IS_PIXEL},  {2, 80, 4, 1, 5, TAP_IS_PIXEL},
        {1, 33, 3, 7, 7, TAP_IS_ROW},    {1, 16, 3, 3, 2, TAP_IS_ROW},
        {1, 64, 3, 7, 7, TAP_IS_WINDOW}, {1, 70, 1, 5, 3, TAP_IS_WINDOW},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) check_form(&forms[i]);
}

// A convolution, and what its taps are.
typedef struct tap_case {
    int64_t groups, ins, outs, kernel[SPATIAL], stride, dilation[SPATIAL];
    product_tap tap;
} tap_case;

static product_tap tap_of(const tap_case *k) {
    quantized_layer layer = {
        .conv = {.dims = 3, .groups = k->groups, .in_channels = k->ins, .out_channels = k->outs}};
    const int64_t shape[] = {k->outs, k->ins / k->groups, k->kernel[D], k->kernel[H], k->kernel[W]};
    const int64_t sizes[] = {1, k->ins, 20, 20, 20};
    tare_tensor *weight = new_integers(TARE_QINT8, 5, shape, 1, 0);
    tare_tensor *x = new_integers(TARE_QUINT8, 5, sizes, 1, 0);
    for (int d = 0; d < SPATIAL; d++) {
        layer.conv.kernel[d] = k->kernel[d];
        layer.conv.stride[d] = k->stride;
        layer.conv.dilation[d] = k->dilation[d];
    }
    layer.weight = weight;
    conv_split split;
    assert_true(tare__conv_split_of(&layer, x, &split));
    const subconvolution sub = tare__subconvolution_of(&split, 0);
    const product_form form = tare__product_form_of(&layer);
    const product_form again = tare__product_form_of_subconvolution(&sub);
    // What files hold is what plans ask for.
    assert_memory_equal(tare__product_key(weight, &form).numbers,
                        tare__product_key(weight, &again).numbers,
                        sizeof tare__product_key(weight, &form).numbers);
    tare_tensor_release(x);
    tare_tensor_release(weight);
    return form.tap;
}

static void taps_are_windows_where_words_pay_for_copies(void **state) {
    (void)state;
    const tap_case cases[] = {
        {1, 3, 64, {1, 7, 7}, 2, {1, 1, 1}, TAP_IS_WINDOW}, // 37 words for 42
        {1, 3, 64, {1, 3, 3}, 1, {1, 1, 1}, TAP_IS_WINDOW}, // 7 for 9
        {1, 1, 20, {1, 5, 5}, 1, {1, 1, 1}, TAP_IS_WINDOW}, // 7 for 10
        {1, 3, 32, {1, 3, 3}, 2, {1, 1, 1}, TAP_IS_WINDOW},
        {1, 3, 16, {1, 3, 3}, 2, {1, 1, 1}, TAP_IS_ROW}, // too few channels
        {1, 6, 64, {1, 5, 5}, 1, {1, 1, 1}, TAP_IS_ROW}, // 38 for 40
        {1, 1, 64, {1, 9, 5}, 1, {1, 1, 1}, TAP_IS_ROW}, // too many lines
        {1, 3, 64, {3, 7, 7}, 2, {1, 1, 1}, TAP_IS_ROW}, // several planes
        {1, 3, 64, {1, 1, 7}, 2, {1, 1, 1}, TAP_IS_ROW}, // one row is both
        {1, 3, 64, {1, 7, 7}, 2, {1, 2, 1}, TAP_IS_ROW},
        {1, 3, 64, {1, 7, 7}, 2, {1, 1, 2}, TAP_IS_PIXEL},
        {3, 9, 192, {1, 7, 7}, 2, {1, 1, 1}, TAP_IS_PIXEL},
        {1, 4, 64, {1, 7, 7}, 2, {1, 1, 1}, TAP_IS_PIXEL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(tap_of(&cases[i]), cases[i].tap);
}

static void test_sums(void **state) {
    (void)state;
    enum { MOST = 5000 };
    int8_t *w = tare__alloc(MOST);
    assert_non_null(w);
    for (int extreme = -128; extreme <= 127; extreme += 255) {
        memset(w, extreme, MOST);
        for (size_t count = 0; count <= MOST; count += count < 40 ? 1 : 311)
            assert_int_equal(tare__weight_sum(w, count), extreme * (int)count);
    }
    tare__free(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(taps_are_windows_where_words_pay_for_copies),
        cmocka_unit_test(test_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
