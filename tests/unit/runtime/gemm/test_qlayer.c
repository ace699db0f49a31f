// SPDX-License-Identifier: Apache-2.0
// Every kernel row gives the bits of the plain sum and tare__requantize, for every remainder of its
// tiles, extreme quantized values, every rule and one to four threads.
#include "runtime/kernels/depthwise.h"
#include "support/layer_case.h"
#include "support/test.h"

// The product of two quantized values, the input's without its zero point.
static int64_t product(const layer_case *c, int64_t x, int64_t w) {
    const int64_t zero = (int64_t)c->x->q->zero_point[0];
    return (tare__load_quantized(c->x, x) - zero) * tare__load_quantized(c->weight, w);
}

// --- linear ---

static void check_linear_sums(const layer_case *c, const char *kernel) {
    const int64_t depth = c->weight->shape[1], features = c->weight->shape[0];
    for (int64_t i = 0; i < c->y->count; i++) {
        int64_t sum = 0;
        for (int64_t k = 0; k < depth; k++)
            sum += product(c, i / features * depth + k, i % features * depth + k);
        check_layer_integer(c, i % features, sum, i, kernel);
    }
}

static void check_linear(uint64_t seed, requant_rule rule, int64_t rows, int64_t depth,
                         int64_t features) {
    for (int isa = 0; isa <= (int)tare__isa_detect(); isa++) {
        layer_case c;
        qlayer *layer = NULL;
        begin_layer_case(&c, seed, rule, features);
        finish_layer_case(&c, 2, (int64_t[]){rows, depth}, (int64_t[]){features, depth},
                          (int64_t[]){rows, features});
        CHECK_OK(tare__qlayer_create(&c.layer, c.x, c.y, (isa_level)isa, &layer, NULL));
        assert_non_null(layer);
        for (int threads = 1; threads <= MOST_THREADS; threads++) {
            run_layer_case(&c, layer, threads, NULL);
            check_linear_sums(&c, tare__qlayer_form(layer).kernel);
        }
        tare__qlayer_destroy(layer);
        end_layer_case(&c);
    }
}

static void linear_equals_the_plain_sum_for_every_remainder(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (requant_rule rule = REQUANT_F; rule <= REQUANT_Q; rule++) {
        for (int64_t rows = 1; rows <= 18; rows++) check_linear(seed++, rule, rows, 24, 16);
        for (int64_t depth = 1; depth <= 40; depth++) check_linear(seed++, rule, 3, depth, 5);
        for (int64_t features = 1; features <= 36; features++)
            check_linear(seed++, rule, 9, 13, features);
        check_linear(seed++, rule, 2, 4097, 33);
    }
}

// A layer of up to 2^17 products.
static void small_layers_leave_tiles_alone(void **state) {
    (void)state;
    for (int64_t rows = 31; rows <= 33; rows++)
        for (int isa = 0; isa <= (int)ISA_AMXINT8; isa++) {
            layer_case c;
            begin_layer_case(&c, 1, REQUANT_F, 64);
            finish_layer_case(&c, 2, (int64_t[]){rows, 64}, (int64_t[]){64, 64},
                              (int64_t[]){rows, 64});
            const isa_level level = tare__qlayer_level(&c.layer, c.y, (isa_level)isa);
            assert_int_equal(level, isa == ISA_AMXINT8 && rows <= 32 ? ISA_AVX512VNNI : isa);
            end_layer_case(&c);
        }
}

// --- convolution ---

typedef struct conv_case {
    int64_t batch, ins, outs, height, width, kernel, stride, pad, dilation, groups;
} conv_case;

static int64_t conv_sum(const layer_case *c, const conv_case *k, int64_t n, int64_t o, int64_t y,
                        int64_t x) {
    const int64_t ins = k->ins / k->groups, first = o / (k->outs / k->groups) * ins;
    int64_t sum = 0;
    for (int64_t i = 0; i < ins; i++)
        for (int64_t a = 0; a < k->kernel; a++)
            for (int64_t b = 0; b < k->kernel; b++) {
                const int64_t h = y * k->stride - k->pad + a * k->dilation;
                const int64_t w = x * k->stride - k->pad + b * k->dilation;
                if (h < 0 || h >= k->height || w < 0 || w >= k->width) continue;
                sum += product(c, ((n * k->ins + first + i) * k->height + h) * k->width + w,
                               ((o * ins + i) * k->kernel + a) * k->kernel + b);
            }
    return sum;
}

