// SPDX-License-Identifier: Apache-2.0
// Calibration states: shards merge to one pass, and go with their model only.
#include "support/models.h"
#include "support/temp.h"
#include "support/test.h"

#include "flow/calibrate/calibration.h"
#include "tare/improve.h"

static tare_model *prepare_example(const char *activation_observer) {
    tare_model *model = read_example("conv_relu");
    tare_backend_config *backend = my_backend();
    tare_qconfig_mapping *mapping = my_mapping();
    if (activation_observer != NULL) {
        tare_observer_spec *activation = tare_observer_spec_create(activation_observer);
        tare_observer_spec *weight = tare_observer_spec_create("MinMaxObserver");
        tare_observer_spec_set_dtype(weight, "dtype", TARE_QINT8);
        tare_observer_spec_set_qscheme(weight, "qscheme", TARE_PER_TENSOR_SYMMETRIC);
        tare_qconfig *q = tare_qconfig_create(activation, weight);
        tare_observer_spec_release(activation);
        tare_observer_spec_release(weight);
        tare_qconfig_mapping_destroy(mapping);
        mapping = tare_qconfig_mapping_create();
        tare_qconfig_mapping_set_global(mapping, q);
        tare_qconfig_release(q);
        tare_backend_config_destroy(backend);
        backend = builtin_backend("native");
    }
    tare_model *out = prepared(model, backend, mapping);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    tare_model_destroy(model);
    return out;
}

static const char data_spec[] = "random:37:5:3x8x10";

// Watches a shard of the data, and writes the state where `path` is not NULL.
static int64_t watch_to(tare_model *model, int64_t shard, int64_t shards, int64_t limit,
                        const char *path) {
    const tare_data_options options = {
        .batch_size = 4, .sample_limit = limit, .shard_index = shard, .shard_count = shards};
    tare_data *data = NULL;
    int64_t count = 0;
    CHECK_DONE(tare_data_open(data_spec, model, &options, &data, job_error()));
    CHECK_DONE(tare_calibrate_data(model, data, NULL, &count, job_error()));
    assert_int_equal(count, tare_data_sample_count(data));
    if (path != NULL) CHECK_DONE(tare_calibration_write(model, data, count, path, job_error()));
    tare_data_close(data);
    return count;
}

static int64_t watch(tare_model *model, int64_t shard, int64_t shards, int64_t limit) {
    return watch_to(model, shard, shards, limit, NULL);
}

static void write_shard(int64_t shard, int64_t shards, int64_t limit, const char *name) {
    tare_model *model = prepare_example(NULL);
    (void)watch_to(model, shard, shards, limit, temp_path(name));
    tare_model_destroy(model);
}

static void check_equal_files(const char *a, const char *b) {
    size_t x_size = 0, y_size = 0;
    unsigned char *x = temp_read(a, &x_size), *y = temp_read(b, &y_size);
    assert_int_equal(x_size, y_size);
    assert_memory_equal(x, y, x_size);
    free(x);
    free(y);
}

// What the model becomes with the statistics of a state, as NAME.
static void convert_with(const char *state, const char *name) {
    tare_model *model = prepare_example(NULL), *out = NULL;
    tare_backend_config *backend = my_backend();
    const tare_convert_options options = {.backend = backend};
    if (state != NULL)
        CHECK_DONE(tare_calibration_read(model, temp_path(state), NULL, job_error()));
    else
        (void)watch(model, 0, 1, 0);
    CHECK_DONE(tare_convert_fx(model, &options, &out, job_error()));
    CHECK_DONE(tare_model_write(out, temp_path(name), job_error()));
    tare_model_destroy(out);
    tare_model_destroy(model);
    tare_backend_config_destroy(backend);
}

static void any_split_gives_the_model_of_one_pass(void **state) {
    (void)state;
    convert_with(NULL, "direct");
    write_shard(0, 1, 0, "whole.state");
    convert_with("whole.state", "whole");
    check_equal_files(temp_path("direct"), temp_path("whole"));
    for (int64_t shards = 2; shards <= 9; shards++) { // ten batches
        char names[9][256];
        const char *paths[9];
        for (int64_t i = 0; i < shards; i++) {
            char name[32];
            (void)snprintf(name, sizeof name, "%d.state", (int)i);
            write_shard(i, shards, 0, name);
            // In another order than they were made.
            (void)snprintf(names[(i * 2 + 1) % shards % 9], 256, "%s", temp_path(name));
        }
        if (shards % 2 == 0)
            for (int64_t i = 0; i < shards; i++)
                (void)snprintf(names[shards - 1 - i], 256, "%s/%d.state", temp_folder(), (int)i);
        for (int64_t i = 0; i < shards; i++) paths[i] = names[i];
        tare_calibration_info info = {.struct_size = sizeof info};
        CHECK_DONE(tare_calibration_merge(NULL, paths, (size_t)shards, temp_path("merged.state"),
                                          &info, job_error()));
        assert_int_equal(info.sample_count, 37);
        assert_int_equal(info.shard_count, shards);
        assert_int_equal(info.done_shard_count, shards);
        convert_with("merged.state", "merged");
        check_equal_files(temp_path("direct"), temp_path("merged"));
    }
}

