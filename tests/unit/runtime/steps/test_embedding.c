// SPDX-License-Identifier: Apache-2.0
// Rows of tables of floats, of 8-bit and of 4-bit quantized values, and bags of them: a session's
// kernels give the bits of the operator's reference, for every remainder of the vectors and any
// number of threads, and refuse the same indices and offsets.
#include "support/test.h"

#include <string.h>

#include "core/tensor/tensor.h"
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
    const uint32_t quantized = dtype == TARE_QUINT4X2 ? 16 : 256;
    for (int64_t i = 0; i < table->count; i++)
        ((uint8_t *)table->data)[i] = (uint8_t)(next(state) % quantized);
    return table;
}

// class: "Embedding" or "EmbeddingBag", which has more to be told.
static tare_model *model_with(const char *class, const char *more, const char *code,
                              tare_dtype dtype, int64_t width, uint64_t *state) {
    char config[160], name[64];
    module *root = new_tree();
    tare_tensor *table = table_of(dtype, width, state);
    (void)snprintf(config, sizeof config, "num_embeddings=%d, embedding_dim=%d%s", ROWS, (int)width,
                   more);
    (void)snprintf(name, sizeof name, "torch.%snn.%s%s", dtype == TARE_FLOAT32 ? "" : "ao.",
                   dtype == TARE_FLOAT32 ? "" : "quantized.", class);
    module *m = put_module(root, NULL, "rows", name, config);
    CHECK_OK(tare__module_set_tensor(m, "weight", table, false, NULL));
    tare_tensor_release(table);
    return new_model(NULL, root, code);
}

static tare_model *model_of(tare_dtype dtype, int64_t width, uint64_t *state) {
    return model_with("Embedding", "",
                      "def forward(self, x):\n    rows = self.rows(x)\n    return rows\n", dtype,
                      width, state);
}

static tare_tensor *indices_of(tare_dtype dtype, int64_t count, uint64_t *state) {
    tare_tensor *x = NULL;
    CHECK_OK(tare_tensor_create(dtype, 1, &count, &x, NULL));
    for (int64_t i = 0; i < count; i++) tare__tensor_set_int(x, i, next(state) % ROWS);
    return x;
}

// The step's kind is that of a plan's first and only one.
typedef struct inputs {
    const char *kind;
    const tare_tensor *items[3];
    size_t count;
} inputs;

static tare_status run(tare_model *model, bool reference, int threads, const inputs *in,
                       tare_tensor **y, tare_error *err) {
    tare_session *s = NULL;
    size_t count = 0;
    const tare_session_options options = {.thread_count = threads, .reference = reference};
    CHECK_OK(tare_session_create(model, &options, &s, NULL));
    const tare_status status = tare_session_run(s, in->items, in->count, y, 1, &count, err);
    tare_step step = {.struct_size = sizeof step};
    if (tare_session_get_step(s, 0, &step)) assert_string_equal(step.kind, in->kind);
    assert_int_equal(tare_session_step_count(s), reference ? 0 : 1);
    tare_session_destroy(s);
    return status;
}

static void check_equal_of(tare_model *model, int threads, const inputs *in) {
    tare_tensor *found = NULL, *expected = NULL;
    CHECK_OK(run(model, true, 1, in, &expected, NULL));
    CHECK_OK(run(model, false, threads, in, &found, NULL));
    assert_int_equal(found->count, expected->count);
    assert_memory_equal(found->data, expected->data, tare__tensor_bytes(expected));
    tare_tensor_release(found);
    tare_tensor_release(expected);
}

static void check_equal(tare_model *model, int threads, const tare_tensor *x) {
    check_equal_of(model, threads, &(inputs){"embedding", {x}, 1});
}

static void check_refused_alike(tare_model *model, const inputs *in) {
    tare_error *found = tare_error_create(), *expected = tare_error_create();
    tare_tensor *y = NULL;
    assert_int_equal(run(model, true, 1, in, &y, expected), TARE_INVALID_ARGUMENT);
    assert_int_equal(run(model, false, 2, in, &y, found), TARE_INVALID_ARGUMENT);
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
        check_refused_alike(model, &(inputs){"embedding", {x}, 1});
        tare_tensor_release(x);
        tare_model_destroy(model);
    }
}

// --- bags ---

#define BAGS_INTEGER "def forward(self, x, at):\n    bags = self.rows(x, at)\n    return bags\n"
#define WEIGHTED_INTEGER                                                                           \
    "def forward(self, x, at, share):\n    bags = self.rows(x, at, share)\n    return bags\n"