static void check_conv_sums(const layer_case *c, const conv_case *k, const char *kernel) {
    const int64_t *out = c->y->shape;
    for (int64_t i = 0; i < c->y->count; i++) {
        const int64_t x = i % out[3], y = i / out[3] % out[2], o = i / out[3] / out[2] % out[1];
        const int64_t n = i / out[3] / out[2] / out[1];
        check_layer_integer(c, o, conv_sum(c, k, n, o, y, x), i, kernel);
    }
}

static int64_t out_size(const conv_case *k, int64_t in) {
    return (in + 2 * k->pad - k->dilation * (k->kernel - 1) - 1) / k->stride + 1;
}

static conv_geometry geometry_of(const conv_case *k) {
    return (conv_geometry){.dims = 2,
                           .groups = k->groups,
                           .in_channels = k->ins,
                           .out_channels = k->outs,
                           .kernel = {1, k->kernel, k->kernel},
                           .stride = {1, k->stride, k->stride},
                           .dilation = {1, k->dilation, k->dilation},
                           .pad_before = {0, k->pad, k->pad},
                           .pad_after = {0, k->pad, k->pad}};
}

static void begin_conv(layer_case *c, uint64_t seed, requant_rule rule, const conv_case *k,
                       bool adds) {
    begin_layer_case(c, seed, rule, k->outs);
    c->layer.conv = geometry_of(k);
    c->layer.adds = adds && !c->layer.gives_floats;
    c->layer.is_plain = !c->layer.adds;
    finish_layer_case(
        c, 4, (int64_t[]){k->batch, k->ins, k->height, k->width},
        (int64_t[]){k->outs, k->ins / k->groups, k->kernel, k->kernel},
        (int64_t[]){k->batch, k->outs, out_size(k, k->height), out_size(k, k->width)});
}

// A sum of the layer's quantized values and others; the sums are checked on their own.
static void check_addend(const layer_case *c, const qlayer *p) {
    const bool is_signed = c->y->dtype == TARE_QINT8;
    const qparams *q = c->y->q;
    const int32_t zero_point = (int32_t)q->zero_point[0];
    const quantized_range own = {(float)q->scale[0], zero_point}, out = {0.7F, zero_point / 2};
    const product_addend add = {.kind = ADDEND_OF_QUANTIZED,
                                .add = tare__native_add(own, (quantized_range){0.3F, zero_point},
                                                        out, (int32_t)q->quant_min,
                                                        (int32_t)q->quant_max, c->layer.relu),
                                .is_signed = is_signed};
    uint8_t *quantized = malloc((size_t)c->y->count), *other = malloc((size_t)c->y->count);
    uint8_t *last = malloc((size_t)c->y->count);
    assert_true(quantized != NULL && other != NULL && last != NULL);
    memcpy(quantized, c->y->data, (size_t)c->y->count);
    for (int64_t i = 0; i < c->y->count; i++) other[i] = (uint8_t)(i * 37);
    move_layer_channels(c, other, c->y, true, last);
    product_addend run = add;
    run.quantized = last;
    run_layer_case(c, p, 2, &run);
    for (int64_t i = 0; i < c->y->count; i++) {
        const int32_t a = is_signed ? (int8_t)quantized[i] : quantized[i];
        const int32_t b = is_signed ? (int8_t)other[i] : other[i];
        assert_int_equal(tare__load_quantized(c->y, i), tare__native_add_quantized(&add.add, a, b));
    }
    free(quantized);
    free(other);
    free(last);
}

