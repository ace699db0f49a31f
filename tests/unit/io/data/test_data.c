// SPDX-License-Identifier: Apache-2.0
// Calibration data of files, folders and random numbers: batches, names of inputs, labels, errors.
#include "support/test.h"

#include <math.h>
#include <sys/stat.h>
#include <zlib.h>

#include "io/data/data.h"
#include "io/data/npy.h"
#include "io/data/npz.h"
#include "io/native/safetensors.h"
#include "support/temp.h"

static const data_input one_input[] = {{.name = "features", .ndim = -1}};
static const data_input two_inputs[] = {{.name = "left", .ndim = -1},
                                        {.name = "right", .ndim = -1}};

static tare_tensor *ramp(int64_t count, int64_t features, float first) {
    tare_tensor *t = NULL;
    CHECK_OK(tare_tensor_create(TARE_FLOAT32, 2, (int64_t[]){count, features}, &t, NULL));
    for (int64_t i = 0; i < t->count; i++) tare__f32(t)[i] = first + (float)i;
    return t;
}

static void add(map *arrays, const char *name, tare_tensor *t) {
    assert_true(tare__map_set(arrays, name, t));
}

// Writes the arrays as NAME and releases them.
static const char *write_npz(const char *name, map *arrays) {
    const char *path = temp_path(name);
    CHECK_OK(tare__npz_write(path, arrays, NULL));
    tare__tensor_map_release(arrays);
    return path;
}

static void expect_refused(const char *spec, const data_input *inputs, size_t count,
                           const char *where, const char *words) {
    data_source *s = NULL;
    data_batch batch = {0};
    bool done = false;
    tare_error *err = tare_error_create();
    tare_status status = tare__data_open(spec, inputs, count, 0, NULL, &s, err);
    if (status == TARE_OK) status = tare__data_next(s, &batch, &done, err);
    assert_int_not_equal(status, TARE_OK);
    if (!strstr(tare_error_where(err), where) || !strstr(tare_error_message(err), words))
        fail_msg("'%s: %s' does not say '%s: %s'", tare_error_where(err), tare_error_message(err),
                 where, words);
    tare__data_close(s);
    tare_error_destroy(err);
}

static void batches_are_slices_in_order(void **state) {
    (void)state;
    map arrays = {0};
    const int64_t numbers[] = {7, 8, 9, 10, 11};
    tare_tensor *labels = NULL;
    CHECK_OK(tare_tensor_from_data(TARE_INT64, 1, (int64_t[]){5}, numbers, &labels, NULL));
    add(&arrays, "x", ramp(5, 2, 0));
    add(&arrays, "y", labels);
    data_source *s = NULL;
    CHECK_OK(tare__data_open(write_npz("five.npz", &arrays), one_input, 1, 2, NULL, &s, NULL));
    for (int epoch = 0; epoch < 2; epoch++) {
        for (int64_t i = 0; i < 3; i++) {
            data_batch batch = {0};
            bool done = false;
            CHECK_OK(tare__data_next(s, &batch, &done, NULL));
            assert_false(done);
            assert_int_equal(batch.size, i < 2 ? 2 : 1);
            assert_int_equal(batch.inputs[0]->shape[0], batch.size);
            assert_float_equal(tare__f32(batch.inputs[0])[1], (double)(4 * i + 1), 0);
            assert_int_equal(((const int64_t *)batch.labels->data)[0], 7 + 2 * i);
            tare__data_batch_release(&batch);
            tare__data_batch_release(&batch);
        }
        data_batch batch = {0};
        bool done = false;
        CHECK_OK(tare__data_next(s, &batch, &done, NULL));
        assert_true(done);
        CHECK_OK(tare__data_rewind(s, NULL));
    }
    tare__data_close(s);
}

static void names_lead_arrays_to_inputs(void **state) {
    (void)state;
    map arrays = {0};
    data_source *s = NULL;
    data_batch batch = {0};
    bool done = false;
    add(&arrays, "right", ramp(3, 1, 10));
    add(&arrays, "left", ramp(3, 2, 20));
    CHECK_OK(tare__data_open(write_npz("two.npz", &arrays), two_inputs, 2, 0, NULL, &s, NULL));
    CHECK_OK(tare__data_next(s, &batch, &done, NULL));
    assert_float_equal(tare__f32(batch.inputs[0])[0], 20, 0);
    assert_float_equal(tare__f32(batch.inputs[1])[0], 10, 0);
    assert_null(batch.labels);
    tare__data_batch_release(&batch);
    tare__data_close(s);
    add(&arrays, "arr_1", ramp(3, 1, 10));
    add(&arrays, "arr_0", ramp(3, 2, 20));
    CHECK_OK(
        tare__data_open(write_npz("positions.npz", &arrays), two_inputs, 2, 0, NULL, &s, NULL));
    CHECK_OK(tare__data_next(s, &batch, &done, NULL));
    assert_float_equal(tare__f32(batch.inputs[0])[0], 20, 0);
    tare__data_batch_release(&batch);
    tare__data_close(s);
}

