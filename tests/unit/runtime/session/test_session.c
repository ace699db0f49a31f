// SPDX-License-Identifier: Apache-2.0
// Sessions over the digits network: every level and engine gives the references' bits.
#include "support/test.h"

#include "core/memory/map.h"
#include "core/tensor/tensor.h"
#include "io/data/npz.h"
#include "runtime/kernels/isa.h"
#include "support/models.h"
#include "tare/quantize.h"
#include "tare/session.h"

typedef struct digits {
    tare_model *model;
    map images;
    tare_tensor *some; // a few of the images
} digits;

static int set_up(void **state) {
    static digits d;
    const int64_t shape[] = {5, 1, 8, 8};
    CHECK_OK(tare_model_read("data/digits/digits.safetensors", NULL, &d.model, NULL));
    CHECK_OK(tare__npz_read("data/digits/test.npz", 0, &d.images, NULL));
    const tare_tensor *all = tare__map_get(&d.images, "x");
    CHECK_OK(tare_tensor_from_data(TARE_FLOAT32, 4, shape, tare_tensor_data(all), &d.some, NULL));
    *state = &d;
    return 0;
}

static int tear_down(void **state) {
    digits *d = *state;
    tare_tensor_release(d->some);
    tare__tensor_map_release(&d->images);
    tare_model_destroy(d->model);
    return 0;
}

static tare_model *quantize(const digits *d, const char *engine) {
    tare_qconfig_mapping *mapping = NULL;
    tare_model *prepared = NULL, *quantized = NULL;
    const tare_tensor *images = tare__map_get(&d->images, "x");
    CHECK_OK(tare_qconfig_mapping_default(engine, false, -1, &mapping, NULL));
    const tare_prepare_options prepare = {.qconfig_mapping = mapping};
    CHECK_OK(tare_prepare_fx(d->model, &prepare, &prepared, NULL));
    CHECK_OK(tare_calibrate(prepared, &images, 1, NULL));
    const tare_convert_options convert = {.engine = tare_engine_from_name(engine)};
    CHECK_OK(tare_convert_fx(prepared, &convert, &quantized, NULL));
    tare_model_destroy(prepared);
    tare_qconfig_mapping_destroy(mapping);
    return quantized;
}

static tare_tensor *run_once(tare_session *s, const tare_tensor *x) {
    tare_tensor *y = NULL;
    size_t count = 0;
    CHECK_OK(tare_session_run(s, &x, 1, &y, 1, &count, NULL));
    assert_int_equal(count, 1);
    return y;
}

static tare_tensor *run_model(const tare_model *m, const tare_tensor *x, bool reference) {
    const tare_session_options options = {.reference = reference};
    tare_session *s = NULL;
    CHECK_OK(tare_session_create(m, &options, &s, NULL));
    tare_tensor *y = run_once(s, x), *again = run_once(s, x); // the second run finds packed weights
    assert_int_equal(y->count, again->count);
    assert_memory_equal(y->data, again->data, tare__tensor_bytes(y));
    tare_tensor_release(again);
    tare_session_destroy(s);
    return y;
}

static void check_engine(const digits *d, const char *engine) {
    tare_model *m = quantize(d, engine);
    tare_tensor *expected = run_model(m, d->some, true);
    for (int isa = 0; isa <= (int)tare__isa_detect(); isa++) {
        assert_int_equal(setenv("TARE_ISA", tare__isa_level_name((isa_level)isa), 1), 0);
        assert_string_equal(tare_isa_name(), tare__isa_level_name((isa_level)isa));
        tare_tensor *found = run_model(m, d->some, false);
        assert_int_equal(found->count, expected->count);
        assert_memory_equal(found->data, expected->data, tare__tensor_bytes(expected));
        tare_tensor_release(found);
    }
    assert_int_equal(unsetenv("TARE_ISA"), 0);
    tare_tensor_release(expected);
    tare_model_destroy(m);
}

static void every_level_gives_the_references_bits(void **state) {
    static const char *const engines[] = {"x86", "fbgemm", "onednn", "qnnpack"};
    for (size_t i = 0; i < sizeof engines / sizeof *engines; i++) check_engine(*state, engines[i]);
}

