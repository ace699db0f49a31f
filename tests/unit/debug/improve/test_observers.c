// SPDX-License-Identifier: Apache-2.0
// Histograms beside the observers: other ranges without another calibration.
#include "debug/improve/observers.h"

#include <string.h>

#include "flow/calibrate/range_histograms.h"
#include "support/models.h"
#include "support/temp.h"
#include "support/test.h"
#include "tare/improve.h"

// --- helpers ---

// Most values are small, some are large, so that each way to choose ranges chooses others.
static tare_tensor *samples(void) {
    tare_tensor *x = NEW_INPUT(60, 8);
    for (int i = 0; i < 60 * 8; i++) tare__f32(x)[i] *= i % 97 == 0 ? 40.0F : 1.0F;
    return x;
}

typedef struct bench {
    tare_model *model, *prepared;
    tare_backend_config *backend;
    tare_tensor *x;
    tare_data *data;
} bench;

static void calibrate(bench *b, tare_model *prepared, const tare_calibrate_options *options) {
    CHECK_DONE(tare_data_rewind(b->data, job_error()));
    CHECK_DONE(tare_calibrate_data(prepared, b->data, options, NULL, job_error()));
}

static void set_up(bench *b, int threads) {
    tare_qconfig_mapping *mapping = default_mapping("x86");
    const tare_calibrate_options options = {
        .struct_size = sizeof options, .thread_count = threads, .keeps_histograms = true};
    b->model = linear_relu_linear(8, 16, 4);
    b->backend = builtin_backend("x86");
    b->prepared = prepared(b->model, b->backend, mapping);
    b->x = samples();
    // One sample a batch: float layers round other batches in another way on some machines.
    const tare_data_options one = {.batch_size = 1};
    tare_data_close(data_in_file(b->model, "x.npz", b->x));
    CHECK_DONE(tare_data_open(temp_path("x.npz"), b->model, &one, &b->data, job_error()));
    calibrate(b, b->prepared, &options);
    tare_qconfig_mapping_destroy(mapping);
}

static void tear_down(bench *b) {
    tare_data_close(b->data);
    tare_tensor_release(b->x);
    tare_model_destroy(b->prepared);
    tare_backend_config_destroy(b->backend);
    tare_model_destroy(b->model);
}

static tare_tensor *result(const bench *b, const tare_model *prepared) {
    const tare_tensor *x = b->x;
    tare_model *integers = lowered(prepared, b->backend);
    tare_tensor *y = result_of(integers, &x, 1);
    tare_model_destroy(integers);
    return y;
}

static bool is_equal(const tare_tensor *a, const tare_tensor *b) {
    return a->count == b->count && memcmp(a->data, b->data, (size_t)a->count * sizeof(float)) == 0;
}

static tare_model *handed_over(const tare_model *from, const char *class_name, double percentile) {
    tare_model *made = NULL;
    size_t count = 0;
    assert_true(tare__observers_can_hand_over(from, class_name));
    CHECK_DONE(tare__hand_over_observers(from, class_name, percentile, &count, &made, job_error()));
    assert_int_equal(count, 3);
    return made;
}

// The model with other observers has the same results as after a calibration with them.
static void expect_as_calibrated(bench *b, const tare_model *from, const char *class_name,
                                 double percentile) {
    tare_model *made = handed_over(from, class_name, percentile), *anew = NULL;
    CHECK_DONE(
        tare_replace_observers(b->prepared, class_name, percentile, NULL, &anew, job_error()));
    calibrate(b, anew, NULL);
    tare_tensor *y = result(b, made), *z = result(b, anew), *first = result(b, b->prepared);
    assert_true(is_equal(y, z));
    assert_false(is_equal(y, first));
    tare_tensor_release(first);
    tare_tensor_release(z);
    tare_tensor_release(y);
    tare_model_destroy(anew);
    tare_model_destroy(made);
}

static void expect_all(bench *b, const tare_model *from) {
    expect_as_calibrated(b, from, "tare.MergeableHistogramObserver", 0);
    expect_as_calibrated(b, from, "tare.MergeableHistogramObserver", 99);
    expect_as_calibrated(b, from, "tare.MergeableHistogramObserver", TARE_BY_ENTROPY);
    expect_as_calibrated(b, from, "MinMaxObserver", 0);
}

// --- tests ---

static void handed_over_observers_choose_as_calibrated_ones(void **unused) {
    (void)unused;
    for (int threads = 1; threads <= 3; threads += 2) {
        bench b;
        set_up(&b, threads);
        expect_all(&b, b.prepared);
        tear_down(&b);
    }
}

static void handed_over_observers_hand_over_again(void **unused) {
    (void)unused;
    bench b;
    set_up(&b, 1);
    tare_model *extremes = handed_over(b.prepared, "MinMaxObserver", 0);
    tare_model *entropy = handed_over(extremes, "tare.MergeableHistogramObserver", TARE_BY_ENTROPY);
    expect_all(&b, entropy);
    tare_model_destroy(entropy);
    tare_model_destroy(extremes);
    tear_down(&b);
}

// What observers forget, their histograms forget, too.
static void histograms_are_cleared_with_their_observers(void **unused) {
    (void)unused;
    bench b;
    set_up(&b, 1);
    tare_tensor *other = NEW_INPUT(3, 8);
    for (int i = 0; i < 3 * 8; i++) tare__f32(other)[i] *= 1000.0F;
    const tare_tensor *inputs[] = {other};
    CHECK_DONE(tare_calibrate(b.prepared, inputs, 1, job_error()));
    CHECK_DONE(tare_calibration_clear(b.prepared, job_error()));
    calibrate(&b, b.prepared, NULL);
    expect_all(&b, b.prepared);
    tare_tensor_release(other);
    tear_down(&b);
}

// Observers that have seen data before have no histogram of it.
static void late_histograms_are_not_kept(void **unused) {
    (void)unused;
    bench b;
    set_up(&b, 1);
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *late = prepared(b.model, b.backend, mapping);
    const tare_calibrate_options options = {.struct_size = sizeof options,
                                            .keeps_histograms = true};
    calibrate(&b, late, NULL);
    assert_false(tare__histograms_are_kept(late));
    calibrate(&b, late, &options);
    assert_false(tare__histograms_are_kept(late));
    assert_false(tare__observers_can_hand_over(late, "MinMaxObserver"));
    assert_false(tare__observers_can_hand_over(b.prepared, "HistogramObserver"));
    tare_model_destroy(late);
    tare_qconfig_mapping_destroy(mapping);
    tear_down(&b);
}

// Statistics from a file take the place of what was seen; there is no histogram of them.
static void a_state_file_takes_histograms_away(void **unused) {
    (void)unused;
    bench b;
    set_up(&b, 1);
    assert_true(tare__histograms_are_kept(b.prepared));
    CHECK_DONE(tare_calibration_write(b.prepared, NULL, 60, temp_path("state"), job_error()));
    CHECK_DONE(tare_calibration_read(b.prepared, temp_path("state"), NULL, job_error()));
    assert_false(tare__histograms_are_kept(b.prepared));
    tear_down(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(handed_over_observers_choose_as_calibrated_ones, temp_make,
                                        temp_remove),
        cmocka_unit_test_setup_teardown(handed_over_observers_hand_over_again, temp_make,
                                        temp_remove),
        cmocka_unit_test_setup_teardown(histograms_are_cleared_with_their_observers, temp_make,
                                        temp_remove),
        cmocka_unit_test_setup_teardown(late_histograms_are_not_kept, temp_make, temp_remove),
        cmocka_unit_test_setup_teardown(a_state_file_takes_histograms_away, temp_make, temp_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