static void check_conv(uint64_t seed, requant_rule rule, conv_case k) {
    for (int isa = 0; isa <= (int)tare__isa_detect(); isa++) {
        layer_case c;
        qlayer *layer = NULL;
        begin_conv(&c, seed, rule, &k, seed % 2 == 0 && k.groups != k.ins);
        CHECK_OK(tare__qlayer_create(&c.layer, c.x, c.y, (isa_level)isa, &layer, NULL));
        assert_non_null(layer);
        for (int threads = 1; threads <= MOST_THREADS; threads++) {
            run_layer_case(&c, layer, threads, NULL);
            check_conv_sums(&c, &k, tare__qlayer_form(layer).kernel);
        }
        if (tare__qlayer_adds(layer) && c.layer.is_plain && !c.layer.gives_floats)
            check_addend(&c, layer);
        tare__qlayer_destroy(layer);
        end_layer_case(&c);
    }
}

static void conv_equals_the_plain_sum_for_every_remainder(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (requant_rule rule = REQUANT_F; rule <= REQUANT_Q; rule++) {
        for (int64_t width = 3; width <= 40; width++)
            check_conv(seed++, rule, (conv_case){1, 5, 3, 3, width, 3, 1, 1, 1, 1});
        for (int64_t outs = 1; outs <= 20; outs++)
            check_conv(seed++, rule, (conv_case){1, 4, outs, 4, 5, 1, 1, 0, 1, 1});
        for (int64_t ins = 1; ins <= 9; ins++)
            check_conv(seed++, rule, (conv_case){2, ins, 9, 6, 7, 3, 1, 1, 1, 1});
    }
}

static void conv_equals_the_plain_sum_for_every_geometry(void **state) {
    (void)state;
    uint64_t seed = 1000;
    for (requant_rule rule = REQUANT_F; rule <= REQUANT_Q; rule++)
        for (int64_t kernel = 1; kernel <= 5; kernel++)
            for (int64_t stride = 1; stride <= 3; stride++)
                for (int64_t pad = 0; pad <= 2; pad++)
                    for (int64_t dilation = 1; dilation <= 2; dilation++)
                        for (int64_t groups = 1; groups <= 8; groups *= 2)
                            check_conv(seed++, rule,
                                       (conv_case){1, 8, 16, 9, 11, kernel, stride, pad, dilation,
                                                   groups});
}

// Channels beyond one block, one and two vectors of them with more rows than a tile has.
static void conv_equals_the_plain_sum_for_many_channels(void **state) {
    (void)state;
    uint64_t seed = 5000;
    for (int64_t outs = 15; outs <= 113; outs += 7)
        for (int64_t width = 1; width <= 13; width += 4)
            check_conv(seed++, REQUANT_F, (conv_case){1, 6, outs, 2, width, 1, 1, 0, 1, 1});
    check_conv(seed++, REQUANT_O, (conv_case){2, 70, 140, 5, 6, 3, 2, 1, 1, 2});
}

// Windows that meet none of the image, with rows that do and without.
static void conv_equals_the_plain_sum_for_wide_padding(void **state) {
    (void)state;
    uint64_t seed = 6000;
    for (requant_rule rule = REQUANT_F; rule <= REQUANT_Q; rule++)
        for (int64_t outs = 8; outs <= 72; outs += 16)
            for (int64_t pad = 1; pad <= 4; pad++)
                for (int64_t kernel = 1; kernel <= 3; kernel++)
                    check_conv(seed++, rule, (conv_case){2, 4, outs, 2, 3, kernel, 1, pad, 1, 1});
}

// More pixels and depth than one block of gathered words holds.
static void conv_equals_the_plain_sum_over_many_blocks(void **state) {
    (void)state;
    check_conv(1, REQUANT_F, (conv_case){1, 64, 8, 20, 19, 3, 1, 1, 1, 1});
    check_conv(2, REQUANT_O, (conv_case){1, 260, 3, 10, 12, 3, 1, 1, 1, 1});
    check_conv(3, REQUANT_Q, (conv_case){1, 16, 16, 40, 40, 3, 1, 1, 1, 16});
}

// --- depthwise convolution ---

static void depthwise_equals_the_plain_sum_for_every_remainder(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (requant_rule rule = REQUANT_F; rule <= REQUANT_Q; rule++)
        for (int64_t width = 3; width <= 40; width++)
            for (int64_t stride = 1; stride <= 2; stride++)
                check_conv(seed++, rule, (conv_case){1, 3, 3, 3, width, 3, stride, 1, 1, 3});
}