static void wrong_names_are_refused_with_the_right_ones(void **state) {
    (void)state;
    map arrays = {0};
    add(&arrays, "one_image", ramp(2, 1, 0));
    expect_refused(write_npz("name.npz", &arrays), one_input, 1, "name.npz",
                   "array 'one_image' is no input of the model, which has 'features'");
    add(&arrays, "x", ramp(2, 1, 0));
    expect_refused(write_npz("x.npz", &arrays), two_inputs, 2, "x.npz", "'left', 'right'");
    add(&arrays, "left", ramp(2, 1, 0));
    expect_refused(write_npz("left.npz", &arrays), two_inputs, 2, "left.npz",
                   "no array for input 'right'");
    add(&arrays, "x", ramp(2, 1, 0));
    add(&arrays, "features", ramp(2, 1, 0));
    expect_refused(write_npz("clash.npz", &arrays), one_input, 1, "clash.npz",
                   "a second one for input 'features'");
}

static void sizes_must_agree(void **state) {
    (void)state;
    const data_input one_image = {.name = "x", .ndim = 3, .shape = {-1, 4, -1}};
    map arrays = {0};
    add(&arrays, "left", ramp(2, 1, 0));
    add(&arrays, "right", ramp(3, 1, 0));
    expect_refused(write_npz("sizes.npz", &arrays), two_inputs, 2, "sizes.npz",
                   "input 'right' has 3 samples, input 'left' has 2");
    add(&arrays, "x", ramp(2, 1, 0));
    add(&arrays, "labels", ramp(3, 1, 0));
    expect_refused(write_npz("labels.npz", &arrays), one_input, 1, "labels.npz",
                   "3 labels for 2 samples");
    add(&arrays, "x", ramp(2, 4, 0));
    expect_refused(write_npz("shape.npz", &arrays), &one_image, 1, "shape.npz",
                   "array 'x' has the shape [2, 4], input 'x' wants [-1, 4, -1]");
}

static void a_nan_is_named_with_its_place(void **state) {
    (void)state;
    map arrays = {0};
    tare_tensor *t = ramp(3, 4, 0);
    tare__f32(t)[9] = NAN;
    add(&arrays, "x", t);
    expect_refused(write_npz("nan.npz", &arrays), one_input, 1, "nan.npz", "NaN at [2, 1]");
}

static void wide_floats_become_float32(void **state) {
    (void)state;
    const double numbers[] = {0.5, -3};
    tare_tensor *t = NULL;
    data_source *s = NULL;
    data_batch batch = {0};
    bool done = false;
    CHECK_OK(tare_tensor_from_data(TARE_FLOAT64, 2, (int64_t[]){2, 1}, numbers, &t, NULL));
    const char *path = temp_path("wide.npy");
    CHECK_OK(tare__npy_write(path, t, NULL));
    CHECK_OK(tare__data_open(path, one_input, 1, 0, NULL, &s, NULL));
    CHECK_OK(tare__data_next(s, &batch, &done, NULL));
    assert_int_equal(batch.inputs[0]->dtype, TARE_FLOAT32);
    assert_float_equal(tare__f32(batch.inputs[0])[1], -3, 0);
    tare__data_batch_release(&batch);
    tare__data_close(s);
    expect_refused(path, two_inputs, 2, "wide.npy", "an array without a name");
    tare_tensor_release(t);
}

