// SPDX-License-Identifier: Apache-2.0
// Tuners: whatever they choose, results are the same; what they keep comes back; what is no such
// file is refused.
#include "support/test.h"

#include "core/system/file.h"
#include "core/tensor/tensor.h"
#include "runtime/kernels/isa.h"
#include "support/models.h"
#include "support/temp.h"
#include "support/tuning.h"
#include "tare/session.h"

// --- layers ---

typedef struct shape {
    const char *config; // of the convolution, behind its channels
    int ins, outs, height, width;
    bool adds; // its input to its result
} shape;

static const shape shapes[] = {
    {"kernel_size=1", 16, 64, 7, 9, false},
    {"kernel_size=1", 5, 7, 6, 6, false},
    {"kernel_size=3, padding=1", 16, 16, 7, 7, true},
    {"kernel_size=3, padding=1", 64, 70, 14, 13, false},
    {"kernel_size=3, stride=2, padding=1", 12, 33, 15, 11, false},
    {"kernel_size=(1, 5), padding=(0, 2)", 8, 20, 5, 12, false},
    {"kernel_size=3, dilation=2, padding=2", 8, 24, 11, 10, false},
    {"kernel_size=(5, 3), stride=(1, 2)", 3, 130, 12, 9, false},
    {"kernel_size=7, stride=2, padding=3", 3, 64, 56, 56, false},
    {"kernel_size=3, padding=1", 32, 32, 40, 40, true},
};
enum { SHAPES = sizeof shapes / sizeof *shapes, BATCH = 3 };

static tare_tensor *positive_input(const shape *s) {
    const int64_t sizes[] = {BATCH, s->ins, s->height, s->width};
    tare_tensor *x = new_input(4, sizes);
    for (int64_t i = 0; i < x->count; i++) // a zero point of 0, as behind a ReLU
        if (tare__f32(x)[i] < 0) tare__f32(x)[i] = 0;
    return x;
}

static tare_model *layer_of(const shape *s, const char *engine, const tare_tensor *x) {
    char config[160];
    snprintf(config, sizeof config, "in_channels=%d, out_channels=%d, %s", s->ins, s->outs,
             s->config);
    module *root = new_tree();
    put_module(root, NULL, "conv", "torch.nn.Conv2d", config);
    tare_model *model =
        new_model(NULL, root,
                  s->adds ? "def forward(self, x):\n"
                            "    conv = self.conv(x)\n"
                            "    add = conv + x;  conv = x = None\n"
                            "    relu = torch.nn.functional.relu(add);  add = None\n"
                            "    return relu\n"
                          : "def forward(self, x):\n"
                            "    conv = self.conv(x);  x = None\n"
                            "    relu = torch.nn.functional.relu(conv);  conv = None\n"
                            "    return relu\n");
    tare_backend_config *backend = builtin_backend(engine);
    tare_qconfig_mapping *mapping = default_mapping(engine);
    tare_model *p = prepared(model, backend, mapping);
    CHECK_DONE(tare_calibrate(p, &x, 1, job_error()));
    tare_model *out = lowered(p, backend);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    return out;
}

// --- runs ---

static tare_session *session_of(const tare_model *m, int threads, const char *cache) {
    tare_session *s = NULL;
    const tare_session_options options = {
        .struct_size = sizeof options, .thread_count = threads, .tune_cache = cache};
    CHECK_DONE(tare_session_create(m, &options, &s, job_error()));
    return s;
}

static bool uses_library(const tare_session *s) {
    tare_step step;
    for (size_t i = 0; tare_session_get_step(s, i, &step); i++)
        if (strstr(step.kernel, "oneDNN, ") != NULL) return true;
    return false;
}

// The result with what a cache says, and whether a library computed sums.
static tare_tensor *run(const tare_model *m, const tare_tensor *x, int threads, const char *cache,
                        bool *library) {
    tare_tensor *y = NULL;
    size_t count = 0;
    tare_session *s = session_of(m, threads, cache);
    CHECK_DONE(tare_session_run(s, &x, 1, &y, 1, &count, job_error()));
    *library = uses_library(s);
    tare_session_destroy(s);
    return y;
}

static void check_same(const tare_model *m, const tare_tensor *x, int threads, const char *cache,
                       const tare_tensor *expected, bool *library) {
    tare_tensor *found = run(m, x, threads, cache, library);
    check_same_tensor(expected, found);
    tare_tensor_release(found);
}