static tare_tensor *run_with_threads(const tare_model *m, const tare_tensor *x, int threads) {
    tare_session *s = NULL;
    const tare_session_options options = {.thread_count = threads};
    CHECK_OK(tare_session_create(m, &options, &s, NULL));
    tare_tensor *y = run_once(s, x);
    tare_session_destroy(s);
    return y;
}

static void every_number_of_threads_gives_the_same_bits(void **state) {
    const digits *d = *state;
    tare_model *m = quantize(d, "x86");
    const tare_tensor *all = tare__map_get(&d->images, "x");
    tare_tensor *expected = run_with_threads(m, all, 0);
    for (int threads = 1; threads <= 4; threads++) {
        tare_tensor *found = run_with_threads(m, all, threads);
        assert_int_equal(found->count, expected->count);
        assert_memory_equal(found->data, expected->data, tare__tensor_bytes(expected));
        tare_tensor_release(found);
    }
    tare_tensor_release(expected);
    tare_model_destroy(m);
}

static void an_unknown_level_names_the_valid_ones(void **state) {
    const digits *d = *state;
    tare_session *s = NULL;
    tare_error *err = tare_error_create();
    assert_int_equal(setenv("TARE_ISA", "mmx", 1), 0);
    assert_int_equal(tare_session_create(d->model, NULL, &s, err), TARE_INVALID_ARGUMENT);
    assert_null(s);
    assert_non_null(strstr(tare_error_message(err), "scalar"));
    assert_int_equal(unsetenv("TARE_ISA"), 0);
    tare_error_destroy(err);
}

static void an_unknown_float_library_names_the_valid_ones(void **state) {
    const digits *d = *state;
    const tare_session_options portable = {.struct_size = sizeof portable, .portable_floats = true};
    tare_session *s = NULL;
    tare_error *err = tare_error_create();
    assert_int_equal(setenv("TARE_FLOATS", "abacus", 1), 0);
    assert_int_equal(tare_session_create(d->model, NULL, &s, err), TARE_INVALID_ARGUMENT);
    assert_null(s);
    assert_non_null(strstr(tare_error_message(err), "portable"));
    CHECK_OK(tare_session_create(d->model, &portable, &s, err)); // asks for none
    assert_int_equal(unsetenv("TARE_FLOATS"), 0);
    tare_session_destroy(s);
    tare_error_destroy(err);
}

static tare_tensor *run_portably(const tare_model *m, const tare_tensor *x, int threads) {
    const tare_session_options options = {.thread_count = threads, .portable_floats = true};
    tare_session *s = NULL;
    CHECK_OK(tare_session_create(m, &options, &s, NULL));
    tare_tensor *y = run_once(s, x);
    tare_session_destroy(s);
    return y;
}

static void portable_floats_are_those_of_the_references(void **state) {
    const digits *d = *state;
    tare_tensor *expected = run_model(d->model, d->some, true);
    for (int threads = 1; threads <= 4; threads++) {
        tare_tensor *found = run_portably(d->model, d->some, threads);
        assert_int_equal(found->count, expected->count);
        assert_memory_equal(found->data, expected->data, tare__tensor_bytes(expected));
        tare_tensor_release(found);
    }
    assert_int_equal(setenv("TARE_FLOATS", "portable", 1), 0);
    tare_tensor *found = run_with_threads(d->model, d->some, 1);
    assert_int_equal(unsetenv("TARE_FLOATS"), 0);
    assert_memory_equal(found->data, expected->data, tare__tensor_bytes(expected));
    tare_tensor_release(found);
    tare_tensor_release(expected);
}

static void wrong_numbers_of_tensors_are_refused(void **state) {
    const digits *d = *state;
    tare_session *s = NULL;
    tare_tensor *y = NULL;
    size_t count = 0;
    const tare_tensor *two[] = {d->some, d->some};
    CHECK_OK(tare_session_create(d->model, NULL, &s, NULL));
    assert_int_equal(tare_session_run(s, two, 2, &y, 1, &count, NULL), TARE_INVALID_ARGUMENT);
    assert_int_equal(tare_session_run(s, two, 0, &y, 1, &count, NULL), TARE_INVALID_ARGUMENT);
    assert_int_equal(tare_session_run(s, two, 1, NULL, 0, &count, NULL), TARE_INVALID_ARGUMENT);
    assert_null(y);
    tare_session_destroy(s);
}