static void a_recorded_case_brings_its_inputs(void **state) {
    (void)state;
    map arrays = {0};
    data_source *s = NULL;
    data_batch batch = {0};
    bool done = false;
    add(&arrays, "input.0", ramp(2, 2, 5));
    add(&arrays, "float", ramp(7, 1, 0));
    add(&arrays, "weights.fc.weight.scale", ramp(1, 1, 0));
    const char *path = temp_path("data.safetensors");
    CHECK_OK(tare__safetensors_write(path, &arrays, NULL, NULL));
    tare__tensor_map_release(&arrays);
    CHECK_OK(tare__data_open(path, one_input, 1, 0, NULL, &s, NULL));
    CHECK_OK(tare__data_next(s, &batch, &done, NULL));
    assert_int_equal(batch.size, 2);
    tare__data_batch_release(&batch);
    tare__data_close(s);
}

static void a_folder_is_read_in_order_of_names(void **state) {
    (void)state;
    const char *folder = temp_path("folder");
    assert_int_equal(mkdir(folder, 0777), 0);
    expect_refused(folder, one_input, 1, "folder", "no data in it");
    map arrays = {0};
    add(&arrays, "x", ramp(1, 1, 2));
    write_npz("folder/b.npz", &arrays);
    tare_tensor *t = ramp(2, 1, 0);
    CHECK_OK(tare__npy_write(temp_path("folder/a.npy"), t, NULL));
    tare_tensor_release(t);
    data_source *s = NULL;
    CHECK_OK(tare__data_open(temp_path("folder"), one_input, 1, 1, NULL, &s, NULL));
    for (int epoch = 0; epoch < 2; epoch++) {
        for (int i = 0; i < 4; i++) {
            data_batch batch = {0};
            bool done = false;
            CHECK_OK(tare__data_next(s, &batch, &done, NULL));
            assert_int_equal(done, i == 3);
            if (!done) assert_float_equal(tare__f32(batch.inputs[0])[0], i, 0);
            tare__data_batch_release(&batch);
        }
        CHECK_OK(tare__data_rewind(s, NULL));
    }
    tare__data_close(s);
    temp_write(temp_path("folder/notes.txt"), "x", 1);
    expect_refused(temp_path("folder"), one_input, 1, "folder", "'notes.txt' is none of");
}

static void random_samples_do_not_depend_on_batches(void **state) {
    (void)state;
    const data_input one_image = {.name = "x", .ndim = 3, .shape = {1, 2, 3}};
    data_source *whole = NULL, *batches = NULL;
    data_batch all = {0};
    bool done = false;
    CHECK_OK(tare__data_open("random:5:42", &one_image, 1, 0, NULL, &whole, NULL));
    CHECK_OK(tare__data_next(whole, &all, &done, NULL));
    assert_int_equal(all.size, 5);
    CHECK_OK(tare__data_open("random:5:42", &one_image, 1, 2, NULL, &batches, NULL));
    int64_t position = 0;
    for (;;) {
        data_batch batch = {0};
        CHECK_OK(tare__data_next(batches, &batch, &done, NULL));
        if (done) break;
        assert_memory_equal(batch.inputs[0]->data, tare__f32(all.inputs[0]) + position * 6,
                            tare__tensor_bytes(batch.inputs[0]));
        position += batch.size;
        tare__data_batch_release(&batch);
    }
    assert_int_equal(position, 5);
    tare__data_close(batches);
    tare__data_close(whole);
    tare__data_batch_release(&all);
}

static void random_samples_are_standard_normal(void **state) {
    (void)state;
    data_source *s = NULL;
    data_batch batch = {0};
    bool done = false;
    double sum = 0, squares = 0;
    CHECK_OK(tare__data_open("random:100:7:10x20", one_input, 1, 0, NULL, &s, NULL));
    CHECK_OK(tare__data_next(s, &batch, &done, NULL));
    assert_int_equal(batch.inputs[0]->ndim, 3);
    const int64_t count = batch.inputs[0]->count;
    for (int64_t i = 0; i < count; i++) {
        const double x = (double)tare__f32(batch.inputs[0])[i];
        sum += x;
        squares += x * x;
    }
    // Five standard deviations of the mean and of the mean square.
    assert_true(fabs(sum / (double)count) < 5 / sqrt((double)count));
    assert_true(fabs(squares / (double)count - 1) < 5 * sqrt(2 / (double)count));
    tare__data_batch_release(&batch);
    CHECK_OK(tare__data_rewind(s, NULL));
    CHECK_OK(tare__data_next(s, &batch, &done, NULL));
    assert_false(done);
    tare__data_batch_release(&batch);
    tare__data_close(s);
}

