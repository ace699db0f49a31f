// SPDX-License-Identifier: Apache-2.0
// Attention of quantized bytes: every level's kernels give the portable ones' bits, and sessions
// the reference's, whatever the shapes.
#include "support/test.h"

#include <math.h>

#include "core/math/exp_quantized.h"
#include "core/tensor/tensor.h"
#include "runtime/kernels/attention.h"
#include "support/models.h"

enum { MOST = 83, MOST_LANES = 96, MOST_SCORES = 200 };

static uint64_t seed = 1;
static uint32_t draw(void) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(seed >> 33);
}

static const attention_kernels *scalar(void) {
    return &tare__attention_kernels[tare__attention_kernel_count - 1];
}

// --- kernels ---

static void check_packing(const attention_kernels *k, const quantized_matrix *m) {
    static uint32_t expected[MOST * MOST_LANES], found[MOST * MOST_LANES];
    int32_t expected_sums[MOST_LANES], found_sums[MOST_LANES];
    size_t lanes = (m->rows + 15) / 16 * 16, words = (m->columns + 3) / 4;
    memset(found, 0x5A, sizeof found);
    scalar()->pack_rows(m, lanes, expected, expected_sums);
    k->pack_rows(m, lanes, found, found_sums);
    assert_memory_equal(found, expected, words * lanes * sizeof *found);
    assert_memory_equal(found_sums, expected_sums, lanes * sizeof *found_sums);
    lanes = (m->columns + 15) / 16 * 16;
    words = (m->rows + 3) / 4;
    memset(found, 0x5A, sizeof found);
    scalar()->pack_columns(m, lanes, expected, expected_sums);
    k->pack_columns(m, lanes, found, found_sums);
    assert_memory_equal(found, expected, words * lanes * sizeof *found);
    assert_memory_equal(found_sums, expected_sums, lanes * sizeof *found_sums);
    memset(found, 0x5A, sizeof found);
    k->pack_columns(m, lanes, found, NULL);
    assert_memory_equal(found, expected, words * lanes * sizeof *found);
    scalar()->sum_rows(m, expected_sums);
    k->sum_rows(m, found_sums);
    assert_memory_equal(found_sums, expected_sums, m->rows * sizeof *found_sums);
}

static void rows_and_columns_are_added(void **state) {
    (void)state;
    const uint8_t x[] = {1, 200, 3, 255, 128, 127};
    const quantized_matrix plain = {x, 3, 2, 3, 0}, flipped = {x, 3, 2, 3, 0x80};
    uint32_t w[16];
    int32_t sums[16];
    for (size_t k = 0; k < tare__attention_kernel_count; k++) {
        const attention_kernels *level = &tare__attention_kernels[k];
        if (!tare__kernel_suits(&level->needs, tare__isa_detect())) continue;
        level->sum_rows(&plain, sums);
        assert_int_equal(sums[0], 1 - 56 + 3);
        assert_int_equal(sums[1], -1 - 128 + 127);
        level->sum_rows(&flipped, sums);
        assert_int_equal(sums[0], 1 + 200 + 3 - 3 * 128);
        level->pack_columns(&flipped, 16, w, sums);
        assert_int_equal(sums[2], 3 + 127 - 2 * 128);
        assert_int_equal(sums[3], 0);
        level->pack_columns(&plain, 16, w, sums);
        assert_int_equal(sums[1], -56 - 128);
    }
}

static void every_level_packs_alike(void **state) {
    (void)state;
    uint8_t quantized[MOST * MOST];
    for (size_t i = 0; i < sizeof quantized; i++) quantized[i] = (uint8_t)(draw() >> 8);
    for (size_t k = 0; k + 1 < tare__attention_kernel_count; k++) {
        if (!tare__kernel_suits(&tare__attention_kernels[k].needs, tare__isa_detect())) continue;
        for (size_t rows = 1; rows <= MOST; rows += rows < 20 ? 1 : 7)
            for (size_t columns = 1; columns <= MOST; columns += columns < 20 ? 1 : 9)
                for (int flip = 0; flip < 2; flip++) {
                    const quantized_matrix m = {quantized, MOST, rows, columns, flip ? 0x80 : 0};
                    check_packing(&tare__attention_kernels[k], &m);
                }
    }
}

// Rows so far apart that offsets of sixteen do not fit an int32.
static void rows_far_apart_are_packed(void **state) {
    (void)state;
    enum { STEP = 160 << 20, COLUMNS = 6 };
    uint8_t *quantized = calloc(1, STEP + COLUMNS); // of which two pages are touched
    assert_non_null(quantized);
    for (size_t i = 0; i < COLUMNS; i++) {
        quantized[i] = (uint8_t)(i + 1);
        quantized[STEP + i] = (uint8_t)(200 - i);
    }
    for (size_t k = 0; k + 1 < tare__attention_kernel_count; k++)
        if (tare__kernel_suits(&tare__attention_kernels[k].needs, tare__isa_detect()))
            check_packing(&tare__attention_kernels[k],
                          &(quantized_matrix){quantized, STEP, 2, COLUMNS, 0x80});
    free(quantized);
}