static tare_status count_nodes(void *user, const char *name, const tare_tensor *result,
                               tare_error *err) {
    size_t *count = user;
    (void)result;
    if (strcmp(name, "bn3") == 0) return tare__fail(err, TARE_UNSUPPORTED, "enough");
    ++*count;
    return TARE_OK;
}

static void a_watcher_sees_nodes_and_may_end_the_run(void **state) {
    const digits *d = *state;
    tare_session *s = NULL;
    tare_tensor *y = NULL;
    size_t nodes = 0, count = 0;
    const tare_tensor *x = d->some;
    CHECK_OK(tare_session_create(d->model, NULL, &s, NULL));
    tare_session_watch(s, count_nodes, &nodes);
    assert_int_equal(tare_session_run(s, &x, 1, &y, 1, &count, NULL), TARE_UNSUPPORTED);
    assert_true(nodes >= 9); // x, two convolutions with norm and ReLU, pool, convolution
    tare_session_watch(s, NULL, NULL);
    tare_tensor_release(run_once(s, d->some));
    tare_session_destroy(s);
}

static tare_status create_and_run(const tare_model *m, const tare_tensor *x, int threads) {
    const tare_session_options options = {.thread_count = threads};
    tare_session *s = NULL;
    tare_tensor *y = NULL;
    size_t count = 0;
    tare_status status = tare_session_create(m, &options, &s, NULL);
    if (status == TARE_OK) status = tare_session_run(s, &x, 1, &y, 1, &count, NULL);
    tare_tensor_release(y);
    tare_session_destroy(s);
    return status;
}

static void runs_survive_every_failed_allocation(void **state) {
    tare_model *m = quantize(*state, "x86");
    const tare_tensor *x = ((const digits *)*state)->some;
    tare_status status;
    for (int threads = 1; threads <= 2; threads++)
        EVERY_ALLOCATION_FAILS(status, status = create_and_run(m, x, threads), (void)0)
    tare_model_destroy(m);
}

// The first `count` images.
static tare_tensor *some_images(const digits *d, int64_t count) {
    const tare_tensor *all = tare__map_get(&d->images, "x");
    const int64_t shape[] = {count, 1, 8, 8};
    tare_tensor *out = NULL;
    CHECK_OK(tare_tensor_from_data(TARE_FLOAT32, 4, shape, tare_tensor_data(all), &out, NULL));
    return out;
}

// More shapes than plans are kept, in an order that finds some plans and misses others.
static void many_shapes_stay_right(void **state) {
    const digits *d = *state;
    enum { SHAPES = 6, RUNS = 60 };
    tare_model *m = quantize(d, "x86");
    tare_tensor *images[SHAPES], *expected[SHAPES];
    tare_session *s = NULL;
    CHECK_OK(tare_session_create(m, NULL, &s, NULL));
    for (int i = 0; i < SHAPES; i++) {
        images[i] = some_images(d, 1 + 2 * i);
        expected[i] = run_model(m, images[i], true);
    }
    for (int i = 0, at = 0; i < RUNS; i++, at = (at * 5 + i) % SHAPES) {
        tare_tensor *found = run_once(s, images[at]);
        assert_int_equal(found->count, expected[at]->count);
        assert_memory_equal(found->data, expected[at]->data, tare__tensor_bytes(found));
        tare_tensor_release(found);
    }
    for (int i = 0; i < SHAPES; i++) {
        tare_tensor_release(images[i]);
        tare_tensor_release(expected[i]);
    }
    tare_session_destroy(s);
    tare_model_destroy(m);
}

static void check_output_refused(tare_session *s, const tare_tensor *x, tare_tensor *const *outputs,
                                 size_t count, const char *words) {
    tare_error *err = tare_error_create();
    assert_int_equal(tare_session_run_into(s, &x, 1, outputs, count, err), TARE_INVALID_ARGUMENT);
    if (strstr(tare_error_message(err), words) == NULL)
        fail_msg("expected '%s' in '%s'", words, tare_error_message(err));
    tare_error_destroy(err);
}