static void random_specs_are_checked(void **state) {
    (void)state;
    const data_input tokens = {.name = "x", .ndim = 2, .shape = {1, 2}, .dtype = TARE_INT64};
    expect_refused("random:4", one_input, 1, "random:4", "does not say the shape");
    expect_refused("random:4", &tokens, 1, "random:4", "has dtype torch.int64, and no embedding");
    expect_refused("random:", one_input, 1, "random:", "expected random:N");
    expect_refused("random:0", one_input, 1, "random:0", "expected random:N");
    expect_refused("random:4x", one_input, 1, "random", "expected random:N");
    expect_refused("random:4:1:3x", one_input, 1, "random", "expected random:N");
    expect_refused("random:4:1:3,", one_input, 1, "random", "expected random:N");
    expect_refused("random:4:1:3", two_inputs, 2, "random", "expected random:N");
    expect_refused("random:99999999999", one_input, 1, "random", "expected random:N");
}

static void rows_are_features_and_a_label(void **state) {
    (void)state;
    const char *rows = "a,b,label\n1,2.5,7\r\n\n-3,4e-1, 8\n5,6,9";
    const data_input one_image = {.name = "x", .ndim = 4, .shape = {-1, 1, 2, 1}};
    const char *path = temp_path("rows.csv.gz");
    gzFile packed = gzopen(path, "wb");
    assert_int_equal(gzputs(packed, rows), (int)strlen(rows));
    gzclose(packed);
    data_source *s = NULL;
    CHECK_OK(tare__data_open(path, &one_image, 1, 2, NULL, &s, NULL));
    for (int epoch = 0; epoch < 2; epoch++) {
        data_batch batch = {0};
        bool done = false;
        CHECK_OK(tare__data_next(s, &batch, &done, NULL));
        assert_int_equal(batch.size, 2);
        assert_int_equal(batch.inputs[0]->ndim, 4);
        assert_memory_equal(batch.inputs[0]->data, ((const float[]){1, 2.5f, -3, 0.4f}), 16);
        assert_int_equal(tare__tensor_get(batch.labels, 1), 8);
        tare__data_batch_release(&batch);
        CHECK_OK(tare__data_next(s, &batch, &done, NULL));
        assert_int_equal(batch.size, 1);
        tare__data_batch_release(&batch);
        CHECK_OK(tare__data_next(s, &batch, &done, NULL));
        assert_true(done);
        CHECK_OK(tare__data_rewind(s, NULL));
    }
    tare__data_close(s);
}

static void rows_may_begin_with_a_mark_and_stand_in_quotes(void **state) {
    (void)state;
    const char *path = temp_path("marked.csv"),
               *rows = "\xef\xbb\xbf\"1\",\"-2.5\",\"3\"\n4, \"5\",6\n";
    data_source *s = NULL;
    data_batch batch = {0};
    bool done = false;
    temp_write(path, rows, strlen(rows));
    CHECK_OK(tare__data_open(path, one_input, 1, 0, NULL, &s, NULL));
    CHECK_OK(tare__data_next(s, &batch, &done, NULL));
    assert_memory_equal(batch.inputs[0]->data, ((const float[]){1, -2.5f, 4, 5}), 16);
    assert_int_equal(tare__tensor_get(batch.labels, 1), 6);
    tare__data_batch_release(&batch);
    tare__data_close(s);
}

static void expect_rows_refused(const char *rows, const char *where, const char *words) {
    const char *path = temp_path("bad.csv");
    temp_write(path, rows, strlen(rows));
    expect_refused(path, one_input, 1, where, words);
}

