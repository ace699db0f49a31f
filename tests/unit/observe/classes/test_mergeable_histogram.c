// SPDX-License-Identifier: Apache-2.0
// The mergeable histogram: one state for any order and split, and the range of least error.
#include "support/test.h"

#include <math.h>

#include "observe/observer.h"
#include "observe/observer_spec.h"

// --- helpers ---

static tare_status make(const char *arguments, module **out, tare_error *err) {
    tare_observer_spec *spec = NULL;
    json_t *parsed = NULL;
    char json[512];
    (void)snprintf(json, sizeof json,
                   "{\"class\": \"tare.MergeableHistogramObserver\", \"kwargs\": {%s}}", arguments);
    CHECK_OK(tare__json_parse(json, strlen(json), &parsed, NULL));
    const json_at at = tare__json_root(parsed);
    tare_status status = tare__observer_spec_from_json(&at, &spec, err);
    if (status == TARE_OK) status = tare__observer_spec_instantiate(NULL, spec, out, err);
    tare_observer_spec_release(spec);
    json_decref(parsed);
    return status;
}

static module *made(const char *arguments) {
    module *m = NULL;
    CHECK_OK(make(arguments, &m, NULL));
    return m;
}

static tare_status try_show(module *m, const float *values, int64_t count, tare_error *err) {
    tare_tensor *x = NULL;
    CHECK_OK(tare_tensor_from_data(TARE_FLOAT32, 1, &count, values, &x, NULL));
    const tare_status status = tare__observer_update(m, x, err);
    tare_tensor_release(x);
    return status;
}

static void show(module *m, const float *values, int64_t count) {
    CHECK_OK(try_show(m, values, count, NULL));
}

static void save(const module *m, map *out) {
    CHECK_OK(tare__observer_state_io.save(m, out, NULL));
}

static const int64_t *integers(const map *saved, const char *name) {
    const tare_tensor *t = tare__map_get(saved, name);
    assert_non_null(t);
    assert_int_equal(t->dtype, TARE_INT64);
    return t->data;
}

static void release(map *saved) {
    for (size_t i = 0; i < saved->count; i++) tare_tensor_release(saved->entries[i].value);
    tare__map_release(saved);
}

static void check_same_state(const module *a, const module *b) {
    map x = {0}, y = {0};
    save(a, &x);
    save(b, &y);
    assert_int_equal(x.count, y.count);
    for (size_t i = 0; i < x.count; i++) {
        const tare_tensor *left = x.entries[i].value, *right = tare__map_get(&y, x.entries[i].key);
        assert_int_equal(left->count, right->count);
        assert_memory_equal(left->data, right->data, tare__tensor_bytes(left));
    }
    release(&x);
    release(&y);
}

static uint64_t next_random(uint64_t *seed) {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static double uniform_random(uint64_t *seed) {
    return (double)(next_random(seed) >> 11) * 0x1p-53;
}

static float normal_random(uint64_t *seed) {
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += uniform_random(seed);
    return (float)sum;
}

// Values of all magnitudes, edges of bins, zeros of both signs and infinities.
static float any_value(uint64_t *seed, int spread) {
    const uint64_t kind = next_random(seed) % 16;
    const float sign = next_random(seed) % 2 != 0 ? 1.0F : -1.0F;
    if (kind == 0) return sign * 0.0F;
    if (kind == 1) return sign * INFINITY;
    const int exponent = (int)(next_random(seed) % (uint64_t)(2 * spread + 1)) - spread;
    if (kind == 2) return ldexpf(sign, exponent);
    return ldexpf(normal_random(seed), exponent);
}

// --- one state ---

static void check_splits(uint64_t seed, int spread, int64_t count) {
    enum { SHARDS = 5 };
    float *values = malloc((size_t)count * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++) values[i] = any_value(&seed, spread);
    module *whole = made("\"bins\": 256"), *shards[SHARDS];
    show(whole, values, count);
    for (int i = 0; i < SHARDS; i++) shards[i] = made("\"bins\": 256");
    for (int64_t i = count - 1; i > 0; i--) { // in another order
        const int64_t k = (int64_t)(next_random(&seed) % (uint64_t)(i + 1));
        const float kept = values[i];
        values[i] = values[k];
        values[k] = kept;
    }
    for (int64_t i = 0; i < count;) {
        int64_t size = 1 + (int64_t)(next_random(&seed) % (uint64_t)(count / 3 + 1));
        if (size > count - i) size = count - i;
        show(shards[next_random(&seed) % SHARDS], values + i, size);
        i += size;
    }
    for (int left = SHARDS; left > 1; left--) { // any two become one
        const int from = (int)(next_random(&seed) % (uint64_t)left);
        const int into = (from + 1 + (int)(next_random(&seed) % (uint64_t)(left - 1))) % left;
        CHECK_OK(tare__observer_merge(shards[into], shards[from], NULL));
        tare__module_release(shards[from]);
        shards[from] = shards[left - 1];
    }
    check_same_state(whole, shards[0]);
    tare__module_release(whole);
    tare__module_release(shards[0]);
    free(values);
}

static void any_order_and_split_gives_the_same_bits(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        check_splits(seed, (int)(seed % 4) * 40, 1 + (int64_t)(seed * seed) % 700);
        if (seed % 20 == 0) check_splits(seed, (int)seed / 20, 50000);
    }
}

