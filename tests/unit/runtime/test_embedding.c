// SPDX-License-Identifier: Apache-2.0
// Rows of tables of floats, of 8-bit and of 4-bit codes: a session's kernels give the bits of the
// operator's reference, for every remainder of the vectors and any number of threads, and refuse
// the same indices.
#include "support/test.h"

#include <string.h>

#include "core/tensor.h"
#include "ir/module.h"
#include "support/models.h"

enum { ROWS = 37, WIDEST = 70, MOST_INDICES = 1200 };

static uint32_t next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static tare_tensor *table_of(tare_dtype dtype, int64_t width, uint64_t *state) {
    const int64_t shape[] = {ROWS, width};
    double scale[ROWS], zero_point[ROWS];
    tare_tensor *table = NULL;
    if (dtype == TARE_FLOAT32) return new_input(2, shape);
    for (int i = 0; i < ROWS; i++) {
        scale[i] = i == 0 ? 1e-30 : (double)(1 + next(state) % 1000) / 3000;
        zero_point[i] = (double)(next(state) % 4000) / 17 - 20;
    }
    qparams *q = tare__qparams_create(TARE_PER_CHANNEL_AFFINE_FLOAT_QPARAMS, dtype, 0, ROWS, scale,
                                      zero_point);
    CHECK_OK(tare__tensor_quantized(2, shape, q, &table, NULL));
    tare__qparams_release(q);
    const uint32_t codes = dtype == TARE_QUINT4X2 ? 16 : 256;
    for (int64_t i = 0; i < table->count; i++)
        ((uint8_t *)table->data)[i] = (uint8_t)(next(state) % codes);
    return table;
}

static tare_model *model_of(tare_dtype dtype, int64_t width, uint64_t *state) {
    char config[96];
    module *root = new_tree();
    tare_tensor *table = table_of(dtype, width, state);
    const bool is_float = dtype == TARE_FLOAT32;
    (void)snprintf(config, sizeof config, "num_embeddings=%d, embedding_dim=%d", ROWS, (int)width);
    module *m =
        put_module(root, NULL, "rows",
                   is_float ? "torch.nn.Embedding" : "torch.ao.nn.quantized.Embedding", config);
    CHECK_OK(tare__module_set_tensor(m, "weight", table, false, NULL));
    tare_tensor_release(table);
    return new_model(NULL, root,
                     "def forward(self, x):\n    rows = self.rows(x)\n    return rows\n");
}

static tare_tensor *indices_of(tare_dtype dtype, int64_t count, uint64_t *state) {
    tare_tensor *x = NULL;
    CHECK_OK(tare_tensor_create(dtype, 1, &count, &x, NULL));
    for (int64_t i = 0; i < count; i++) tare__tensor_set_int(x, i, next(state) % ROWS);
    return x;
}

static tare_status run(tare_model *model, bool reference, int threads, const tare_tensor *x,
                       tare_tensor **y, tare_error *err) {
    tare_session *s = NULL;
    size_t count = 0;
    const tare_session_options options = {.thread_count = threads, .reference = reference};
    CHECK_OK(tare_session_create(model, &options, &s, NULL));
    const tare_status status = tare_session_run(s, &x, 1, y, 1, &count, err);
    tare_step step = {.struct_size = sizeof step};
    if (tare_session_get_step(s, 0, &step)) assert_string_equal(step.kind, "embedding");
    assert_int_equal(tare_session_step_count(s), reference ? 0 : 1);
    tare_session_destroy(s);
    return status;
}

static void check_equal(tare_model *model, int threads, const tare_tensor *x) {
    tare_tensor *found = NULL, *expected = NULL;
    CHECK_OK(run(model, true, 1, x, &expected, NULL));
    CHECK_OK(run(model, false, threads, x, &found, NULL));
    assert_int_equal(found->count, expected->count);
    assert_memory_equal(found->data, expected->data, tare__tensor_bytes(expected));
    tare_tensor_release(found);
    tare_tensor_release(expected);
}

static void check_refused_alike(tare_model *model, const tare_tensor *x) {
    tare_error *found = tare_error_create(), *expected = tare_error_create();
    tare_tensor *y = NULL;
    assert_int_equal(run(model, true, 1, x, &y, expected), TARE_INVALID_ARGUMENT);
    assert_int_equal(run(model, false, 2, x, &y, found), TARE_INVALID_ARGUMENT);
    assert_string_equal(tare_error_message(found), tare_error_message(expected));
    tare_error_destroy(found);
    tare_error_destroy(expected);
}

static const tare_dtype tables[] = {TARE_FLOAT32, TARE_QUINT8, TARE_QUINT4X2};

static void rows_have_the_references_bits(void **state) {
    uint64_t seed = 3;
    (void)state;
    for (size_t t = 0; t < 3; t++)
        for (int64_t width = 1; width <= WIDEST; width++) {
            tare_model *model = model_of(tables[t], width, &seed);
            tare_tensor *x = indices_of(width % 2 ? TARE_INT64 : TARE_INT32, 1 + width % 19, &seed);
            check_equal(model, 1, x);
            tare_tensor_release(x);
            tare_model_destroy(model);
        }
}

static void threads_share_many_rows(void **state) {
    uint64_t seed = 4;
    (void)state;
    for (size_t t = 0; t < 3; t++) {
        tare_model *model = model_of(tables[t], WIDEST, &seed);
        tare_tensor *x = indices_of(TARE_INT64, MOST_INDICES, &seed);
        check_equal(model, 2, x);
        tare_tensor_release(x);
        tare_model_destroy(model);
    }
}

static void indices_outside_are_refused_alike(void **state) {
    static const int64_t outside[] = {-1, ROWS, INT64_MAX, INT64_MIN};
    uint64_t seed = 5;
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        tare_model *model = model_of(tables[i % 3], 9, &seed);
        tare_tensor *x = indices_of(TARE_INT64, 12, &seed);
        ((int64_t *)x->data)[7] = outside[i];
        check_refused_alike(model, x);
        tare_tensor_release(x);
        tare_model_destroy(model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_have_the_references_bits),
        cmocka_unit_test(threads_share_many_rows),
        cmocka_unit_test(indices_outside_are_refused_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
