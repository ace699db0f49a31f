// SPDX-License-Identifier: Apache-2.0
// Where the taps of windows lie, by the definition: one tap at a time. Which of them ranges of
// pixels leave out.
#include "support/test.h"

#include "runtime/gemm/conv_ranges.h"

enum { CASES = 20000, IMAGES = 2, MOST_ADDRESSES = 1 << 13, MOST_COLUMNS = 9, MOST_TAPS = 64 };

static const uint8_t images[1024], padding[8], untouched[1];

static size_t below(uint64_t *state, size_t n) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(*state >> 33) % n;
}

static ptrdiff_t from(uint64_t *state, ptrdiff_t least, size_t n) {
    return least + (ptrdiff_t)below(state, n);
}

// Small images, so that windows often reach into the padding, or lie in it.
static conv_windows any_windows(uint64_t *s) {
    conv_windows w = {.depth = 1 + below(s, 3),
                      .height = 1 + below(s, 4),
                      .width = 1 + below(s, 7),
                      .channels = 1 + below(s, 3),
                      .out_depth = 1 + below(s, 2),
                      .out_height = 1 + below(s, 4),
                      .out_width = 1 + below(s, 6),
                      .front = from(s, -2, 5),
                      .above = from(s, -2, 6),
                      .before = from(s, -4, 12),
                      .addends = 1 + below(s, 2),
                      .planes = 1 + below(s, 2),
                      .rows = 1 + below(s, 3),
                      .columns = 1 + below(s, 4),
                      .reflects = below(s, 2) == 1};
    for (int d = 0; d < SPATIAL; d++) {
        w.stride[d] = 1 + below(s, 4);
        w.step[d] = 1 + below(s, 4);
    }
    return w;
}

// The pixel at these positions, which count from the padding's outer edge.
static const uint8_t *pixel_at(const conv_windows *w, size_t image, size_t z, size_t y, size_t x) {
    const ptrdiff_t at[] = {tare__conv_position(w, (ptrdiff_t)z - w->front, w->depth),
                            tare__conv_position(w, (ptrdiff_t)y - w->above, w->height),
                            tare__conv_position(w, (ptrdiff_t)x - w->before, w->width)};
    if (at[D] < 0 || at[H] < 0 || at[W] < 0) return padding;
    return images + image * tare__conv_image_quantized(w) +
           (((size_t)at[D] * w->height + (size_t)at[H]) * w->width + (size_t)at[W]) * w->channels;
}

static const uint8_t *tap_of(const conv_windows *w, size_t window, size_t tap) {
    const size_t pixels = tare__conv_window_pixels(w), at = window % pixels;
    const size_t plane = tap / w->columns / w->rows % w->planes;
    return pixel_at(
        w, window / pixels, at / w->out_width / w->out_height * w->stride[D] + plane * w->step[D],
        at / w->out_width % w->out_height * w->stride[H] + tap / w->columns % w->rows * w->step[H],
        at % w->out_width * w->stride[W] + tap % w->columns * w->step[W]);
}

static void clear(const uint8_t **to) {
    for (size_t i = 0; i < MOST_ADDRESSES; i++) to[i] = untouched;
}

static void check_windows(const conv_windows *w, uint64_t *state) {
    static const uint8_t *to[MOST_ADDRESSES];
    const size_t all = IMAGES * tare__conv_window_pixels(w), taps = tare__conv_window_taps(w);
    const size_t first = below(state, all), count = below(state, all - first + 1);
    const window_list list = {
        .images = images, .padding = padding, .first = first, .count = count, .tap_step = count};
    assert_true(taps * count < MOST_ADDRESSES);
    clear(to);
    tare__conv_windows_list(w, &list, to);
    for (size_t tap = 0; tap < taps; tap++)
        for (size_t i = 0; i < count; i++)
            assert_ptr_equal(to[tap * count + i], tap_of(w, first + i, tap));
    assert_ptr_equal(to[taps * count], untouched);
}

static void check_columns(const conv_windows *w, uint64_t *state) {
    static const uint8_t *to[MOST_ADDRESSES];
    const bool has_planes = w->addends * w->planes > 1;
    const size_t rows = has_planes ? w->addends * w->planes * w->rows : w->rows + 1;
    const column_list list = {.image = images,
                              .padding = padding,
                              .plane = below(state, w->out_depth),
                              .row = below(state, w->out_height),
                              .row_count = rows - below(state, 2),
                              .first = below(state, w->out_width),
                              .column_count = below(state, MOST_COLUMNS),
                              .column_step = rows};
    clear(to);
    tare__conv_columns_list(w, &list, to);
    for (size_t j = 0; j < list.column_count; j++)
        for (size_t i = 0; i < rows; i++) {
            const size_t plane = has_planes ? i / w->rows % w->planes : 0;
            const size_t row = has_planes ? i % w->rows : i;
            const uint8_t *expected =
                pixel_at(w, 0, list.plane * w->stride[D] + plane * w->step[D],
                         list.row * w->stride[H] + row * w->step[H], list.first * w->stride[W] + j);
            assert_ptr_equal(to[j * rows + i], i < list.row_count ? expected : padding);
        }
    assert_ptr_equal(to[list.column_count * rows], untouched);
}