static void a_bin_holds_the_values_between_its_edges(void **state) {
    (void)state;
    enum { COUNT = 40000, BINS = 64 };
    float *values = malloc(COUNT * sizeof *values);
    int64_t expected[BINS] = {0};
    uint64_t seed = 7;
    assert_non_null(values);
    for (int i = 0; i < COUNT; i++) values[i] = normal_random(&seed);
    values[5] = -7.5F; // hence the range is -8 to 8, and a bin a quarter
    for (int i = 0; i < COUNT; i++) {
        const int bin = (int)floor(fabs((double)values[i]) * 4);
        expected[values[i] < 0 ? BINS / 2 - 1 - bin : BINS / 2 + bin]++;
    }
    module *m = made("\"bins\": 64");
    map saved = {0};
    show(m, values, COUNT);
    save(m, &saved);
    assert_int_equal(*integers(&saved, "exponent"), 3);
    assert_memory_equal(integers(&saved, "counts"), expected, sizeof expected);
    release(&saved);
    tare__module_release(m);
    free(values);
}

static void infinities_are_counted_apart_and_nan_is_refused(void **state) {
    (void)state;
    module *m = made("\"bins\": 16"), *plain = made("\"bins\": 16");
    map saved = {0};
    tare_error *err = tare_error_create();
    show(m, (float[]){1, -INFINITY, INFINITY, 2}, 4);
    show(m, (float[]){INFINITY}, 1);
    show(plain, (float[]){1, 2}, 2);
    save(m, &saved);
    assert_int_equal(*integers(&saved, "infinities"), 3);
    map other = {0};
    save(plain, &other);
    assert_memory_equal(integers(&saved, "counts"), integers(&other, "counts"),
                        16 * sizeof(int64_t));
    assert_int_equal(try_show(m, (float[]){1, NAN}, 2, err), TARE_INVALID_ARGUMENT);
    assert_non_null(strstr(tare_error_message(err), "NaN"));
    tare_error_destroy(err);
    release(&saved);
    release(&other);
    tare__module_release(m);
    tare__module_release(plain);
}

// --- the range ---

// The squared error of quantizing the values as the observer proposes.
static double real_error(const qparams *q, const float *values, int count) {
    double sum = 0;
    for (int i = 0; i < count; i++) {
        double level = nearbyint((double)values[i] / q->scale[0]) + q->zero_point[0];
        if (level < (double)q->quant_min) level = (double)q->quant_min;
        if (level > (double)q->quant_max) level = (double)q->quant_max;
        const double error = (double)values[i] - (level - q->zero_point[0]) * q->scale[0];
        sum += error * error;
    }
    return sum;
}

static double error_of(const char *class, const char *arguments, const float *values, int count) {
    char json[512];
    json_t *parsed = NULL;
    tare_observer_spec *spec = NULL;
    module *m = NULL;
    const qparams *q = NULL;
    bool is_calibrated = false;
    (void)snprintf(json, sizeof json, "{\"class\": \"%s\", \"kwargs\": {%s}}", class, arguments);
    CHECK_OK(tare__json_parse(json, strlen(json), &parsed, NULL));
    const json_at at = tare__json_root(parsed);
    CHECK_OK(tare__observer_spec_from_json(&at, &spec, NULL));
    CHECK_OK(tare__observer_spec_instantiate(NULL, spec, &m, NULL));
    show(m, values, count);
    CHECK_OK(tare__observer_qparams(m, &q, &is_calibrated, NULL));
    const double error = real_error(q, values, count);
    tare__qparams_release(q);
    tare__module_release(m);
    tare_observer_spec_release(spec);
    json_decref(parsed);
    return error;
}