static void check_runs_into(const tare_model *m, const tare_tensor *x, bool reference) {
    const tare_session_options options = {.reference = reference};
    const int64_t shape[] = {2, 3};
    tare_session *s = NULL;
    CHECK_OK(tare_session_create(m, &options, &s, NULL));
    tare_tensor *expected = run_once(s, x), *y = run_once(s, x), *other = NULL;
    CHECK_OK(tare_tensor_create(TARE_FLOAT32, 2, shape, &other, NULL));
    memset(y->data, 0xff, tare__tensor_bytes(y));
    CHECK_OK(tare_session_run_into(s, &x, 1, &y, 1, NULL));
    assert_memory_equal(y->data, expected->data, tare__tensor_bytes(y));
    tare_tensor *const twice[] = {y, y}, *const none[] = {NULL};
    check_output_refused(s, x, &other, 1,
                         "output 0: expected a tensor of torch.float32 and shape [5, 10]");
    check_output_refused(s, x, twice, 2, "output 1 shares its memory");
    check_output_refused(s, x, none, 1, "output 0: expected a writable tensor");
    check_output_refused(s, x, &y, 0, "the model has 1 output");
    check_output_refused(s, y, &y, 1, "output 0 shares its memory");
    tare_tensor *held = tare_tensor_retain(y), *view = NULL;
    CHECK_OK(tare__tensor_reshape(y, y->ndim, y->shape, &view, NULL));
    check_output_refused(s, x, &held, 1, "not shared");
    tare_tensor_release(view);
    tare_tensor_release(held);
    tare_tensor_release(other);
    tare_tensor_release(expected);
    tare_tensor_release(y);
    tare_session_destroy(s);
}

static void outputs_go_into_given_tensors(void **state) {
    const digits *d = *state;
    tare_model *m = quantize(d, "x86");
    check_runs_into(m, d->some, false);
    check_runs_into(m, d->some, true);
    check_runs_into(d->model, d->some, false);
    tare_model_destroy(m);
}

// --- by names ---

static tare_status run_named(tare_session *s, const char *in, const tare_tensor *x, const char *out,
                             tare_tensor **y, tare_error *err) {
    return tare_session_run_named(s, &in, &x, in != NULL, &out, y, 1, err);
}

static void runs_by_names_are_runs(void **state) {
    const digits *d = *state;
    tare_model *m = quantize(d, "x86");
    tare_session *s = NULL;
    tare_tensor *found = NULL, *twice[2] = {NULL};
    tare_error *err = tare_error_create();
    CHECK_OK(tare_session_create(m, NULL, &s, NULL));
    tare_tensor *expected = run_once(s, d->some);
    CHECK_OK(run_named(s, "x", d->some, "output", &found, NULL));
    assert_memory_equal(found->data, expected->data, tare__tensor_bytes(expected));
    const char *same[] = {"output", "output"};
    const tare_tensor *x = d->some;
    CHECK_OK(tare_session_run_named(s, (const char *[]){"x"}, &x, 1, same, twice, 2, NULL));
    assert_memory_equal(twice[1]->data, expected->data, tare__tensor_bytes(expected));
    assert_int_equal(run_named(s, "y", d->some, "output", &found, err), TARE_NOT_FOUND);
    assert_non_null(strstr(tare_error_message(err), "'y'"));
    assert_int_equal(run_named(s, "x", d->some, "outputs", &found, err), TARE_NOT_FOUND);
    assert_non_null(strstr(tare_error_hint(err), "output"));
    assert_int_equal(run_named(s, NULL, NULL, "output", &found, err), TARE_INVALID_ARGUMENT);
    assert_non_null(strstr(tare_error_message(err), "missing"));
    const tare_tensor *both[] = {d->some, d->some};
    assert_int_equal(
        tare_session_run_named(s, (const char *[]){"x", "x"}, both, 2, same, twice, 2, err),
        TARE_INVALID_ARGUMENT);
    tare_tensor_release(twice[0]);
    tare_tensor_release(twice[1]);
    tare_tensor_release(found);
    tare_tensor_release(expected);
    tare_error_destroy(err);
    tare_session_destroy(s);
    tare_model_destroy(m);
}

