// SPDX-License-Identifier: Apache-2.0
// Observers as modules: their states survive copies, files and merging, and failures leave none.
#include "support/test.h"

#include "core/json/json.h"
#include "observe/observer.h"
#include "ops/call.h"
#include "support/observers.h"

// --- modules and their states ---

static void a_module_returns_its_input(void **state) {
    (void)state;
    module *m = made(CLASS("MinMaxObserver"));
    tare_tensor *x = row(2, (float[]){-1, 4});
    const value argument = {.kind = VALUE_TENSOR, .as.tensor = x};
    op_call call = {.module = m, .own = m, .args = &argument, .arg_count = 1};
    CHECK_OK(m->class->shape(&call));
    assert_ptr_equal(call.result.as.tensor, x);
    CHECK_OK(m->class->forward(&call));
    assert_text(m, "MinMaxObserver(min_val=-1.0, max_val=4.0)");
    tare_tensor_release(call.result.as.tensor);
    tare_tensor_release(x);
    tare__module_release(m);
}

static const char *const with_state[] = {
    CLASS("MinMaxObserver"),
    CLASS("MovingAverageMinMaxObserver"),
    PER_CHANNEL,
    "{\"class\": \"MovingAveragePerChannelMinMaxObserver\", \"kwargs\": {\"ch_axis\": 0}}",
    "{\"class\": \"HistogramObserver\", \"kwargs\": {\"bins\": 64, \"eps\": 0.000244140625}}",
    "{\"class\": \"tare.MergeableHistogramObserver\", \"kwargs\": {\"bins\": 64}}",
    "{\"class\": \"tare.PerGroupMinMaxObserver\", \"kwargs\": {\"group_size\": 2}}",
    CLASS("tare.MSEObserver"),
    "{\"class\": \"tare.PerChannelMSEObserver\", \"kwargs\": {\"ch_axis\": 0}}",
    "{\"class\": \"tare.PerGroupMSEObserver\", \"kwargs\": {\"group_size\": 3}}",
};
enum { WITH_STATE_COUNT = sizeof with_state / sizeof *with_state };

static void show_noise(module *m, uint32_t seed) {
    float values[24];
    for (int i = 0; i < 24; i++) values[i] = noise(&seed);
    tare_tensor *x = floats(2, (int64_t[]){4, 6}, values);
    CHECK_OK(tare__observer_update(m, x, NULL));
    tare_tensor_release(x);
}

static void clones_are_independent(void **state) {
    (void)state;
    for (size_t i = 0; i < WITH_STATE_COUNT; i++) {
        module *m = made(with_state[i]), *clone = NULL, *again = made(with_state[i]);
        show_noise(m, 1);
        show_noise(again, 1);
        CHECK_OK(tare__module_clone(m, &clone, NULL));
        show_noise(m, 2);
        assert_same_qparams(clone, again);
        show_noise(clone, 2);
        assert_same_qparams(clone, m);
        tare__module_release(m);
        tare__module_release(clone);
        tare__module_release(again);
    }
}

static void release_tensors(map *tensors) {
    for (size_t i = 0; i < tensors->count; i++) tare_tensor_release(tensors->entries[i].value);
    tare__map_release(tensors);
}

// A module as the reader of a model file makes it: class and config, no state yet.
static module *as_read(const module *like) {
    module *m = NULL;
    CHECK_OK(tare__module_create(like->class, &m, NULL));
    for (size_t i = 0; i < like->config_count; i++)
        CHECK_OK(tare__module_set_config(m, like->config[i].name, &like->config[i].value, NULL));
    return m;
}

static void statistics_survive_a_file(void **state) {
    (void)state;
    for (size_t i = 0; i < WITH_STATE_COUNT; i++) {
        module *m = made(with_state[i]), *read = as_read(m);
        map tensors = {0};
        show_noise(m, 1);
        show_noise(m, 2);
        CHECK_OK(tare__observer_state_io.save(m, &tensors, NULL));
        assert_true(tare__map_has(&tensors, "eps"));
        CHECK_OK(tare__observer_state_io.load(read, &tensors, NULL));
        assert_same_qparams(m, read);
        show_noise(m, 3);
        show_noise(read, 3);
        assert_same_qparams(m, read);
        release_tensors(&tensors);
        tare__module_release(m);
        tare__module_release(read);
    }
}

static void a_module_without_tensors_has_seen_nothing(void **state) {
    (void)state;
    module *m = made(CLASS("PlaceholderObserver")), *read = as_read(m);
    const map none = {0};
    CHECK_OK(tare__observer_state_io.load(read, &none, NULL));
    assert_text(read, "PlaceholderObserver(dtype=torch.float32, is_dynamic=False)");
    tare__module_release(m);
    tare__module_release(read);
}