typedef enum shape { NORMAL, RECTIFIED, HEAVY, SKEWED, FEW_OUTLIERS, SHAPES } shape;

static float value_of(shape kind, uint64_t *seed) {
    const float x = normal_random(seed);
    switch (kind) {
    case RECTIFIED:
        return x > 0 ? x : 0;
    case HEAVY:
        return x * x * x;
    case SKEWED:
        return x > 0 ? 5 * x * x : x / 4;
    case FEW_OUTLIERS:
        return next_random(seed) % 5000 == 0 ? 40 * x : x;
    default:
        return x;
    }
}

// On values of all these kinds, with all 256 levels and with half of them.
static void its_error_is_near_the_least_and_below_the_others(void **state) {
    (void)state;
    enum { COUNT = 20000 };
    static const char *const kinds[] = {
        "\"dtype\": \"torch.quint8\"",
        "\"dtype\": \"torch.quint8\", \"reduce_range\": true",
        "\"dtype\": \"torch.qint8\", \"qscheme\": \"torch.per_tensor_symmetric\"",
    };
    float *values = malloc(COUNT * sizeof *values);
    assert_non_null(values);
    for (int kind = 0; kind < SHAPES; kind++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            uint64_t seed = 11 + (uint64_t)kind;
            for (int i = 0; i < COUNT; i++) values[i] = value_of((shape)kind, &seed);
            const double own = error_of("tare.MergeableHistogramObserver", kinds[k], values, COUNT);
            const double histogram = error_of("HistogramObserver", kinds[k], values, COUNT);
            const double extremes = error_of("MinMaxObserver", kinds[k], values, COUNT);
            assert_true(own <= 1.001 * histogram);
            assert_true(own <= 1.001 * extremes);
        }
    free(values);
}

static const qparams *proposal(const char *arguments, const float *values, int64_t count) {
    module *m = made(arguments);
    const qparams *q = NULL;
    bool is_calibrated = false;
    show(m, values, count);
    CHECK_OK(tare__observer_qparams(m, &q, &is_calibrated, NULL));
    assert_true(is_calibrated);
    tare__module_release(m);
    return q;
}

// A thousand values from 1 to 1000: bins of half a unit.
static void a_percentile_leaves_its_share_out(void **state) {
    (void)state;
    float values[1000];
    for (int i = 0; i < 1000; i++) values[i] = (float)(i + 1);
    const qparams *all = proposal("\"percentile\": 100", values, 1000);
    assert_float_equal(all->scale[0], (float)(1000.0 / 255), 1e-9);
    tare__qparams_release(all);
    const qparams *most = proposal("\"percentile\": 99", values, 1000);
    assert_float_equal(most->scale[0], (float)(990.5 / 255), 1e-6);
    tare__qparams_release(most);
}

// Half a million small values and one large one: the large one is cut off. Values that are spread
// evenly lose least where none is.
static void entropy_cuts_off_what_says_little(void **state) {
    (void)state;
    enum { COUNT = 100000 };
    float *values = malloc(COUNT * sizeof *values);
    uint64_t seed = 3;
    assert_non_null(values);
    for (int i = 0; i < COUNT; i++) values[i] = normal_random(&seed);
    values[7] = 60;
    const qparams *cut = proposal("\"entropy\": true, \"dtype\": \"torch.quint8\"", values, COUNT);
    const double width = cut->scale[0] * 255;
    assert_true(width > 4 && width < 40);
    tare__qparams_release(cut);
    for (int i = 0; i < COUNT; i++) values[i] = (float)uniform_random(&seed);
    const qparams *all = proposal("\"entropy\": true, \"dtype\": \"torch.quint8\"", values, COUNT);
    assert_true(all->scale[0] * 255 > 0.95);
    tare__qparams_release(all);
    free(values);
}

// Three quarters are zeros, as after a ReLU: they say nothing of the range of the others.
static void zeros_do_not_narrow_the_range_of_least_entropy(void **state) {
    (void)state;
    enum { COUNT = 100000 };
    float *values = malloc(COUNT * sizeof *values);
    uint64_t seed = 3;
    assert_non_null(values);
    for (int i = 0; i < COUNT; i++) values[i] = i % 4 == 0 ? fabsf(normal_random(&seed)) : 0;
    const qparams *q = proposal("\"entropy\": true, \"dtype\": \"torch.quint8\"", values, COUNT);
    assert_true(255 * q->scale[0] > 2.5);
    tare__qparams_release(q);
    free(values);
}

