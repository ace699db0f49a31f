// SPDX-License-Identifier: Apache-2.0
// Data for a model: what the graph tells of its inputs.
#include "core/tensor/tensor.h"
#include "model/model.h"
#include "support/models.h"
#include "support/test.h"
#include "tare/data.h"

static tare_batch first_batch(const tare_model *m, const char *spec, tare_data **data) {
    tare_batch batch = {0};
    bool done = false;
    CHECK_DONE(tare_data_open(spec, m, NULL, data, job_error()));
    CHECK_DONE(tare_data_next(*data, &batch, &done, job_error()));
    assert_false(done);
    return batch;
}

static void random_integers_lie_below_the_rows_of_their_embedding(void **state) {
    (void)state;
    module *root = new_tree();
    put_module(root, NULL, "words", "torch.nn.Embedding", "num_embeddings=11, embedding_dim=4");
    put_module(root, NULL, "kinds", "torch.nn.Embedding", "num_embeddings=3, embedding_dim=4");
    tare_model *m = new_model(NULL, root,
                              "def forward(self, ids, more, rest):\n"
                              "    reshape = torch.reshape(ids, (-1, 5))\n"
                              "    words = self.words(reshape)\n"
                              "    kinds = self.kinds(more)\n"
                              "    words_1 = self.words(more)\n"
                              "    add = words + kinds\n"
                              "    add_1 = add + words_1\n"
                              "    mul = add_1 * rest\n"
                              "    return mul\n");
    tare_data *data = NULL;
    const tare_batch batch = first_batch(m, "random:40:1:5,5,5x4", &data);
    static const int64_t bounds[] = {11, 3};
    for (size_t k = 0; k < 2; k++) {
        const tare_tensor *t = batch.inputs[k];
        int64_t greatest = 0;
        assert_int_equal(tare_tensor_dtype(t), TARE_INT64);
        for (int64_t i = 0; i < t->count; i++) {
            const int64_t x = tare__tensor_get_int(t, i);
            assert_true(x >= 0 && x < bounds[k]);
            if (x > greatest) greatest = x;
        }
        assert_int_equal(greatest, bounds[k] - 1);
    }
    assert_int_equal(tare_tensor_dtype(batch.inputs[2]), TARE_FLOAT32);
    tare_data_close(data);
    tare_model_destroy(m);
}

// Sizes of the exporter's example, or of earlier dimensions with the same name, or usual ones.
static void random_data_choose_sizes_of_open_dimensions(void **state) {
    (void)state;
    static const struct {
        const char *meta;
        int ndim;
        int64_t shape[4];
    } inputs[] = {
        {"{\"val\": {\"shape\": [null, null], \"dtype\": \"torch.float32\"}, \"tensor\": "
         "{\"sizes\": "
         "[{\"as_int\": 1}, {\"as_expr\": {\"expr_str\": \"s27\", \"hint\": {\"as_int\": 12}}}]}}",
         2,
         {3, 12}},
        {"{\"val\": {\"shape\": [\"b\", \"n\", 5], \"dtype\": \"torch.float32\"}}", 3, {3, 32, 5}},
        {"{\"val\": {\"shape\": [\"b\", 1, \"n\", \"h\"], \"dtype\": \"torch.float32\"}}",
         4,
         {3, 1, 32, 224}},
        {"{\"val\": {\"shape\": [\"b\", 3, \"h\", null], \"dtype\": \"torch.float32\"}}",
         4,
         {3, 3, 224, 224}},
    };
    tare_model *m = new_model(NULL, new_tree(),
                              "def forward(self, a, b, c, d):\n"
                              "    return (a, b, c, d)\n");
    node *n = m->root->graph->first;
    for (size_t i = 0; i < 4; i++, n = n->next)
        n->meta_json = tare__arena_strdup(&m->root->graph->memory, inputs[i].meta);
    tare_data *data = NULL;
    const tare_batch batch = first_batch(m, "random:3", &data);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(batch.inputs[i]->ndim, inputs[i].ndim);
        for (int d = 0; d < inputs[i].ndim; d++)
            assert_int_equal(batch.inputs[i]->shape[d], inputs[i].shape[d]);
    }
    tare_data_close(data);
    tare_model_destroy(m);
}