static void depthwise_equals_the_plain_sum_for_every_geometry(void **state) {
    (void)state;
    uint64_t seed = 1000;
    for (requant_rule rule = REQUANT_F; rule <= REQUANT_Q; rule++)
        for (int64_t kernel = 1; kernel <= 6; kernel++)
            for (int64_t stride = 1; stride <= 5; stride++)
                for (int64_t pad = 0; pad <= 2; pad++)
                    for (int64_t dilation = 1; dilation <= 4; dilation++)
                        for (int64_t outs = 1; outs <= 2; outs++)
                            if (dilation * (kernel - 1) < 13 + 2 * pad)
                                check_conv(seed++, rule,
                                           (conv_case){2, 3, 3 * outs, 13, 19, kernel, stride, pad,
                                                       dilation, 3});
}

// Blocks of 64 channels and what is left of them.
static void depthwise_equals_the_plain_sum_for_every_number_of_channels(void **state) {
    (void)state;
    const uint64_t seed = 7000;
    for (int64_t channels = 2; channels <= 130; channels++)
        check_conv(seed + (uint64_t)channels, (requant_rule)(REQUANT_F + channels % 3),
                   (conv_case){1, channels, channels, 5, 4, 3, 1, 1, 1, channels});
}

// Blocks that begin amid the output channels of an input channel.
static void depthwise_equals_the_plain_sum_where_channels_repeat(void **state) {
    (void)state;
    uint64_t seed = 8000;
    for (int64_t channels = 5; channels <= 90; channels += 17)
        for (int64_t repeats = 2; repeats <= 5; repeats++)
            check_conv(seed++, (requant_rule)(REQUANT_F + repeats % 3),
                       (conv_case){2, channels, channels * repeats, 6, 5, 3, 2, 1, 1, channels});
}

// Windows whose columns are kept, and those that are too large for it; rows of several words.
static void depthwise_equals_the_plain_sum_for_large_windows(void **state) {
    (void)state;
    uint64_t seed = 9000;
    for (int64_t kernel = 5; kernel <= 11; kernel += 2)
        for (int64_t stride = 1; stride <= 3; stride++)
            for (int64_t dilation = 1; dilation <= 3; dilation++) {
                const int64_t size = dilation * (kernel - 1) + 1;
                check_conv(seed++, REQUANT_O,
                           (conv_case){1, 40, 40, size, size + 30, kernel, stride, kernel / 2,
                                       dilation, 40});
            }
    check_conv(seed, REQUANT_F, (conv_case){1, 5, 5, 4, 150, 3, 1, 1, 1, 5}); // more than a list
}

// Of few channels several pixels fill a register: the whole of a row, its last pixels, windows
// without padding, large ones, and ones that are apart.
static void depthwise_equals_the_plain_sum_for_few_channels(void **state) {
    (void)state;
    static const conv_case cases[] = {
        {1, 4, 4, 6, 80, 3, 1, 1, 1, 4},  {2, 4, 4, 40, 16, 9, 1, 4, 1, 4},
        {1, 6, 6, 9, 43, 3, 1, 0, 1, 6},  {2, 12, 12, 8, 37, 5, 1, 2, 1, 12},
        {1, 4, 4, 11, 70, 3, 2, 1, 1, 4}, {1, 3, 3, 20, 90, 7, 3, 3, 1, 3},
        {1, 6, 6, 9, 61, 3, 1, 2, 2, 6},  {2, 5, 5, 9, 50, 1, 1, 0, 1, 5},
    };
    for (requant_rule rule = REQUANT_F; rule <= REQUANT_Q; rule++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            layer_case c;
            qlayer *layer = NULL;
            check_conv(9500 + i, rule, cases[i]);
            begin_conv(&c, i, rule, &cases[i], false);
            CHECK_OK(tare__qlayer_create(&c.layer, c.x, c.y, tare__isa_detect(), &layer, NULL));
            // Narrower registers hold fewer pixels, and pay in fewer cases.
            if (tare__depthwise_choose(tare__isa_detect())->quads == 4 &&
                tare__qlayer_form(layer).pixels < 2)
                fail_msg("case %zu: one pixel at a time", i);
            tare__qlayer_destroy(layer);
            end_layer_case(&c);
        }
}