static void fill_scores(float *x, size_t count, size_t kind) {
    static const float ranges[] = {1, 8, 60, 1e30F};
    for (size_t i = 0; i < count; i++)
        x[i] = ((float)(draw() >> 7) / 8388608.0F - 1) * ranges[kind % 4];
    if (kind >= 4) x[draw() % count] = -INFINITY;
    if (kind >= 8) x[draw() % count] = NAN;
    for (size_t i = 0; kind >= 12 && i < count; i++) x[i] = kind % 2 != 0 ? -INFINITY : NAN;
    if (kind == 14) x[draw() % count] = INFINITY;
}

static void every_level_weighs_alike(void **state) {
    (void)state;
    for (size_t k = 0; k + 1 < tare__attention_kernel_count; k++) {
        const attention_kernels *level = &tare__attention_kernels[k];
        if (!tare__kernel_suits(&level->needs, tare__isa_detect())) continue;
        for (size_t count = 1; count <= MOST_SCORES; count++)
            for (size_t kind = 0; kind < 15; kind++) {
                float x[MOST_SCORES], y[MOST_SCORES + 1], z[MOST_SCORES + 1];
                uint8_t expected[MOST_SCORES + 1] = {0}, found[MOST_SCORES + 1] = {0};
                fill_scores(x, count, kind);
                assert_int_equal(level->weigh(x, count, found),
                                 scalar()->weigh(x, count, expected));
                assert_memory_equal(found, expected, sizeof found);
                memcpy(y, x, count * sizeof *x);
                y[count] = 1;
                memcpy(z, y, sizeof z);
                level->scale(0.37F, -1.25F, count, y);
                scalar()->scale(0.37F, -1.25F, count, z);
                assert_memory_equal(y, z, (count + 1) * sizeof *y);
            }
    }
}

static void weights_are_rounded_powers_of_two(void **state) {
    (void)state;
    assert_int_equal(tare__exp2_quantized(0), 255);
    assert_int_equal(tare__exp2_quantized(NAN), 0);
    assert_int_equal(tare__exp2_quantized(-INFINITY), 0);
    for (int i = 0; i <= 12000; i++) {
        const float d = -(float)i / 1000;
        const double exact = 255 * exp2((double)d);
        assert_true(fabs(tare__exp2_quantized(d) - exact) <= 0.5011);
    }
}

// --- sessions ---

typedef struct attention_case {
    int64_t heads, queries, keys, width, value_width;
    const char *dtype, *rest;
    bool swaps, quantizes;
} attention_case;

static tare_model *model_of_case(const attention_case *c) {
    char code[2048], end[256] = "    return (y, y)\n";
    const char *view = c->swaps ? ".transpose(1, 2)" : ".clone()";
    if (c->quantizes)
        (void)snprintf(end, sizeof end,
                       "    r = torch.quantize_per_tensor(y, 0.01, 3, torch.%s)\n"
                       "    s = r.transpose(1, 2)\n"
                       "    d = s.dequantize()\n"
                       "    return (d, d)\n",
                       c->dtype);
    (void)snprintf(code, sizeof code,
                   "def forward(self, q, k, v, mask):\n"
                   "    cq = torch.quantize_per_tensor(q, 0.02, 7, torch.%s)\n"
                   "    ck = torch.quantize_per_tensor(k, 0.015, 0, torch.%s)\n"
                   "    cv = torch.quantize_per_tensor(v, 0.017, 11, torch.%s)\n"
                   "    hq = cq%s\n    hk = ck%s\n    hv = cv%s\n"
                   "    y = torch.ops.tare.scaled_dot_product_attention(hq, hk, hv%s)\n%s",
                   c->dtype, c->dtype, c->dtype, view, view, view, c->rest, end);
    return new_model(NULL, new_tree(), code);
}

// A step with the product's kernel, no call of the reference.
static void check_is_planned(const tare_session *s) {
    tare_step step = {.struct_size = sizeof step};
    size_t i = 0;
    while (tare_session_get_step(s, i, &step) && strstr(step.why, "weights in bytes") == NULL) i++;
    assert_true(i < tare_session_step_count(s));
}