// A size that is an expression of others must be given.
static void sizes_that_are_expressions_are_not_chosen(void **state) {
    (void)state;
    tare_model *m = new_model(NULL, new_tree(),
                              "def forward(self, a):\n"
                              "    return a\n");
    tare_data *data = NULL;
    m->root->graph->first->meta_json =
        tare__arena_strdup(&m->root->graph->memory, "{\"val\": {\"shape\": [\"b\", \"past + 1\"], "
                                                    "\"dtype\": \"torch.float32\"}}");
    assert_int_equal(tare_data_open("random:3", m, NULL, &data, job_error()),
                     TARE_INVALID_ARGUMENT);
    assert_non_null(strstr(tare_error_message(job_error()), "does not say the shape"));
    tare_model_destroy(m);
}

static void check_same_batch(tare_data *a, tare_data *b, bool *done) {
    tare_batch x = {0}, y = {0};
    bool x_done = false, y_done = false;
    CHECK_DONE(tare_data_next(a, &x, &x_done, job_error()));
    CHECK_DONE(tare_data_next(b, &y, &y_done, job_error()));
    assert_int_equal(x_done, y_done);
    *done = x_done;
    if (*done) return;
    assert_int_equal(x.size, y.size);
    for (size_t i = 0; i < x.input_count; i++) {
        const tare_tensor *t = x.inputs[i], *u = y.inputs[i];
        assert_int_equal(t->count, u->count);
        assert_memory_equal(t->data, u->data, tare__tensor_bytes(t));
    }
}

// After calibration has read some of it or all, in batches of its own.
static void data_turns_to_what_it_held_out(void **state) {
    (void)state;
    static const char *const specs[] = {"data/digits/train.npz", "random:40:3:1x8x8",
                                        "x=data/digits/train.npz"};
    tare_model *m = NULL;
    CHECK_DONE(tare_model_read("data/digits/digits.safetensors", NULL, &m, job_error()));
    for (size_t k = 0; k < sizeof specs / sizeof *specs; k++) {
        const tare_data_options shown = {.batch_size = 16, .hold_out = 5},
                                held = {.hold_out = 5, .is_held_out = true};
        tare_data *turned = NULL, *opened = NULL;
        tare_batch batch = {0};
        bool done = false;
        CHECK_DONE(tare_data_open(specs[k], m, &shown, &turned, job_error()));
        CHECK_DONE(tare_data_open(specs[k], m, &held, &opened, job_error()));
        CHECK_DONE(tare_data_next(turned, &batch, &done, job_error()));
        assert_int_equal(batch.size, 16);
        CHECK_DONE(tare_data_turn_to_held_out(turned, job_error()));
        assert_int_equal(tare_data_held_out_count(turned), 5);
        assert_int_equal(tare_data_sample_count(turned), tare_data_sample_count(opened));
        for (done = false; !done;) check_same_batch(turned, opened, &done);
        tare_data_close(turned);
        tare_data_close(opened);
    }
    const tare_data_options none = {.batch_size = 16};
    tare_data *data = NULL;
    CHECK_DONE(tare_data_open(specs[1], m, &none, &data, job_error()));
    assert_int_equal(tare_data_turn_to_held_out(data, NULL), TARE_INVALID_ARGUMENT);
    tare_data_close(data);
    tare_model_destroy(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_turns_to_what_it_held_out),
        cmocka_unit_test(random_integers_lie_below_the_rows_of_their_embedding),
        cmocka_unit_test(random_data_choose_sizes_of_open_dimensions),
        cmocka_unit_test(sizes_that_are_expressions_are_not_chosen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