// Where channels fill a register by themselves, and rows are short, nothing is copied.
static void depthwise_pixels_of_many_channels_stay_single(void **state) {
    (void)state;
    static const conv_case cases[] = {{1, 64, 64, 20, 20, 3, 1, 1, 1, 64},
                                      {1, 40, 40, 20, 20, 3, 1, 1, 1, 40},
                                      {1, 4, 4, 9, 2, 3, 1, 1, 1, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        layer_case c;
        qlayer *layer = NULL;
        begin_conv(&c, i, REQUANT_F, &cases[i], false);
        CHECK_OK(tare__qlayer_create(&c.layer, c.x, c.y, tare__isa_detect(), &layer, NULL));
        assert_int_equal(tare__qlayer_form(layer).pixels, 1);
        tare__qlayer_destroy(layer);
        end_layer_case(&c);
    }
}

static void layers_survive_every_failed_allocation(void **state) {
    (void)state;
    const conv_case cases[] = {{1, 4, 4, 4, 4, 3, 1, 1, 1, 1}, {1, 4, 4, 4, 4, 3, 1, 1, 1, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        layer_case c;
        qlayer *layer = NULL;
        tare_status status;
        begin_conv(&c, 5, REQUANT_O, &cases[i], false);
        EVERY_ALLOCATION_FAILS(
            status,
            {
                status = tare__qlayer_create(&c.layer, c.x, c.y, tare__isa_detect(), &layer, NULL);
                tare__qlayer_destroy(layer);
                layer = NULL;
            },
            (void)0)
        end_layer_case(&c);
    }
}

static void the_environment_lowers_the_level(void **state) {
    (void)state;
    isa_level level;
    tare_error *err = tare_error_create();
    assert_int_equal(setenv("TARE_ISA", "scalar", 1), 0);
    CHECK_OK(tare__isa_choose(&level, err));
    assert_int_equal(level, ISA_SCALAR);
    assert_int_equal(setenv("TARE_ISA", "sse9", 1), 0);
    assert_int_equal(tare__isa_choose(&level, err), TARE_INVALID_ARGUMENT);
    assert_non_null(strstr(tare_error_message(err), "scalar"));
    assert_int_equal(unsetenv("TARE_ISA"), 0);
    CHECK_OK(tare__isa_choose(&level, err));
    assert_int_equal(level, tare__isa_detect());
    tare_error_destroy(err);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_equals_the_plain_sum_for_every_remainder),
        cmocka_unit_test(small_layers_leave_tiles_alone),
        cmocka_unit_test(conv_equals_the_plain_sum_for_every_remainder),
        cmocka_unit_test(conv_equals_the_plain_sum_for_every_geometry),
        cmocka_unit_test(conv_equals_the_plain_sum_for_many_channels),
        cmocka_unit_test(conv_equals_the_plain_sum_for_wide_padding),
        cmocka_unit_test(conv_equals_the_plain_sum_over_many_blocks),
        cmocka_unit_test(depthwise_equals_the_plain_sum_for_every_remainder),
        cmocka_unit_test(depthwise_equals_the_plain_sum_for_every_geometry),
        cmocka_unit_test(depthwise_equals_the_plain_sum_for_every_number_of_channels),
        cmocka_unit_test(depthwise_equals_the_plain_sum_where_channels_repeat),
        cmocka_unit_test(depthwise_equals_the_plain_sum_for_large_windows),
        cmocka_unit_test(depthwise_equals_the_plain_sum_for_few_channels),
        cmocka_unit_test(depthwise_pixels_of_many_channels_stay_single),
        cmocka_unit_test(layers_survive_every_failed_allocation),
        cmocka_unit_test(the_environment_lowers_the_level),
    };
    return cmocka_run_group_tests(tests, start_layer_pools, end_layer_pools);
}