// Bags of 0 to 3 indices; the last one has what is left.
static tare_tensor *offsets_of(int64_t count, int64_t indices, uint64_t *state) {
    tare_tensor *x = NULL;
    CHECK_OK(tare_tensor_create(TARE_INT64, 1, &count, &x, NULL));
    for (int64_t i = 0, at = 0; i < count; i++) {
        tare__tensor_set_int(x, i, at);
        at += next(state) % 4;
        at = at < indices ? at : indices;
    }
    return x;
}

static void check_bags(tare_dtype dtype, int64_t width, int64_t bags, int threads,
                       uint64_t *state) {
    static const char *const modes[] = {"sum", "mean", "max"};
    const int64_t count = 2 * bags;
    for (size_t mode = 0; mode < 3; mode++)
        for (int padded = 0; padded < 2; padded++) {
            char more[64];
            (void)snprintf(more, sizeof more, ", mode='%s'%s", modes[mode],
                           padded ? ", padding_idx=3" : "");
            tare_model *model = model_with("EmbeddingBag", more, BAGS_INTEGER, dtype, width, state);
            tare_tensor *x = indices_of(TARE_INT64, count, state);
            tare_tensor *at = offsets_of(bags, count, state);
            check_equal_of(model, threads, &(inputs){"embedding bag", {x, at}, 2});
            tare_tensor_release(x);
            tare_tensor_release(at);
            tare_model_destroy(model);
        }
}

static void bags_have_the_references_bits(void **state) {
    static const int64_t wide[] = {1, 7, 33, 255, 256, 300};
    uint64_t seed = 6;
    (void)state;
    for (size_t t = 0; t < 3; t++) {
        for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
            check_bags(tables[t], wide[i], 1 + (int64_t)i * 3, 1, &seed);
        check_bags(tables[t], WIDEST, 700, 2, &seed);
    }
}

static void rows_of_a_bag_have_shares(void **state) {
    uint64_t seed = 7;
    (void)state;
    for (size_t t = 0; t < 3; t++) {
        tare_model *model =
            model_with("EmbeddingBag", ", mode='sum'", WEIGHTED_INTEGER, tables[t], WIDEST, &seed);
        tare_tensor *x = indices_of(TARE_INT64, 40, &seed), *at = offsets_of(17, 40, &seed);
        tare_tensor *share = NEW_INPUT(40);
        check_equal_of(model, 1, &(inputs){"embedding bag", {x, at, share}, 3});
        tare_tensor_release(x);
        tare_tensor_release(at);
        tare_tensor_release(share);
        tare_model_destroy(model);
    }
}

static void bags_of_equal_length_need_no_offsets(void **state) {
    static const int64_t shape[] = {6, 5};
    uint64_t seed = 8;
    tare_tensor *x = NULL;
    (void)state;
    tare_model *model =
        model_with("EmbeddingBag", ", mode='mean'",
                   "def forward(self, x):\n    bags = self.rows(x)\n    return bags\n", TARE_QUINT8,
                   WIDEST, &seed);
    CHECK_OK(tare_tensor_create(TARE_INT32, 2, shape, &x, NULL));
    for (int64_t i = 0; i < x->count; i++) tare__tensor_set_int(x, i, next(&seed) % ROWS);
    check_equal_of(model, 1, &(inputs){"embedding bag", {x}, 1});
    tare_tensor_release(x);
    tare_model_destroy(model);
}

static void bags_are_refused_alike(void **state) {
    // Which tensor is spoilt, where, and how.
    static const struct {
        int input;
        int64_t at, value;
    } faults[] = {{0, 11, ROWS}, {0, 0, -1}, {1, 2, 9}, {1, 0, -1}, {1, 3, 13}};
    uint64_t seed = 9;
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        tare_model *model = model_with("EmbeddingBag", ", mode='sum', padding_idx=0", BAGS_INTEGER,
                                       tables[i % 3], 9, &seed);
        tare_tensor *x = indices_of(TARE_INT64, 12, &seed), *at = NULL;
        CHECK_OK(tare_tensor_create(TARE_INT64, 1, &(int64_t){4}, &at, NULL));
        for (int64_t k = 0; k < 4; k++) tare__tensor_set_int(at, k, 2 * k);
        tare__tensor_set_int(faults[i].input == 0 ? x : at, faults[i].at, faults[i].value);
        check_refused_alike(model, &(inputs){"embedding bag", {x, at}, 2});
        tare_tensor_release(x);
        tare_tensor_release(at);
        tare_model_destroy(model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_have_the_references_bits),
        cmocka_unit_test(threads_share_many_rows),
        cmocka_unit_test(indices_outside_are_refused_alike),
        cmocka_unit_test(bags_have_the_references_bits),
        cmocka_unit_test(rows_of_a_bag_have_shares),
        cmocka_unit_test(bags_of_equal_length_need_no_offsets),
        cmocka_unit_test(bags_are_refused_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