static bool has_choices(void) {
    const char *isa = tare_isa_name();
    return (strcmp(isa, "avx512vnni") == 0 || strcmp(isa, "amxint8") == 0) &&
           strncmp(tare_build_features(), "no oneDNN", 9) != 0;
}

// --- tests ---

static void every_choice_gives_the_same_bits(void **state) {
    static const char *const engines[] = {"x86", "onednn", "qnnpack"};
    size_t library_count = 0;
    (void)state;
    for (size_t i = 0; i < SHAPES * 3; i++) {
        const char *path = temp_path("tune.json");
        const int threads = 1 + (int)(i % 3);
        bool first, other, unused;
        tare_tensor *x = positive_input(&shapes[i / 3]);
        tare_model *m = layer_of(&shapes[i / 3], engines[i % 3], x);
        tare_tensor *expected = result_of(m, (const tare_tensor *const *)&x, 1);
        (void)remove(path);
        check_same(m, x, threads, NULL, expected, &unused);
        check_same(m, x, threads, path, expected, &first);
        check_same(m, x, threads, path, expected, &other); // as the file says
        assert_int_equal(first, other);
        if (oppose_choices(path) > 0) {
            check_same(m, x, threads, path, expected, &other);
            assert_int_equal(first, !other);
            library_count++;
        }
        tare_tensor_release(expected);
        tare_tensor_release(x);
        tare_model_destroy(m);
    }
    // Nearly all of them have a choice where there is one.
    assert_int_equal(library_count > SHAPES * 2, has_choices());
}

static void check_file(const char *json, tare_status status, const char *words) {
    const shape *s = &shapes[0];
    const char *path = temp_path("tune.json");
    const tare_session_options options = {.struct_size = sizeof options, .tune_cache = path};
    tare_session *session = NULL;
    tare_tensor *x = positive_input(s);
    tare_model *m = layer_of(s, "x86", x);
    temp_write(path, json, strlen(json));
    if (status == TARE_OK)
        CHECK_DONE(tare_session_create(m, &options, &session, job_error()));
    else
        CHECK_REFUSED(tare_session_create(m, &options, &session, job_error()), status, words);
    tare_session_destroy(session);
    tare_model_destroy(m);
    tare_tensor_release(x);
}

#define LAYERS(layers) "{\"format\": \"tare-tune-1\", \"layers\": [" layers "]}"
#define LAYER(key, kernel, ns)                                                                     \
    "{\"key\": \"" key "\", \"kernel\": \"" kernel "\", \"product_ns\": " ns ", \"library_ns\": "  \
    "1}"

static void other_files_are_refused(void **state) {
    (void)state;
    check_file(LAYERS(""), TARE_OK, "");
    check_file(LAYERS(LAYER("any", "library", "7")), TARE_OK, "");
    check_file("", TARE_MALFORMED_FILE, "");
    check_file("[]", TARE_MALFORMED_FILE, "an object");
    check_file("{\"format\": \"tare-tune-2\", \"layers\": []}", TARE_MALFORMED_FILE, "tare-tune-1");
    check_file("{\"format\": \"tare-tune-1\", \"layer\": []}", TARE_MALFORMED_FILE, "layers");
    check_file(LAYERS("3"), TARE_MALFORMED_FILE, "$.layers[0]");
    check_file(LAYERS(LAYER("a", "abacus", "7")), TARE_MALFORMED_FILE, "abacus");
    check_file(LAYERS(LAYER("a", "product", "-7")), TARE_MALFORMED_FILE, "nanoseconds");
    check_file(LAYERS(LAYER("a", "product", "\"7\"")), TARE_MALFORMED_FILE, "product_ns");
    check_file(LAYERS(LAYER("a", "product", "7") ", " LAYER("a", "library", "7")),
               TARE_MALFORMED_FILE, "twice");
}

static void a_folder_that_is_not_there_is_said(void **state) {
    const shape *s = &shapes[2];
    tare_tensor *x = positive_input(s), *y = NULL;
    size_t count = 0;
    (void)state;
    tare_model *m = layer_of(s, "x86", x);
    tare_session *session = session_of(m, 1, "/nowhere/at/all/tune.json");
    const tare_tensor *inputs = x;
    const tare_status status = tare_session_run(session, &inputs, 1, &y, 1, &count, job_error());
    // Where there is nothing to choose there is nothing to write.
    assert_true(status == TARE_OK || status == TARE_IO);
    assert_int_equal(status == TARE_IO, has_choices());
    tare_tensor_release(y);
    tare_session_destroy(session);
    tare_model_destroy(m);
    tare_tensor_release(x);
}