static void one_value_is_a_range_too(void **state) {
    (void)state;
    static const float values[] = {0, -0.0F, 3, -1e-42F, -2.5e38F, 3.4e38F};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        const qparams *q = proposal("\"dtype\": \"torch.quint8\"", &values[i], 1);
        assert_true(q->scale[0] > 0);
        if (fabs((double)values[i]) > 1e-30)
            assert_true(real_error(q, &values[i], 1) <=
                        1e-12 * (double)values[i] * (double)values[i]);
        tare__qparams_release(q);
    }
}

static void nothing_seen_gives_torch_s_defaults(void **state) {
    (void)state;
    module *m = made("");
    const qparams *q = NULL;
    bool is_calibrated = true;
    CHECK_OK(tare__observer_qparams(m, &q, &is_calibrated, NULL));
    assert_false(is_calibrated);
    assert_float_equal(q->scale[0], 1, 0);
    tare__qparams_release(q);
    tare__module_release(m);
}

// --- what is refused ---

static void wrong_arguments_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *arguments, *words;
    } cases[] = {
        {"\"bins\": 100", "power of two"},
        {"\"bins\": 8", "power of two"},
        {"\"percentile\": 50", "above 50"},
        {"\"percentile\": 101", "at most 100"},
        {"\"percentile\": 99, \"entropy\": true", "not both"},
        {"\"is_dynamic\": true", "dynamic"},
        {"\"qscheme\": \"torch.per_channel_affine\"", "per_tensor_affine"},
        {"\"ch_axis\": 1", "has no argument 'ch_axis'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        module *m = NULL;
        tare_error *err = tare_error_create();
        assert_int_not_equal(make(cases[i].arguments, &m, err), TARE_OK);
        assert_non_null(strstr(tare_error_message(err), cases[i].words));
        tare_error_destroy(err);
    }
}

// Counts that do not add up, an exponent that is not the least, a range without values.
static void a_state_that_no_data_gives_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *name;
        size_t at;
        int64_t value;
    } changes[] = {{"counts", 3, -1},    {"counts", 3, INT64_MAX}, {"exponent", 0, 2},
                   {"exponent", 0, 500}, {"exponent", 0, 0},       {"infinities", 0, -1}};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        module *m = made("\"bins\": 16"), *fresh = made("\"bins\": 16");
        map saved = {0};
        show(m, (float[]){1, -1, 1.5F}, 3);
        save(m, &saved);
        ((int64_t *)((tare_tensor *)tare__map_get(&saved, changes[i].name))->data)[changes[i].at] =
            changes[i].value;
        assert_int_equal(tare__observer_load(fresh, &saved, NULL), TARE_MALFORMED_FILE);
        release(&saved);
        tare__module_release(m);
        tare__module_release(fresh);
    }
}

static void merging_more_than_can_be_counted_is_refused(void **state) {
    (void)state;
    module *m = made("\"bins\": 16");
    map saved = {0};
    show(m, (float[]){1}, 1);
    save(m, &saved);
    int64_t *counts = ((tare_tensor *)tare__map_get(&saved, "counts"))->data;
    counts[12] = INT64_MAX - 5;
    module *full = made("\"bins\": 16");
    CHECK_OK(tare__observer_load(full, &saved, NULL));
    assert_int_equal(tare__observer_merge(full, full, NULL), TARE_INVALID_ARGUMENT);
    release(&saved);
    tare__module_release(m);
    tare__module_release(full);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_order_and_split_gives_the_same_bits),
        cmocka_unit_test(a_bin_holds_the_values_between_its_edges),
        cmocka_unit_test(infinities_are_counted_apart_and_nan_is_refused),
        cmocka_unit_test(its_error_is_near_the_least_and_below_the_others),
        cmocka_unit_test(a_percentile_leaves_its_share_out),
        cmocka_unit_test(entropy_cuts_off_what_says_little),
        cmocka_unit_test(zeros_do_not_narrow_the_range_of_least_entropy),
        cmocka_unit_test(one_value_is_a_range_too),
        cmocka_unit_test(nothing_seen_gives_torch_s_defaults),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(a_state_that_no_data_gives_is_refused),
        cmocka_unit_test(merging_more_than_can_be_counted_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