// The model that all shards begin with has seen data: it is the first one's.
static void what_was_seen_before_counts_once(void **state) {
    (void)state;
    static const char observer[] = "tare.MergeableHistogramObserver";
    char names[3][256];
    tare_model *alone = prepare_example(observer);
    (void)watch(alone, 0, 1, 8);
    for (int i = 0; i < 3; i++) {
        char name[32];
        tare_model *model = prepare_example(observer);
        (void)watch(model, 0, 1, 8);
        (void)snprintf(name, sizeof name, "again%d.state", i);
        (void)watch_to(model, i, 3, 0, temp_path(name));
        (void)snprintf(names[i], sizeof names[i], "%s", temp_path(name));
        tare_model_destroy(model);
    }
    (void)watch(alone, 0, 1, 0);
    CHECK_DONE(tare_calibration_merge(NULL, (const char *[]){names[1], names[0], names[2]}, 3,
                                      temp_path("again.state"), NULL, job_error()));
    CHECK_DONE(tare_calibration_write(alone, NULL, 45, temp_path("alone.state"), job_error()));
    tare_model *fresh = prepare_example(observer);
    CHECK_DONE(tare_calibration_read(fresh, temp_path("alone.state"), NULL, job_error()));
    CHECK_DONE(tare_model_write(fresh, temp_path("alone"), job_error()));
    CHECK_DONE(tare_calibration_read(fresh, temp_path("again.state"), NULL, job_error()));
    CHECK_DONE(tare_model_write(fresh, temp_path("together"), job_error()));
    check_equal_files(temp_path("alone"), temp_path("together"));
    CHECK_DONE(tare_calibration_clear(fresh, job_error()));
    (void)watch(fresh, 0, 1, 8);
    (void)watch(fresh, 0, 1, 0);
    CHECK_DONE(tare_calibration_write(fresh, NULL, 45, temp_path("anew.state"), job_error()));
    check_equal_files(temp_path("alone.state"), temp_path("anew.state"));
    tare_model_destroy(fresh);
    tare_model_destroy(alone);
}

static size_t count_warnings(const tare_model *model) {
    size_t count = 0;
    for (size_t i = 0; i < tare_model_decision_count(model); i++) {
        tare_decision d = {.struct_size = sizeof d};
        CHECK_DONE(tare_model_decision_at(model, i, &d, job_error()));
        count += strcmp(d.rule, TARE_CALIBRATION_DATA_RULE) == 0;
    }
    return count;
}

static void watch_file(tare_model *model, tare_tensor *x) {
    tare_data *data = data_in_file(model, "notes.npz", x);
    CHECK_DONE(tare_calibrate_data(model, data, NULL, NULL, job_error()));
    tare_data_close(data);
}

// Data is warned about as long as it is what all the statistics come from.
static void warnings_go_with_the_data(void **state) {
    (void)state;
    tare_model *model = prepare_example("MinMaxObserver"), *other = NULL;
    tare_tensor *equal = NEW_INPUT(4, 3, 8, 10);
    for (int64_t i = 0; i < equal->count; i++) tare__f32(equal)[i] = (float)(i % 240);
    watch_file(model, equal);
    assert_int_equal(count_warnings(model), 1);
    // New observers have seen none of it.
    CHECK_DONE(tare_replace_observers(model, "HistogramObserver", 0, NULL, &other, job_error()));
    assert_int_equal(count_warnings(other), 0);
    assert_int_equal(other->seen.count, 0);
    tare_model_destroy(other);
    // It is no longer true.
    (void)watch(model, 0, 1, 8);
    assert_int_equal(count_warnings(model), 0);
    CHECK_DONE(tare_calibration_clear(model, job_error()));
    watch_file(model, equal);
    assert_int_equal(count_warnings(model), 1);
    CHECK_DONE(tare_calibration_clear(model, job_error()));
    assert_int_equal(count_warnings(model), 0);
    // Other data came before.
    const tare_tensor *inputs[] = {equal};
    watch_file(model, equal);
    CHECK_DONE(tare_calibrate(model, inputs, 1, job_error()));
    assert_int_equal(count_warnings(model), 0);
    watch_file(model, equal);
    assert_int_equal(count_warnings(model), 0);
    CHECK_DONE(tare_calibration_write(model, NULL, 9, temp_path("notes.state"), job_error()));
    CHECK_DONE(tare_calibration_clear(model, job_error()));
    watch_file(model, equal);
    assert_int_equal(count_warnings(model), 1);
    CHECK_DONE(tare_calibration_read(model, temp_path("notes.state"), NULL, job_error()));
    assert_int_equal(count_warnings(model), 0);
    watch_file(model, equal);
    assert_int_equal(count_warnings(model), 0);
    tare_model_destroy(model);
    tare_tensor_release(equal);
}