static void broken_rows_are_refused_by_line(void **state) {
    (void)state;
    const data_input one_image = {.name = "x", .ndim = 3, .shape = {-1, 2, 2}};
    expect_rows_refused("", "line 1", "no rows");
    expect_rows_refused("a,b\n", "line 2", "no rows");
    expect_rows_refused("1;2\n", "line 2", "no rows");
    expect_rows_refused("\"1,2\n", "line 2", "no rows");
    expect_rows_refused("1\n", "line 1", "one column");
    expect_rows_refused("1,2\n1,2,3\n", "line 2", "another number of columns");
    expect_rows_refused("1,2,3\n1,,3\n", "line 2", "expected numbers");
    expect_rows_refused("1,2,3\n1,2z,3\n", "line 2", "expected numbers");
    expect_rows_refused("1,2,3\nnan,2,3\n", "line 2", "NaN");
    expect_rows_refused("1,2,3.5\n", "line 1", "not a whole number");
    expect_rows_refused("1,2,1e99\n", "line 1", "not a whole number");
    temp_write(temp_path("nul.csv"), "1,2\0,3\n4,5\n", 11);
    expect_refused(temp_path("nul.csv"), one_input, 1, "line 1", "NUL");
    temp_write(temp_path("nul_first.csv"),
               "1,2,3\n\0"
               "4,5\n6,7,8\n",
               17); // would end the data
    expect_refused(temp_path("nul_first.csv"), one_input, 1, "line 2", "NUL");
    temp_write(temp_path("nul_last.csv"), "1,2,3\n4,5,6\0,7", 14);
    expect_refused(temp_path("nul_last.csv"), one_input, 1, "line 2", "NUL");
    temp_write(temp_path("three.csv"), "1,2,3,0\n", 8);
    expect_refused(temp_path("three.csv"), &one_image, 1, "line 1", "do not fill");
    expect_refused(temp_path("three.csv"), two_inputs, 2, "three.csv", "model of 2 inputs");
    expect_refused(temp_path("none.csv"), one_input, 1, "none.csv", "cannot open");
}

static void unknown_kinds_are_refused(void **state) {
    (void)state;
    data_source *s = NULL;
    temp_write(temp_path("photo.webp"), "RIFF", 4);
    expect_refused(temp_path("photo.webp"), one_input, 1, "photo.webp", "does not say which kind");
    expect_refused("data.bin", one_input, 1, "data.bin", "cannot open");
    const data_input tokens = {.name = "x", .ndim = 2, .shape = {-1, 2}, .dtype = TARE_INT64};
    tare_tensor *floats = ramp(1, 2, 0);
    CHECK_OK(tare__npy_write(temp_path("floats.npy"), floats, NULL));
    tare_tensor_release(floats);
    expect_refused(temp_path("floats.npy"), &tokens, 1, "floats.npy",
                   "array 'x' holds torch.float32, input 'x' wants torch.int64");
    expect_refused("imag=photos/", one_input, 1, "imag=photos/",
                   "the name 'imag' is no input of the model, which has 'features'");
    expect_refused(temp_path("no.npz"), one_input, 1, "no.npz", "open");
    assert_int_equal(tare__data_open("random:1", one_input, 1, -1, NULL, &s, NULL),
                     TARE_INVALID_ARGUMENT);
}

static tare_status read_all(const char *spec) {
    data_source *s = NULL;
    TARE_TRY(tare__data_open(spec, one_input, 1, 2, NULL, &s, NULL));
    tare_status status = TARE_OK;
    for (bool done = false; status == TARE_OK && !done;) {
        data_batch batch = {0};
        status = tare__data_next(s, &batch, &done, NULL);
        tare__data_batch_release(&batch);
    }
    tare__data_close(s);
    return status;
}

static void lost_memory_is_an_error(void **state) {
    (void)state;
    map arrays = {0};
    tare_status status = TARE_OK;
    add(&arrays, "x", ramp(3, 1, 0));
    const char *npz = write_npz("memory.npz", &arrays), *csv = temp_path("memory.csv");
    temp_write(csv, "1,2,3\n4,5,6\n7,8,9\n", 18);
    EVERY_ALLOCATION_FAILS(status, status = read_all(npz), )
    EVERY_ALLOCATION_FAILS(status, status = read_all(csv), )
    EVERY_ALLOCATION_FAILS(status, status = read_all("random:3:1:2"), )
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_are_slices_in_order),
        cmocka_unit_test(names_lead_arrays_to_inputs),
        cmocka_unit_test(wrong_names_are_refused_with_the_right_ones),
        cmocka_unit_test(sizes_must_agree),
        cmocka_unit_test(a_nan_is_named_with_its_place),
        cmocka_unit_test(wide_floats_become_float32),
        cmocka_unit_test(a_recorded_case_brings_its_inputs),
        cmocka_unit_test(a_folder_is_read_in_order_of_names),
        cmocka_unit_test(random_samples_do_not_depend_on_batches),
        cmocka_unit_test(random_samples_are_standard_normal),
        cmocka_unit_test(random_specs_are_checked),
        cmocka_unit_test(rows_are_features_and_a_label),
        cmocka_unit_test(rows_may_begin_with_a_mark_and_stand_in_quotes),
        cmocka_unit_test(broken_rows_are_refused_by_line),
        cmocka_unit_test(unknown_kinds_are_refused),
        cmocka_unit_test(lost_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