static void broken_states_are_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < WITH_STATE_COUNT; i++) {
        module *m = made(with_state[i]);
        map tensors = {0};
        show_noise(m, 1);
        CHECK_OK(tare__observer_state_io.save(m, &tensors, NULL));
        for (size_t k = 0; k < tensors.count; k++) {
            module *read = as_read(m);
            void *kept = tensors.entries[k].value;
            tare_tensor *wrong = row(3, (float[]){1, 2, 3});
            tensors.entries[k].value = wrong;
            const tare_status status = tare__observer_state_io.load(read, &tensors, NULL);
            assert_int_equal(status, TARE_MALFORMED_FILE);
            assert_null(read->state);
            tensors.entries[k].value = kept;
            tare_tensor_release(wrong);
            tare__module_release(read);
        }
        release_tensors(&tensors);
        tare__module_release(m);
    }
}

static void ranges_merge_to_the_same_bits_for_any_split(void **state) {
    (void)state;
    static const char *const mergeable[] = {CLASS("MinMaxObserver"), PER_CHANNEL,
                                            CLASS("tare.MergeableHistogramObserver"),
                                            CLASS("tare.PerGroupMinMaxObserver")};
    for (size_t i = 0; i < sizeof mergeable / sizeof *mergeable; i++)
        for (uint32_t split = 0; split <= 6; split++) {
            module *all = made(mergeable[i]), *left = made(mergeable[i]),
                   *right = made(mergeable[i]);
            for (uint32_t batch = 0; batch < 6; batch++) {
                show_noise(all, batch);
                show_noise(batch < split ? left : right, batch);
            }
            CHECK_OK(tare__observer_merge(left, right, NULL));
            assert_same_qparams(left, all);
            tare__module_release(all);
            tare__module_release(left);
            tare__module_release(right);
        }
}

static void merging_what_cannot_be_merged_is_refused(void **state) {
    (void)state;
    module *range = made(CLASS("MinMaxObserver")), *histogram = made(CLASS("HistogramObserver")),
           *placeholder = made(CLASS("PlaceholderObserver"));
    assert_int_equal(tare__observer_merge(range, histogram, NULL), TARE_INVALID_ARGUMENT);
    assert_int_equal(tare__observer_merge(histogram, histogram, NULL), TARE_UNSUPPORTED);
    CHECK_OK(tare__observer_merge(placeholder, placeholder, NULL));
    tare__module_release(range);
    tare__module_release(histogram);
    tare__module_release(placeholder);
}

// --- memory ---

static tare_status whole_life(const char *json) {
    module *m = NULL, *clone = NULL, *read = NULL;
    const qparams *q = NULL;
    bool is_calibrated = false;
    map tensors = {0};
    json_t *parsed = NULL;
    tare_observer_spec *spec = NULL;
    tare_tensor *x = NULL;
    const int64_t shape[] = {2, 4};
    const float values[] = {1, 2, -INFINITY, 4, 5, 6, 7, 8};
    tare_status status = tare__json_parse(json, strlen(json), &parsed, NULL);
    const json_at at = tare__json_root(parsed);
    if (status == TARE_OK) status = tare__observer_spec_from_json(&at, &spec, NULL);
    if (status == TARE_OK) status = tare__observer_spec_instantiate(NULL, spec, &m, NULL);
    if (status == TARE_OK) status = tare_tensor_from_data(TARE_FLOAT32, 2, shape, values, &x, NULL);
    if (status == TARE_OK) status = tare__observer_update(m, x, NULL);
    if (status == TARE_OK) status = tare__module_clone(m, &clone, NULL);
    if (status == TARE_OK) status = tare__observer_update(clone, x, NULL);
    if (status == TARE_OK) status = tare__observer_qparams(clone, &q, &is_calibrated, NULL);
    if (status == TARE_OK) status = tare__observer_state_io.save(clone, &tensors, NULL);
    if (status == TARE_OK) status = tare__module_create(m->class, &read, NULL);
    if (status == TARE_OK && m->config_count > 0)
        status = tare__module_set_config(read, m->config[0].name, &m->config[0].value, NULL);
    if (status == TARE_OK) status = tare__observer_state_io.load(read, &tensors, NULL);
    release_tensors(&tensors);
    tare__qparams_release(q);
    tare_tensor_release(x);
    tare__module_release(m);
    tare__module_release(clone);
    tare__module_release(read);
    tare_observer_spec_release(spec);
    json_decref(parsed);
    return status;
}

static void a_failed_allocation_is_an_error_and_no_leak(void **state) {
    (void)state;
    static const char *const cases[] = {
        "{\"class\": \"HistogramObserver\", \"kwargs\": {\"bins\": 16}}",
        "{\"class\": \"PerChannelMinMaxObserver\", \"kwargs\": {\"ch_axis\": 1}}",
        "{\"class\": \"tare.MergeableHistogramObserver\", \"kwargs\": {\"bins\": 16}}",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tare_status status = TARE_OK;
        EVERY_ALLOCATION_FAILS(status, status = whole_life(cases[i]), (void)0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_module_returns_its_input),
        cmocka_unit_test(clones_are_independent),
        cmocka_unit_test(statistics_survive_a_file),
        cmocka_unit_test(a_module_without_tensors_has_seen_nothing),
        cmocka_unit_test(broken_states_are_refused),
        cmocka_unit_test(ranges_merge_to_the_same_bits_for_any_split),
        cmocka_unit_test(merging_what_cannot_be_merged_is_refused),
        cmocka_unit_test(a_failed_allocation_is_an_error_and_no_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