static void merging_in_groups_is_merging_at_once(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "g%d.state", i);
        write_shard(i, 3, 0, name);
    }
    char a[256], b[256], c[256], pair[256];
    (void)snprintf(a, sizeof a, "%s", temp_path("g0.state"));
    (void)snprintf(b, sizeof b, "%s", temp_path("g1.state"));
    (void)snprintf(c, sizeof c, "%s", temp_path("g2.state"));
    (void)snprintf(pair, sizeof pair, "%s", temp_path("pair.state"));
    CHECK_DONE(tare_calibration_merge(NULL, (const char *[]){c, a}, 2, pair, NULL, job_error()));
    CHECK_DONE(tare_calibration_merge(NULL, (const char *[]){pair, b}, 2, temp_path("groups.state"),
                                      NULL, job_error()));
    CHECK_DONE(tare_calibration_merge(NULL, (const char *[]){a, b, c}, 3, temp_path("once.state"),
                                      NULL, job_error()));
    check_equal_files(temp_path("groups.state"), temp_path("once.state"));
    // An incomplete merge says so.
    tare_calibration_info info = {.struct_size = sizeof info};
    tare_model *model = prepare_example(NULL);
    CHECK_DONE(tare_calibration_read(model, pair, &info, job_error()));
    assert_int_equal(info.done_shard_count, 2);
    tare_model_destroy(model);
}

static void what_does_not_belong_together_is_refused(void **state) {
    (void)state;
    write_shard(0, 2, 0, "a.state");
    write_shard(1, 3, 0, "b.state");
    char a[256], b[256];
    (void)snprintf(a, sizeof a, "%s", temp_path("a.state"));
    (void)snprintf(b, sizeof b, "%s", temp_path("b.state"));
    const char *out = temp_path("refused.state");
    CHECK_REFUSED(tare_calibration_merge(NULL, (const char *[]){a, a}, 2, out, NULL, job_error()),
                  TARE_INVALID_ARGUMENT, "shard 0 is in two states");
    CHECK_REFUSED(tare_calibration_merge(NULL, (const char *[]){a, b}, 2, out, NULL, job_error()),
                  TARE_INVALID_ARGUMENT, "in 3 shards, in the first state in 2");
    CHECK_REFUSED(tare_calibration_merge(NULL, NULL, 0, out, NULL, job_error()),
                  TARE_INVALID_ARGUMENT, "no states");
    // Other observers, another graph, other weights.
    tare_model *other = prepare_example("MinMaxObserver");
    CHECK_REFUSED(tare_calibration_read(other, a, NULL, job_error()), TARE_INVALID_ARGUMENT,
                  "with other observers");
    tare_model_destroy(other);
    tare_model *stranger = read_example("conv_bn_relu");
    tare_backend_config *backend = my_backend();
    tare_qconfig_mapping *mapping = my_mapping();
    other = prepared(stranger, backend, mapping);
    CHECK_REFUSED(tare_calibration_read(other, a, NULL, job_error()), TARE_INVALID_ARGUMENT,
                  "another model: its node is '%");
    tare_model_destroy(other);
    tare_model_destroy(stranger);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
    tare_model *heavier = prepare_example(NULL);
    tare_tensor *weight = tare__module_find_tensor(heavier->root, "linear.weight");
    assert_non_null(weight);
    tare_tensor *changed = NULL;
    CHECK_OK(tare__tensor_copy(weight, &changed, NULL));
    tare__f32(changed)[0] += 1;
    module *linear = tare__module_find(heavier->root, "linear");
    assert_non_null(linear);
    CHECK_OK(tare__module_set_tensor(linear, "weight", changed, true, NULL));
    tare_tensor_release(changed);
    CHECK_REFUSED(tare_calibration_read(heavier, a, NULL, job_error()), TARE_INVALID_ARGUMENT,
                  "with other weights: 'linear.weight' has other values");
    tare_model_destroy(heavier);
    tare_model *wider = prepare_example(NULL);
    const value nothing = tare__none();
    CHECK_OK(
        tare__module_set_config(tare__module_find(wider->root, "linear"), "note", &nothing, NULL));
    CHECK_REFUSED(tare_calibration_read(wider, a, NULL, job_error()), TARE_INVALID_ARGUMENT,
                  "its module is 'linear: torch.nn.Linear(");
    tare_model_destroy(wider);
    tare_model *model = read_example("conv_relu");
    CHECK_REFUSED(tare_calibration_write(model, NULL, 1, out, job_error()), TARE_INVALID_ARGUMENT,
                  "expected a prepared model");
    tare_model_destroy(model);
    model = prepare_example(NULL);
    CHECK_REFUSED(tare_calibration_read(model, "examples/data/tutorial_conv_relu.safetensors", NULL,
                                        job_error()),
                  TARE_MALFORMED_FILE, "not a calibration state");
    CHECK_REFUSED(tare_calibration_write(model, NULL, -1, out, job_error()), TARE_INVALID_ARGUMENT,
                  "-1 samples");
    tare_model_destroy(model);
}

