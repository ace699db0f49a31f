// SPDX-License-Identifier: Apache-2.0
// Padded rows hold the quantized values that the definition says, whatever was asked for before, at
// addresses that ascend, and touch no other memory.
#include "support/test.h"

#include "core/memory/alloc.h"
#include "runtime/gemm/padded_rows.h"

enum { CASES = 4000, IMAGES = 3, PADDING = 77, GUARD = 0xA5, GUARDS = 64, MOST = 40, CALLS = 12 };

static size_t below(uint64_t *state, size_t n) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(*state >> 33) % n;
}

// Windows that often reach into the padding or lie in it.
static conv_windows any_windows(uint64_t *s) {
    conv_windows w = {.depth = 1,
                      .height = 1 + below(s, 12),
                      .width = 1 + below(s, 12),
                      .channels = 1 + below(s, 6),
                      .out_depth = 1,
                      .out_height = 1 + below(s, 6),
                      .out_width = 1 + below(s, 8),
                      .above = (ptrdiff_t)below(s, 8) - 2,
                      .before = (ptrdiff_t)below(s, 8) - 2,
                      .addends = 1,
                      .planes = 1,
                      .rows = 1 + below(s, 5),
                      .columns = 1 + below(s, 5),
                      .reflects = below(s, 4) == 1};
    for (int d = 0; d < SPATIAL; d++) {
        w.stride[d] = 1 + below(s, 4);
        w.step[d] = 1 + below(s, 3);
    }
    return w;
}

// Of the pixel that a tap of a window reads.
static uint8_t quantized_at(const staging *g, size_t pixel, size_t i, size_t j, size_t c) {
    const conv_windows *w = &g->stage->from;
    const output_position at = tare__conv_output_position(w, pixel);
    const ptrdiff_t y = tare__conv_position(
        w, (ptrdiff_t)(at.row * w->stride[H] + i * w->step[H]) - w->above, w->height);
    const ptrdiff_t x = tare__conv_position(
        w, (ptrdiff_t)(at.column * w->stride[W] + j * w->step[W]) - w->before, w->width);
    if (y < 0 || x < 0) return g->padding;
    return g->images[((at.image * w->height + (size_t)y) * w->width + (size_t)x) * g->stride + c];
}

static void check_window(const staging *g, size_t pixel, bool joins, const size_t *offsets,
                         const uint8_t *at) {
    const conv_windows *w = &g->stage->from;
    for (size_t i = 0; i < w->rows; i++)
        for (size_t j = 0; j < w->columns; j++)
            for (size_t c = 0; c < w->channels; c++) {
                const uint8_t *tap =
                    joins ? at + offsets[i] + j * w->channels : at + offsets[i * w->columns + j];
                assert_int_equal(tap[c], quantized_at(g, pixel, i, j, c));
            }
}

// On as threads go, and back now and then.
static void check_lists(const padded_form *f, const staging *g, bool joins, uint64_t *state) {
    const uint8_t *to[MOST + 1];
    size_t offsets[25];
    const size_t all = IMAGES * tare__conv_window_pixels(&f->stage.from);
    const size_t most = 1 + below(state, MOST), bytes = tare__padded_rows_bytes(f, most);
    uint8_t *memory = tare__alloc_aligned(bytes + 2 * GUARDS, GUARDS);
    assert_non_null(memory);
    memset(memory, GUARD, bytes + 2 * GUARDS);
    padded_rows *rows = tare__padded_rows_begin(f, g, most, memory + GUARDS);
    tare__padded_rows_offsets(rows, offsets);
    size_t pixel = below(state, all);
    for (int i = 0; i < CALLS; i++) {
        const size_t left = all - pixel, count = 1 + below(state, left < most ? left : most);
        to[count] = g->images;
        tare__padded_rows_list(rows, pixel, count, to);
        for (size_t n = 0; n < count; n++) {
            check_window(g, pixel + n, joins, offsets, to[n]);
            if (n > 0) assert_true(to[n] > to[n - 1]);
        }
        assert_ptr_equal(to[count], g->images);
        pixel += count;
        if (pixel == all || below(state, 4) == 0) pixel = below(state, all);
    }
    for (size_t i = 0; i < GUARDS; i++) {
        assert_int_equal(memory[i], GUARD);
        assert_int_equal(memory[GUARDS + bytes + i], GUARD);
    }
    tare__free_aligned(memory);
}

static void rows_hold_whole_windows(void **state) {
    uint64_t random = 11;
    (void)state;
    for (int i = 0; i < CASES; i++) {
        const conv_windows w = any_windows(&random);
        const bool joins = w.step[W] == 1 && below(&random, 2);
        const padded_form f = tare__padded_form_of(&w, joins);
        staging g = {
            .stage = &f.stage, .stride = w.channels + below(&random, 2) * 5, .padding = PADDING};
        const size_t count = IMAGES * w.height * w.width * g.stride;
        uint8_t *images = tare__alloc(count);
        assert_non_null(images);
        for (size_t k = 0; k < count; k++) images[k] = (uint8_t)below(&random, 256);
        g.images = images;
        check_lists(&f, &g, joins, &random);
        tare__free(images);
    }
}

// A tile of pixels is loaded at one distance across the ends of image rows.
static void distances_are_multiples_of_one(void **state) {
    enum { HEIGHT = 9, WIDTH = 7, CHANNELS = 3 };
    const uint8_t images[HEIGHT * WIDTH * CHANNELS] = {0};
    (void)state;
    for (size_t stride = 1; stride <= 3; stride++) {
        const size_t out_height = (HEIGHT - 1) / stride + 1, out_width = (WIDTH - 1) / stride + 1;
        const conv_windows w = {.depth = 1,
                                .height = HEIGHT,
                                .width = WIDTH,
                                .channels = CHANNELS,
                                .out_depth = 1,
                                .out_height = out_height,
                                .out_width = out_width,
                                .above = 1,
                                .before = 1,
                                .addends = 1,
                                .planes = 1,
                                .rows = 3,
                                .columns = 3,
                                .stride = {1, stride, stride},
                                .step = {1, 1, 1}};
        const padded_form f = tare__padded_form_of(&w, true);
        const staging g = {.stage = &f.stage, .images = images, .stride = CHANNELS};
        const size_t count = out_height * out_width;
        const uint8_t *to[HEIGHT * WIDTH];
        void *memory = tare__alloc_aligned(tare__padded_rows_bytes(&f, count), 64);
        assert_non_null(memory);
        tare__padded_rows_list(tare__padded_rows_begin(&f, &g, count, memory), 0, count, to);
        for (size_t n = 1; n < count; n++) {
            const size_t distance = (size_t)(to[n] - to[n - 1]) / (stride * CHANNELS);
            assert_int_equal((size_t)(to[n] - to[n - 1]) % (stride * CHANNELS), 0);
            assert_in_range(distance, 1, n % out_width != 0 ? 1 : 3);
        }
        tare__free_aligned(memory);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_hold_whole_windows),
        cmocka_unit_test(distances_are_multiples_of_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