// Of a result that is one node with many tensors only a run knows how many there are.
static void outputs_that_one_node_gives_have_numbers(void **state) {
    (void)state;
    tare_model *m = new_model(NULL, new_tree(),
                              "def forward(self, x, y):\n    add = torch.add(x, y)\n"
                              "    split = torch.split(add, 1, 0)\n    return split\n");
    const float values[] = {1, 2, 3}, others[] = {10, 20, 30};
    const int64_t shape[] = {3};
    tare_tensor *x = NULL, *y = NULL, *last = NULL;
    CHECK_OK(tare_tensor_from_data(TARE_FLOAT32, 1, shape, values, &x, NULL));
    CHECK_OK(tare_tensor_from_data(TARE_FLOAT32, 1, shape, others, &y, NULL));
    for (int reference = 0; reference < 2; reference++) {
        tare_session *s = NULL;
        const tare_tensor *inputs[] = {y, x};
        CHECK_OK(
            tare_session_create(m, &(tare_session_options){.reference = reference == 1}, &s, NULL));
        CHECK_OK(tare_session_run_named(s, (const char *[]){"y", "x"}, inputs, 2,
                                        (const char *[]){"output.2"}, &last, 1, NULL));
        assert_true(tare__f32(last)[0] == 33);
        tare_tensor_release(last);
        tare_session_destroy(s);
    }
    tare_tensor_release(x);
    tare_tensor_release(y);
    tare_model_destroy(m);
}

static void inputs_that_the_model_does_not_take_are_named(void **state) {
    const digits *d = *state;
#ifndef TARE_HAVE_ONNX
    skip();
#endif
    tare_model *m = NULL;
    tare_session *s = NULL;
    tare_tensor *flat = NULL, *bytes = NULL, *y = NULL;
    tare_error *err = tare_error_create();
    const int64_t shape[] = {5, 64}, picture[] = {5, 1, 8, 8};
    size_t count = 0;
    CHECK_OK(tare_model_read("data/digits/digits.onnx", NULL, &m, NULL)); // which says its input
    CHECK_OK(tare_tensor_create(TARE_FLOAT32, 2, shape, &flat, NULL));
    CHECK_OK(tare_tensor_create(TARE_UINT8, 4, picture, &bytes, NULL));
    const tare_tensor *const wrong[] = {flat, bytes}, *right = d->some;
    static const char *const words[] = {"found torch.float32 [5, 64]",
                                        "found torch.uint8 [5, 1, 8, 8]"};
    for (int i = 0; i < 4; i++) {
        const tare_session_options options = {.reference = i >= 2};
        CHECK_OK(tare_session_create(m, &options, &s, NULL));
        CHECK_OK(tare_session_run(s, &right, 1, &y, 1, &count, NULL));
        tare_tensor_release(y);
        assert_int_equal(tare_session_run(s, &wrong[i % 2], 1, &y, 1, &count, err),
                         TARE_INVALID_ARGUMENT);
        assert_non_null(
            strstr(tare_error_message(err), "input 'x': expected torch.float32 [any, 1, 8, 8], "));
        assert_non_null(strstr(tare_error_message(err), words[i % 2]));
        tare_session_destroy(s);
    }
    tare_tensor_release(flat);
    tare_tensor_release(bytes);
    tare_error_destroy(err);
    tare_model_destroy(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_level_gives_the_references_bits),
        cmocka_unit_test(every_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(many_shapes_stay_right),
        cmocka_unit_test(outputs_go_into_given_tensors),
        cmocka_unit_test(runs_by_names_are_runs),
        cmocka_unit_test(inputs_that_the_model_does_not_take_are_named),
        cmocka_unit_test(outputs_that_one_node_gives_have_numbers),
        cmocka_unit_test(an_unknown_level_names_the_valid_ones),
        cmocka_unit_test(an_unknown_float_library_names_the_valid_ones),
        cmocka_unit_test(portable_floats_are_those_of_the_references),
        cmocka_unit_test(wrong_numbers_of_tensors_are_refused),
        cmocka_unit_test(a_watcher_sees_nodes_and_may_end_the_run),
        cmocka_unit_test(runs_survive_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