static void an_observer_stands_once_in_a_state(void **state) {
    (void)state;
    write_shard(0, 1, 0, "twice.state");
    const char *path = temp_path("twice.state");
    static const char old[] = "activation_post_process_1\\\",";
    size_t size = 0, count = 0;
    unsigned char *bytes = temp_read(path, &size);
    for (size_t i = 0; i + sizeof old < size; i++) {
        if (memcmp(bytes + i, old, sizeof old - 1) != 0) continue;
        bytes[i + strlen("activation_post_process_")] = '0';
        count++;
    }
    assert_int_equal(count, 1);
    temp_write(path, bytes, size);
    free(bytes);
    tare_model *model = prepare_example(NULL);
    CHECK_REFUSED(tare_calibration_read(model, path, NULL, job_error()), TARE_MALFORMED_FILE,
                  "two observers 'activation_post_process_0'");
    tare_model_destroy(model);
}

static void averages_and_histograms_are_not_merged(void **state) {
    (void)state;
    static const char *const observers[] = {"MovingAverageMinMaxObserver", "HistogramObserver"};
    for (size_t i = 0; i < 2; i++) {
        tare_model *model = prepare_example(observers[i]);
        CHECK_REFUSED(tare_calibration_check_mergeable(model, job_error()), TARE_UNSUPPORTED,
                      observers[i]);
        (void)watch(model, 0, 1, 8);
        const char *path = temp_path(observers[i]);
        CHECK_DONE(tare_calibration_write(model, NULL, 8, path, job_error()));
        CHECK_REFUSED(tare_calibration_merge(NULL, (const char *[]){path, path}, 2,
                                             temp_path("never"), NULL, job_error()),
                      TARE_UNSUPPORTED, observers[i]);
        // A single state serves them all the same.
        tare_model *fresh = prepare_example(observers[i]);
        CHECK_DONE(tare_calibration_read(fresh, path, NULL, job_error()));
        CHECK_DONE(tare_model_write(model, temp_path("x"), job_error()));
        CHECK_DONE(tare_model_write(fresh, temp_path("y"), job_error()));
        check_equal_files(temp_path("x"), temp_path("y"));
        tare_model_destroy(fresh);
        tare_model_destroy(model);
    }
}

