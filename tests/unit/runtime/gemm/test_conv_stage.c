// SPDX-License-Identifier: Apache-2.0
// Staged images and lines of windows hold the quantized values that the definition says, whatever
// was asked for before, and touch no other memory.
#include "support/test.h"

#include "core/memory/alloc.h"
#include "runtime/gemm/conv_stage.h"

enum { CASES = 4000, IMAGES = 2, PADDING = 77, GUARD = 0xA5, GUARDS = 64 };

static size_t below(uint64_t *state, size_t n) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(*state >> 33) % n;
}

static ptrdiff_t from(uint64_t *state, ptrdiff_t least, size_t n) {
    return least + (ptrdiff_t)below(state, n);
}

// Windows of one plane, whose pixels follow each other; some often reach into the padding or lie in
// it, some are those of large images of colours.
static conv_windows any_windows(uint64_t *s) {
    const bool is_common = below(s, 4) == 0;
    conv_windows w = {.depth = 1 + below(s, 3),
                      .height = 1 + below(s, 12),
                      .width = 1 + below(s, is_common ? 60 : 12),
                      .channels = is_common ? 3 : 1 + below(s, 6),
                      .out_depth = 1 + below(s, 2),
                      .out_height = 1 + below(s, 6),
                      .out_width = 1 + below(s, is_common ? 30 : 8),
                      .front = from(s, -2, 5),
                      .above = from(s, -2, 8),
                      .before = from(s, -4, 12),
                      .addends = 1,
                      .planes = 1,
                      .rows = is_common ? 7 : 1 + below(s, 8),
                      .columns = is_common ? 7 : 1 + below(s, 7),
                      .reflects = below(s, 4) == 1};
    for (int d = 0; d < SPATIAL; d++) {
        w.stride[d] = is_common ? 2 : 1 + below(s, 4);
        w.step[d] = 1;
    }
    return w;
}

// Pixels lie apart in some of them.
static uint8_t *make_images(const staging *g, uint64_t *state) {
    const conv_windows *w = &g->stage->from;
    const size_t count = IMAGES * w->depth * w->height * w->width * g->stride;
    uint8_t *images = tare__alloc(count);
    assert_non_null(images);
    for (size_t i = 0; i < count; i++) images[i] = (uint8_t)below(state, 256);
    return images;
}

// Positions count from the padding's outer edge.
static uint8_t quantized_at(const staging *g, size_t image, size_t z, size_t y, size_t x,
                            size_t c) {
    const conv_windows *w = &g->stage->from;
    const ptrdiff_t at[] = {tare__conv_position(w, (ptrdiff_t)z - w->front, w->depth),
                            tare__conv_position(w, (ptrdiff_t)y - w->above, w->height),
                            tare__conv_position(w, (ptrdiff_t)x - w->before, w->width)};
    if (at[D] < 0 || at[H] < 0 || at[W] < 0) return g->padding;
    const size_t row = (image * w->depth + (size_t)at[D]) * w->height + (size_t)at[H];
    return g->images[(row * w->width + (size_t)at[W]) * g->stride + c];
}

// Memory between guards.
static uint8_t *guarded(size_t bytes) {
    uint8_t *memory = tare__alloc_aligned(bytes + 2 * GUARDS, GUARDS);
    assert_non_null(memory);
    memset(memory, GUARD, bytes + 2 * GUARDS);
    return memory + GUARDS;
}

static void check_guards(uint8_t *memory, size_t bytes) {
    for (size_t i = 0; i < GUARDS; i++) {
        assert_int_equal(memory[-1 - (ptrdiff_t)i], GUARD);
        assert_int_equal(memory[bytes + i], GUARD);
    }
    tare__free_aligned(memory - GUARDS);
}

static void check_image(const staging *g, size_t image) {
    const conv_windows *w = &g->stage->to;
    const size_t bytes = tare__conv_stage_bytes(g->stage), ins = w->channels;
    uint8_t *staged = guarded(bytes);
    const uint8_t *at = staged;
    tare__conv_stage_image(g, image, staged);
    for (size_t z = 0; z < w->depth; z++)
        for (size_t y = 0; y < w->height; y++)
            for (size_t i = 0; i < w->width * ins; i++)
                assert_int_equal(*at++, quantized_at(g, image, z, y, i / ins, i % ins));
    check_guards(staged, bytes);
}

// As [column][row][channel].
static void check_window(const staging *g, size_t pixel, const uint8_t *window) {
    const conv_windows *w = &g->stage->from;
    const size_t x = pixel % w->out_width, y = pixel / w->out_width % w->out_height;
    const size_t plane = pixel / w->out_width / w->out_height;
    const size_t image = plane / w->out_depth, z = plane % w->out_depth * w->stride[D];
    for (size_t j = 0; j < w->columns; j++)
        for (size_t i = 0; i < w->rows; i++)
            for (size_t c = 0; c < w->channels; c++)
                assert_int_equal(*window++, quantized_at(g, image, z, y * w->stride[H] + i,
                                                         x * w->stride[W] + j, c));
}

// On as threads go, and back now and then.
static void check_lines(const staging *g, uint64_t *state) {
    enum { MOST = 40, CALLS = 12 };
    const uint8_t *to[MOST + 1];
    const size_t all = IMAGES * tare__conv_window_pixels(&g->stage->from);
    const size_t most = 1 + below(state, MOST);
    const size_t bytes = tare__staged_rows_bytes(g->stage, most);
    unsigned char *memory = guarded(bytes);
    staged_rows *lines = tare__staged_rows_begin(g, most, memory);
    size_t pixel = below(state, all);
    for (int i = 0; i < CALLS; i++) {
        const size_t left = all - pixel, count = 1 + below(state, left < most ? left : most);
        to[count] = g->images;
        tare__staged_rows_list(lines, pixel, count, to);
        for (size_t n = 0; n < count; n++) check_window(g, pixel + n, to[n]);
        assert_ptr_equal(to[count], g->images);
        pixel += count;
        if (pixel == all || below(state, 4) == 0) pixel = below(state, all);
    }
    check_guards(memory, bytes);
}

// columns NULL: images of rows.
static void check_stages(const column_kernel *columns) {
    uint64_t random = 11;
    for (int i = 0; i < CASES; i++) {
        const conv_windows w = any_windows(&random);
        const conv_stage s = columns != NULL ? tare__conv_stage_of_windows(&w, columns)
                                             : tare__conv_stage_of_rows(&w);
        staging g = {.stage = &s, .stride = w.channels + below(&random, 2) * 5, .padding = PADDING};
        uint8_t *images = make_images(&g, &random);
        g.images = images;
        if (columns != NULL)
            check_lines(&g, &random);
        else
            check_image(&g, below(&random, IMAGES));
        tare__free(images);
    }
}

static void images_have_their_padding(void **state) {
    (void)state;
    check_stages(NULL);
}

static void lines_hold_whole_windows(void **state) {
    (void)state;
    for (int isa = 0; isa <= (int)tare__isa_detect(); isa++)
        check_stages(tare__columns_choose((isa_level)isa));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_have_their_padding),
        cmocka_unit_test(lines_hold_whole_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