static void taps_lie_where_the_definition_says(void **state) {
    (void)state;
    uint64_t random = 7;
    for (int i = 0; i < CASES; i++) {
        const conv_windows w = any_windows(&random);
        check_windows(&w, &random);
        check_columns(&w, &random);
    }
}

// --- ranges ---

// Counts the pixel of a range, all of whose other taps must lie in the padding.
static void check_pixel(const conv_windows *w, const conv_range *range, size_t pixel,
                        unsigned char *met) {
    assert_true(met[pixel]++ == 0);
    for (size_t tap = 0; tap < tare__conv_window_taps(w); tap++) {
        const size_t row = tap / w->columns, column = tap % w->columns;
        const bool is_met =
            row - range->row < range->rows && column - range->column < range->columns;
        const uint8_t *at = tap_of(w, pixel, tap);
        if (!is_met) assert_ptr_equal(at, padding);
        if (is_met && range->is_inside) assert_ptr_not_equal(at, padding);
    }
}

static void check_inside(const conv_windows *w, const conv_range *range, size_t pixel) {
    static const uint8_t *to[MOST_ADDRESSES];
    size_t offsets[MOST_TAPS];
    clear(to);
    tare__conv_range_list(w, range, images, pixel, range->count, to);
    tare__conv_range_offsets(w, range, offsets);
    assert_ptr_equal(to[range->count], untouched);
    for (size_t i = 0; i < range->rows; i++)
        for (size_t j = 0; j < range->columns; j++) {
            const size_t tap = (range->row + i) * w->columns + range->column + j;
            for (size_t k = 0; k < range->count; k++)
                assert_ptr_equal(to[k] + offsets[i * range->columns + j],
                                 tap_of(w, pixel + k * range->pixel_stride, tap));
        }
}

// Every pixel of [first, last) is in one range, and no other is.
static size_t check_ranges(const conv_windows *w, bool leaves_out, uint64_t *state) {
    enum { MOST_PIXELS = 1 << 10 };
    const size_t all = IMAGES * tare__conv_window_pixels(w);
    const size_t first = below(state, 2) ? 0 : below(state, all);
    const size_t last = below(state, 2) ? all : first + below(state, all - first + 1);
    const bool by_row = below(state, 4) == 0;
    unsigned char met[MOST_PIXELS] = {0};
    size_t inside = 0;
    conv_ranges ranges;
    conv_range range;
    assert_true(all <= MOST_PIXELS);
    CHECK_OK(tare__conv_ranges_create(w, leaves_out, by_row, &ranges, NULL));
    range_walk walk = {&ranges, first, last, 0};
    while (tare__conv_ranges_next(&walk, &range))
        for (size_t row = 0; row < range.image_rows; row++) {
            const size_t pixel = range.first + row * range.image_row_stride;
            for (size_t i = 0; i < range.count; i++)
                check_pixel(w, &range, pixel + i * range.pixel_stride, met);
            if (by_row) assert_true(pixel % w->out_width + range.count <= w->out_width);
            if (range.is_inside && range.rows * range.columns > 0) check_inside(w, &range, pixel);
            inside += range.is_inside;
        }
    for (size_t i = 0; i < all; i++) assert_int_equal(met[i], i >= first && i < last);
    tare__conv_ranges_release(&ranges);
    return inside;
}

static void ranges_leave_out_only_what_lies_in_the_padding(void **state) {
    (void)state;
    uint64_t random = 11;
    size_t inside = 0;
    for (int i = 0; i < CASES; i++) {
        conv_windows w = any_windows(&random);
        w.out_height += below(&random, 4);
        inside += check_ranges(&w, below(&random, 4) != 0, &random);
        w.depth = w.out_depth = w.planes = w.addends = 1;
        w.front = 0;
        w.reflects = false;
        inside += check_ranges(&w, true, &random);
    }
    assert_true(inside > CASES / 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_leave_out_only_what_lies_in_the_padding),
        cmocka_unit_test(taps_lie_where_the_definition_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