// Their layers learn from the data as well, which no state holds.
static void fake_quantizers_are_kept_with_their_model_only(void **state) {
    (void)state;
    tare_model *model = read_example("conv_relu"), *prepared_one = NULL;
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = NULL;
    CHECK_DONE(tare_qconfig_mapping_for_backend(backend, true, &mapping, job_error()));
    const tare_prepare_options options = {.backend = backend, .qconfig_mapping = mapping};
    CHECK_DONE(tare_prepare_qat_fx(model, &options, &prepared_one, job_error()));
    static const char refusal[] = "a state holds the statistics of observers";
    CHECK_REFUSED(tare_calibration_check(prepared_one, job_error()), TARE_UNSUPPORTED, refusal);
    CHECK_REFUSED(tare_calibration_check_mergeable(prepared_one, job_error()), TARE_UNSUPPORTED,
                  refusal);
    CHECK_REFUSED(tare_calibration_write(prepared_one, NULL, 1, temp_path("never"), job_error()),
                  TARE_UNSUPPORTED, refusal);
    CHECK_REFUSED(tare_calibration_read(prepared_one, temp_path("all"), NULL, job_error()),
                  TARE_UNSUPPORTED, refusal);
    tare_model_destroy(prepared_one);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

static tare_status stop_at_second(void *user, int64_t done, int64_t total, tare_error *err) {
    int *calls = user;
    assert_int_equal(total, 37);
    assert_int_equal(done, 4 * (*calls + 1));
    return ++*calls == 2 ? tare__fail(err, TARE_IO, "enough") : TARE_OK;
}

static void progress_is_told_and_may_stop(void **state) {
    (void)state;
    tare_model *model = prepare_example(NULL);
    tare_data *data = NULL;
    int calls = 0;
    const tare_data_options options = {.batch_size = 4};
    const tare_calibrate_options how = {.progress = stop_at_second, .progress_user = &calls};
    CHECK_DONE(tare_data_open(data_spec, model, &options, &data, job_error()));
    CHECK_REFUSED(tare_calibrate_data(model, data, &how, NULL, job_error()), TARE_IO, "enough");
    assert_int_equal(calls, 2);
    tare_data_close(data);
    tare_model_destroy(model);
}

static void shards_are_disjoint_and_complete(void **state) {
    (void)state;
    tare_model *model = prepare_example(NULL);
    for (int64_t limit = 0; limit <= 37; limit += 7) {
        for (int64_t shards = 1; shards <= 12; shards++) {
            int64_t sum = 0;
            for (int64_t i = 0; i < shards; i++) {
                const tare_data_options options = {.batch_size = 4,
                                                   .sample_limit = limit,
                                                   .shard_index = i,
                                                   .shard_count = shards};
                tare_data *data = NULL;
                int64_t count = 0;
                CHECK_DONE(tare_data_open(data_spec, model, &options, &data, job_error()));
                for (bool done = false; !done;) {
                    tare_batch batch = {0};
                    CHECK_DONE(tare_data_next(data, &batch, &done, job_error()));
                    if (!done) count += batch.size;
                }
                assert_int_equal(count, tare_data_sample_count(data));
                sum += count;
                tare_data_close(data);
            }
            assert_int_equal(sum, limit > 0 ? limit : 37);
        }
    }
    tare_data *data = NULL;
    const tare_data_options cut = {.batch_size = 4, .shard_index = 1, .shard_count = 2};
    int64_t skipped = 0;
    CHECK_DONE(tare_data_open(data_spec, model, &cut, &data, job_error()));
    CHECK_DONE(tare_data_skip(data, 2, &skipped, job_error()));
    assert_int_equal(skipped, 8); // batches 1 and 3 of ten
    tare_batch batch = {0};
    bool done = false;
    CHECK_DONE(tare_data_next(data, &batch, &done, job_error()));
    assert_int_equal(batch.size, 4);
    CHECK_DONE(tare_data_skip(data, 9, &skipped, job_error()));
    assert_int_equal(skipped, 5); // the last but two, and the last, which is short
    tare_data_close(data);
    data = NULL;
    const tare_data_options wrong = {.shard_index = 2, .shard_count = 2};
    CHECK_REFUSED(tare_data_open(data_spec, model, &wrong, &data, job_error()),
                  TARE_INVALID_ARGUMENT, "shard 2 of 2");
    tare_model_destroy(model);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    char a[256], b[256], out[256];
    write_shard(0, 2, 0, "oom0.state");
    write_shard(1, 2, 0, "oom1.state");
    (void)snprintf(a, sizeof a, "%s", temp_path("oom0.state"));
    (void)snprintf(b, sizeof b, "%s", temp_path("oom1.state"));
    (void)snprintf(out, sizeof out, "%s", temp_path("oom.state"));
    const char *paths[] = {a, b};
    tare_model *model = prepare_example(NULL);
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(status, status = tare_calibration_read(model, a, NULL, NULL), (void)0);
    EVERY_ALLOCATION_FAILS(status, status = tare_calibration_merge(NULL, paths, 2, out, NULL, NULL),
                           (void)0);
    EVERY_ALLOCATION_FAILS(status, status = tare_calibration_write(model, NULL, 8, out, NULL),
                           (void)0);
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_split_gives_the_model_of_one_pass),
        cmocka_unit_test(what_was_seen_before_counts_once),
        cmocka_unit_test(warnings_go_with_the_data),
        cmocka_unit_test(merging_in_groups_is_merging_at_once),
        cmocka_unit_test(what_does_not_belong_together_is_refused),
        cmocka_unit_test(an_observer_stands_once_in_a_state),
        cmocka_unit_test(averages_and_histograms_are_not_merged),
        cmocka_unit_test(fake_quantizers_are_kept_with_their_model_only),
        cmocka_unit_test(progress_is_told_and_may_stop),
        cmocka_unit_test(shards_are_disjoint_and_complete),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