static bool names_batch(const char *path, int batch) {
    char start[48];
    size_t size = 0;
    if (!tare__file_exists(path)) return false;
    const int length = snprintf(start, sizeof start, "threads|%dx", batch);
    unsigned char *json = temp_read(path, &size);
    bool found = false;
    for (size_t i = 0; i + (size_t)length <= size && !found; i++)
        found = memcmp(json + i, start, (size_t)length) == 0;
    free(json);
    return found;
}

// What runs sample by sample is timed for one sample, and for no batch.
static void a_batch_is_tuned_as_it_runs(void **state) {
    static const shape large = {
        "kernel_size=3, padding=1", 64, 256, 112, 112, false,
    };
    const char *path = temp_path("tune.json");
    bool unused;
    (void)state;
    tare_tensor *x = positive_input(&large);
    tare_model *m = layer_of(&large, "x86", x);
    tare_tensor *expected = run(m, x, 1, NULL, &unused);
    for (int threads = 1; threads <= 3; threads++) {
        (void)remove(path);
        check_same(m, x, threads, path, expected, &unused);
        assert_false(names_batch(path, BATCH));
        assert_int_equal(names_batch(path, 1), has_choices());
        if (oppose_choices(path) > 0) check_same(m, x, threads, path, expected, &unused);
    }
    tare_tensor_release(expected);
    tare_tensor_release(x);
    tare_model_destroy(m);
}

// Graphs of control flow have plans of their own, which are made while the model runs.
static void times_of_graphs_inside_are_stored(void **state) {
    const shape *of = &shapes[2];
    const char *path = temp_path("tune.json");
    const int64_t sizes[] = {1, BATCH, of->ins, of->height, of->width};
    bool unused;
    (void)state;
    tare_tensor *x = positive_input(of), *xs = new_input(5, sizes);
    tare_model *layer = layer_of(of, "x86", x);
    module *root = new_tree();
    CHECK_DONE(tare__module_set_child(root, "body", layer->root, job_error()));
    tare_model *m = new_model(NULL, root,
                              "def forward(self, xs):\n    body = self.body\n"
                              "    r = torch.ops.higher_order.map_impl(body, [xs], [])\n"
                              "    i = r[0]\n    return i\n");
    tare_tensor *expected = run(m, xs, 1, NULL, &unused);
    (void)remove(path);
    check_same(m, xs, 1, path, expected, &unused);
    assert_int_equal(tare__file_exists(path), has_choices());
    if (oppose_choices(path) > 0) check_same(m, xs, 1, path, expected, &unused);
    tare_tensor_release(expected);
    tare_tensor_release(xs);
    tare_tensor_release(x);
    tare_model_destroy(m);
    tare_model_destroy(layer);
}

static tare_status run_tuned(const tare_model *m, const tare_tensor *x, const char *path) {
    tare_session *s = NULL;
    tare_tensor *y = NULL;
    size_t count = 0;
    const tare_session_options options = {.struct_size = sizeof options, .tune_cache = path};
    tare_status status = tare_session_create(m, &options, &s, NULL);
    if (status == TARE_OK) status = tare_session_run(s, &x, 1, &y, 1, &count, NULL);
    tare_tensor_release(y);
    tare_session_destroy(s);
    return status;
}

static void memory_may_be_short(void **state) {
    const char *path = temp_path("tune.json");
    tare_tensor *x = positive_input(&shapes[2]);
    tare_model *m = layer_of(&shapes[2], "x86", x);
    tare_status status;
    (void)state;
    EVERY_ALLOCATION_FAILS(
        status,
        {
            (void)remove(path);
            status = run_tuned(m, x, path);
        },
        (void)0);
    tare_model_destroy(m);
    tare_tensor_release(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_choice_gives_the_same_bits),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(a_folder_that_is_not_there_is_said),
        cmocka_unit_test(a_batch_is_tuned_as_it_runs),
        cmocka_unit_test(times_of_graphs_inside_are_stored),
        cmocka_unit_test(memory_may_be_short),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
