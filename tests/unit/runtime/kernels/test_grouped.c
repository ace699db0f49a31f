// SPDX-License-Identifier: Apache-2.0
// Products with weights in groups: every row of the table gives the bits of plain C.
#include "support/test.h"

#include "runtime/kernels/grouped.h"

enum { MOST_BYTES = 1 << 17 };

static uint32_t next(uint32_t *seed) {
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

typedef struct operands {
    _Alignas(64) uint8_t panels[MOST_BYTES];
    float x[GROUPED_MOST_ROWS * 1024];
    int8_t quantized[GROUPED_MOST_ROWS * 1024];
    int32_t quantized_sums[GROUPED_MOST_ROWS * 128];
} operands;

static void fill_panels(grouped_tile *t, operands *o, uint32_t *seed) {
    const size_t group = tare__grouped_bytes(t->group, t->bits, t->has_zeros);
    t->panel_bytes = (t->groups * group + GROUPED_LINE - 1) / GROUPED_LINE * GROUPED_LINE;
    assert_true(t->panel_count * t->panel_bytes <= MOST_BYTES);
    for (size_t i = 0; i < t->panel_count * t->panel_bytes; i++) o->panels[i] = (uint8_t)next(seed);
    for (size_t i = 0; i < t->panel_count * t->groups; i++) {
        uint8_t *at = o->panels + i / t->groups * t->panel_bytes + i % t->groups * group;
        for (size_t k = 0; k < GROUPED_OUTPUTS; k++) {
            ((float *)(void *)at)[k] = (float)next(seed) / 0x1p24F - 0.25F;
            if (t->has_zeros) // of the values' range
                at[GROUPED_SCALE_BYTES + k] &= (uint8_t)((1 << t->bits) - 1);
        }
    }
    t->panels = o->panels;
}

static void fill_rows(grouped_tile *t, operands *o, uint32_t *seed) {
    const size_t ins = t->groups * t->group;
    for (size_t i = 0; i < t->rows * ins; i++) {
        o->x[i] = (float)next(seed) / 0x1p23F - 1;
        o->quantized[i] = (int8_t)(next(seed) % 256);
        if (next(seed) % 4 == 0) o->quantized[i] = next(seed) % 2 == 0 ? -128 : 127;
    }
    for (size_t g = 0; g < t->rows * t->groups; g++) {
        o->quantized_sums[g] = 0;
        for (size_t k = 0; k < t->group; k++)
            o->quantized_sums[g] += o->quantized[g * t->group + k];
    }
    t->x = o->x;
    t->quantized = o->quantized;
    t->quantized_sums = o->quantized_sums;
}

static void check_tile(grouped_tile *t, operands *o, uint32_t seed) {
    static float expected[2][GROUPED_MOST_ROWS * GROUPED_MOST_PANELS * GROUPED_OUTPUTS];
    static float sums[GROUPED_MOST_ROWS * GROUPED_MOST_PANELS * GROUPED_OUTPUTS];
    fill_panels(t, o, &seed);
    fill_rows(t, o, &seed);
    t->sums = expected[0];
    grouped_floats__scalar(t);
    t->sums = expected[1];
    grouped_quantized__scalar(t);
    t->sums = sums;
    for (size_t i = 0; i < tare__grouped_kernel_count; i++) {
        const grouped_kernels *k = &tare__grouped_kernels[i];
        if (!tare__kernel_suits(&k->needs, tare__isa_detect()) || t->rows > k->rows) continue;
        for (int of_quantized = 0; of_quantized < 2; of_quantized++) {
            memset(sums, 0, sizeof sums);
            (of_quantized ? k->quantized : k->floats)(t);
            const size_t bytes = t->rows * t->panel_count * GROUPED_OUTPUTS * sizeof *sums;
            if (memcmp(sums, expected[of_quantized], bytes) != 0)
                fail_msg("%s, %s: %d bits, zeros %d, %zu groups of %zu, %zu rows, %zu panels",
                         k->name, of_quantized ? "quantized" : "floats", t->bits, t->has_zeros,
                         t->groups, t->group, t->rows, t->panel_count);
        }
    }
}

static void every_kernel_equals_plain_c(void **state) {
    static operands o;
    static const size_t groups[] = {8, 16, 32, 40, 128};
    (void)state;
    for (int form = 0; form < 4; form++)
        for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
            for (size_t rows = 1; rows <= GROUPED_MOST_ROWS; rows++)
                for (size_t panels = 1; panels <= GROUPED_MOST_PANELS; panels++) {
                    grouped_tile t = {.bits = form % 2 == 0 ? 4 : 8,
                                      .has_zeros = form >= 2,
                                      .group = groups[g],
                                      .groups = groups[g] == 128 ? 2 : 3,
                                      .rows = rows,
                                      .panel_count = panels};
                    check_tile(&t, &o, (uint32_t)(form * 1000 + (int)(rows * 10 + panels)));
                }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_kernel_equals_plain_c)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