static tare_tensor *run(const tare_model *m, const tare_tensor *const *inputs, bool reference,
                        int threads) {
    const tare_session_options options = {.reference = reference, .thread_count = threads};
    tare_session *s = NULL;
    tare_tensor *y[2] = {0};
    size_t count = 0;
    CHECK_DONE(tare_session_create(m, &options, &s, job_error()));
    CHECK_DONE(tare_session_run(s, inputs, 4, y, 2, &count, job_error()));
    if (!reference) check_is_planned(s);
    tare_session_destroy(s);
    tare_tensor_release(y[1]);
    return y[0];
}

static tare_tensor *operand(const attention_case *c, int64_t rows, int64_t columns) {
    const int64_t plain[] = {2, c->heads, rows, columns}, swapped[] = {2, rows, c->heads, columns};
    return new_input(4, c->swaps ? swapped : plain);
}

static void check_case(const attention_case *c) {
    tare_model *m = model_of_case(c);
    const int64_t mask_shape[] = {c->queries, c->keys};
    tare_tensor *mask = new_input(2, mask_shape);
    for (int64_t i = 0; i < c->keys; i++) // one query sees nothing
        tare__f32(mask)[i] = -INFINITY;
    tare_tensor *own[] = {operand(c, c->queries, c->width), operand(c, c->keys, c->width),
                          operand(c, c->keys, c->value_width), mask};
    const tare_tensor *inputs[] = {own[0], own[1], own[2], own[3]};
    tare_tensor *expected = run(m, inputs, true, 1);
    for (int isa = 0; isa <= (int)tare__isa_detect(); isa++) {
        assert_int_equal(setenv("TARE_ISA", tare__isa_level_name((isa_level)isa), 1), 0);
        tare_tensor *found = run(m, inputs, false, 1 + isa % 2);
        check_same_tensor(found, expected);
        tare_tensor_release(found);
    }
    assert_int_equal(unsetenv("TARE_ISA"), 0);
    tare_tensor_release(expected);
    for (size_t i = 0; i < 4; i++) tare_tensor_release(own[i]);
    tare_model_destroy(m);
}

static void sessions_give_the_references_bits(void **state) {
    (void)state;
    static const int64_t sizes[][4] = {{1, 1, 1, 1},     {5, 7, 3, 2},     {24, 64, 32, 32},
                                       {25, 65, 33, 17}, {13, 130, 8, 70}, {49, 31, 66, 129}};
    static const char *const rest[] = {"", ", is_causal=True", ", attn_mask=mask, scale=0.7"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t r = 0; r < 3; r++)
            for (int form = 0; form < 4; form++)
                check_case(&(attention_case){.heads = 3,
                                             .queries = sizes[i][0],
                                             .keys = sizes[i][1],
                                             .width = sizes[i][2],
                                             .value_width = sizes[i][3],
                                             .dtype = (i + r) % 2 != 0 ? "quint8" : "qint8",
                                             .rest = rest[r],
                                             .swaps = form % 2 != 0,
                                             .quantizes = form >= 2});
}

static void integers_give_what_floats_give(void **state) {
    (void)state;
    const int64_t shape[] = {1, 2, 40, 32};
    tare_model *m =
        new_model(NULL, new_tree(),
                  "def forward(self, q, k, v, mask):\n"
                  "    cq = torch.quantize_per_tensor(q, 0.02, 100, torch.quint8)\n"
                  "    ck = torch.quantize_per_tensor(k, 0.02, 120, torch.quint8)\n"
                  "    cv = torch.quantize_per_tensor(v, 0.02, 90, torch.quint8)\n"
                  "    y = torch.ops.tare.scaled_dot_product_attention(cq, ck, cv)\n"
                  "    fq = cq.dequantize()\n    fk = ck.dequantize()\n    fv = cv.dequantize()\n"
                  "    z = torch._C._nn.scaled_dot_product_attention(fq, fk, fv)\n"
                  "    d = y - z\n"
                  "    return (d, y)\n");
    tare_tensor *own[4];
    for (size_t i = 0; i < 4; i++) own[i] = new_input(4, shape);
    const tare_tensor *inputs[] = {own[0], own[1], own[2], own[3]};
    tare_tensor *difference = run(m, inputs, false, 1);
    for (int64_t i = 0; i < difference->count; i++) // weights are off by half of a 255th
        assert_true(fabs((double)tare__f32(difference)[i]) < 0.004);
    tare_tensor_release(difference);
    for (size_t i = 0; i < 4; i++) tare_tensor_release(own[i]);
    tare_model_destroy(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_level_packs_alike),
        cmocka_unit_test(rows_and_columns_are_added),
        cmocka_unit_test(rows_far_apart_are_packed),
        cmocka_unit_test(every_level_weighs_alike),
        cmocka_unit_test(weights_are_rounded_powers_of_two),
        cmocka_unit_test(sessions_give_the_references_bits),
        cmocka_unit_test(integers_give_what_floats_give),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
