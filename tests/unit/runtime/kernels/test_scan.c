// SPDX-License-Identifier: Apache-2.0
// Scans of floats: every level and every number of threads gives what the definitions say.
#include "support/test.h"

#include <math.h>

#include "runtime/kernels/scan.h"

enum { MOST = 1500, MANY = 100003, BINS = 37, CENTRED_BINS = 64 };

// A third are zeros, some are far out.
static void fill(float *x, size_t count, uint64_t seed) {
    for (size_t i = 0; i < count; i++) {
        seed = seed * 6364136223846793005U + 1442695040888963407U;
        const float v = (float)(seed >> 40) / 8388608.0F - 1.0F;
        x[i] = seed >> 33 & 1 ? v * 3 : seed >> 34 & 1 ? v * 0.01F : 0.0F;
    }
}

static void naive_extremes(const float *x, size_t count, float *min, float *max) {
    *min = INFINITY;
    *max = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        *min = fminf(*min, x[i]);
        *max = fmaxf(*max, x[i]);
    }
}

static void every_level_finds_extremes(void **state) {
    (void)state;
    static float x[MOST];
    for (size_t r = 0; r < tare__scan_row_count; r++) {
        if (!tare__kernel_suits(&tare__scan_rows[r].needs, tare__isa_detect())) continue;
        const scan_kernels *k = &tare__scan_rows[r].kernels;
        for (size_t count = 1; count < 300; count++) {
            float min, max, least, most;
            bool has_nan = true;
            fill(x, count, count);
            if (count % 5 == 0) x[count / 2] = count % 2 == 0 ? INFINITY : -INFINITY;
            naive_extremes(x, count, &least, &most);
            k->extremes(x, count, &min, &max, &has_nan);
            assert_true(min == least && max == most && !has_nan);
            x[count * 7 % count] = NAN;
            k->extremes(x, count, &min, &max, &has_nan);
            assert_true(has_nan);
        }
    }
}

static void check_sums(const uint32_t *counters, size_t stride, const uint32_t *expected) {
    for (size_t b = 0; b < stride; b++) {
        uint32_t sum = 0;
        for (size_t k = 0; k < SCAN_SETS; k++) sum += counters[k * stride + b];
        assert_int_equal(sum, expected[b]);
    }
}

static void every_level_counts_the_same(void **state) {
    (void)state;
    static float x[MOST];
    const range_bins ranges[] = {{-3, 6, BINS, BINS - 1}, {0.5F, 1.5F, BINS, BINS - 1}};
    const centred_bins centred = {CENTRED_BINS / 2 / 4.0F, CENTRED_BINS / 2};
    for (size_t r = 0; r < tare__scan_row_count; r++) {
        if (!tare__kernel_suits(&tare__scan_rows[r].needs, tare__isa_detect())) continue;
        const scan_kernels *k = &tare__scan_rows[r].kernels;
        for (size_t count = 1; count <= MOST; count += count < 300 ? 1 : 97) {
            fill(x, count, count);
            for (size_t m = 0; m < 2; m++) {
                uint32_t counters[SCAN_SETS * BINS] = {0}, expected[BINS] = {0};
                for (size_t i = 0; i < count; i++) {
                    const float bin = (x[i] - ranges[m].min) * BINS / ranges[m].width;
                    expected[bin <= 0 ? 0 : bin >= BINS - 1 ? BINS - 1 : (int)bin]++;
                }
                k->count_range(&ranges[m], x, count, BINS, counters);
                check_sums(counters, BINS, expected);
            }
            uint32_t counters[SCAN_SETS * CENTRED_BINS] = {0}, expected[CENTRED_BINS] = {0};
            for (size_t i = 0; i < count; i++) {
                const int away = (int)(fabsf(x[i]) * centred.per_width);
                expected[x[i] < 0 ? CENTRED_BINS / 2 - 1 - away : CENTRED_BINS / 2 + away]++;
            }
            k->count_centred(&centred, x, count, CENTRED_BINS, counters);
            check_sums(counters, CENTRED_BINS, expected);
        }
    }
}

static void threads_give_what_one_gives(void **state) {
    (void)state;
    static float x[MANY];
    const range_bins m = {-3, 6, BINS, BINS - 1};
    uint64_t expected[BINS], found[BINS];
    float least, most, min, max;
    fill(x, MANY, 3);
    assert_int_equal(tare__scan_range(&tare__scan_alone, &m, x, MANY, BINS, expected, NULL),
                     TARE_OK);
    tare__scan_extremes(&tare__scan_alone, x, MANY, &least, &most);
    for (int threads = 2; threads <= 5; threads++) {
        float_scan scan = {tare__scan_choose(tare__isa_detect()), NULL};
        assert_int_equal(tare__thread_pool_create(threads, &scan.pool, NULL), TARE_OK);
        assert_int_equal(tare__scan_range(&scan, &m, x, MANY, BINS, found, NULL), TARE_OK);
        assert_memory_equal(found, expected, sizeof found);
        tare__scan_extremes(&scan, x, MANY, &min, &max);
        assert_true(min == least && max == most);
        x[MANY - threads] = NAN;
        tare__scan_extremes(&scan, x, MANY, &min, &max);
        assert_true(isnan(min) && isnan(max));
        x[MANY - threads] = 0;
        tare__thread_pool_destroy(scan.pool);
    }
}

static void zeros_have_no_sign(void **state) {
    (void)state;
    const float x[] = {-0.0F, -0.0F};
    float min, max;
    tare__scan_extremes(&tare__scan_alone, x, 2, &min, &max);
    assert_false(signbit(min) || signbit(max));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_level_finds_extremes),
        cmocka_unit_test(every_level_counts_the_same),
        cmocka_unit_test(threads_give_what_one_gives),
        cmocka_unit_test(zeros_have_no_sign),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
