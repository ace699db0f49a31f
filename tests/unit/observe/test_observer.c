// SPDX-License-Identifier: Apache-2.0
// Observers: recorded vectors, arguments, what they print and see, classes of the user's own.
#include "support/test.h"

#include <math.h>

#include "core/tensor/text.h"
#include "observe/classes/builtin.h"
#include "observe/observer.h"
#include "observe/observer_spec.h"
#include "ops/call.h"
#include "replay/numerics.h"
#include "support/observers.h"

// --- recorded vectors ---

typedef struct tally {
    int passed, failed;
    char last[256];
} tally;

static void count(void *user, const char *name, const char *difference) {
    tally *t = user;
    if (difference == NULL)
        t->passed++;
    else
        t->failed++;
    if (difference != NULL) snprintf(t->last, sizeof t->last, "%s: %s", name, difference);
}

static void recorded_vectors_are_equal_to_the_bit(void **state) {
    (void)state;
    tally t = {0};
    CHECK_OK(numerics_run(&numerics_observers, "tests/data/numerics", count, &t, NULL));
    assert_string_equal(t.last, "");
    assert_int_equal(t.passed, 408);
}

// One recorded case with one number changed, in a folder of its own.
static void run_changed(const char *key, double by, tally *out) {
    char dir[] = "/tmp/tare_observers_XXXXXX", path[64];
    numerics_cases cases = {0};
    map tensors = {0};
    assert_non_null(mkdtemp(dir));
    CHECK_OK(numerics_read("tests/data/numerics", "observers", &cases, NULL));
    json_t *one = json_array_get(cases.list, 0), *values = json_object_get(one, key);
    json_array_set_new(values, 0, json_real(json_number_value(json_array_get(values, 0)) + by));
    for (size_t i = 0; i < cases.tensors.tensors.count; i++) {
        const map_entry *e = &cases.tensors.tensors.entries[i];
        if (strncmp(e->key, "0.", 2) == 0) assert_true(tare__map_set(&tensors, e->key, e->value));
    }
    snprintf(path, sizeof path, "%s/observers.safetensors", dir);
    CHECK_OK(tare__safetensors_write(path, &tensors, NULL, NULL));
    json_t *list = json_pack("[O]", one);
    char json_path[64];
    snprintf(json_path, sizeof json_path, "%s/observers.json", dir);
    assert_int_equal(json_dump_file(list, json_path, JSON_REAL_PRECISION(17)), 0);
    CHECK_OK(numerics_run(&numerics_observers, dir, count, out, NULL));
    json_decref(list);
    tare__map_release(&tensors);
    numerics_release(&cases);
    remove(path);
    remove(json_path);
    remove(dir);
}

static void a_changed_vector_is_seen(void **state) {
    (void)state;
    static const char *const keys[] = {"min_val", "max_val", "scale", "zero_point"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        tally same = {0}, changed = {0};
        run_changed(keys[i], 0, &same);
        assert_string_equal(same.last, "");
        run_changed(keys[i], i == 3 ? 1 : 1e-6, &changed);
        assert_int_equal(changed.failed, 1);
        assert_non_null(strstr(changed.last, keys[i]));
    }
}

// --- arguments ---

static void assert_refused(const char *json, tare_status expected, const char *message,
                           const char *hint) {
    module *m = NULL;
    tare_error *err = tare_error_create();
    assert_int_equal(make(json, &m, err), expected);
    assert_null(m);
    assert_non_null(strstr(tare_error_message(err), message));
    assert_non_null(strstr(tare_error_hint(err), hint));
    tare_error_destroy(err);
}

static void wrong_arguments_are_refused_by_name(void **state) {
    (void)state;
    assert_refused("{\"class\": \"MinMaxObserver\", \"kwargs\": {\"quant_mim\": 0}}",
                   TARE_INVALID_ARGUMENT, "MinMaxObserver has no argument 'quant_mim'",
                   "quant_min");
    assert_refused("{\"class\": \"MinMaxObserver\", \"kwargs\": {\"bins\": 8}}",
                   TARE_INVALID_ARGUMENT, "MinMaxObserver has no argument 'bins'", "");
    assert_refused("{\"class\": \"HistogramObserver\", \"kwargs\": {\"reduce_range\": 1}}",
                   TARE_INVALID_ARGUMENT,
                   "HistogramObserver: argument 'reduce_range' must be a bool, found 1", "");
    assert_refused("{\"class\": \"HistogramObserver\", \"kwargs\": {\"dtype\": \"torch.quint9\"}}",
                   TARE_INVALID_ARGUMENT, "must be a dtype, found 'torch.quint9'", "");
    assert_refused("{\"class\": \"HistogramObserver\", \"kwargs\": {\"bins\": 0}}",
                   TARE_INVALID_ARGUMENT, "bins must be from 1", "");
    assert_refused(CLASS("HistogrammObserver"), TARE_NOT_FOUND,
                   "there is no observer class 'HistogrammObserver'", "HistogramObserver");
    assert_refused(CLASS("FixedQParamsObserver"), TARE_INVALID_ARGUMENT, "scale and zero_point",
                   "");
}

static void torch_s_refusals_have_torch_s_words(void **state) {
    (void)state;
    assert_refused("{\"class\": \"MinMaxObserver\", \"kwargs\": {\"dtype\": \"torch.float16\"}}",
                   TARE_INVALID_ARGUMENT, "Default Observer only works for (torch.qint8, ", "");
    assert_refused("{\"class\": \"MinMaxObserver\", \"kwargs\": {\"quant_min\": 1, "
                   "\"quant_max\": 5}}",
                   TARE_INVALID_ARGUMENT, "Used-specified quantization range must include 0.", "");
    assert_refused("{\"class\": \"MinMaxObserver\", \"kwargs\": {\"quant_min\": 0, "
                   "\"quant_max\": 0}}",
                   TARE_INVALID_ARGUMENT, "qmin must be strictly less than qmax", "");
    assert_refused("{\"class\": \"MinMaxObserver\", \"kwargs\": {\"dtype\": \"torch.qint8\", "
                   "\"quant_min\": -128, \"quant_max\": 128}}",
                   TARE_INVALID_ARGUMENT, "not exceed the maximum bit range (=256).", "");
    assert_refused("{\"class\": \"MinMaxObserver\", \"kwargs\": {\"qscheme\": "
                   "\"torch.per_channel_affine\"}}",
                   TARE_UNSUPPORTED, "MinMaxObserver's qscheme only support ", "");
    assert_refused("{\"class\": \"PerChannelMinMaxObserver\", \"kwargs\": {\"is_dynamic\": true}}",
                   TARE_UNSUPPORTED,
                   "PerChannelMinMaxObserver doesn't support dynamic quantization", "");
    assert_refused("{\"class\": \"MovingAverageMinMaxObserver\", \"kwargs\": {\"is_dynamic\": "
                   "true}}",
                   TARE_UNSUPPORTED, "for averaging constant of 0.01", "");
    assert_refused("{\"class\": \"PerChannelMinMaxObserver\", \"kwargs\": {\"reduce_range\": "
                   "true, \"qscheme\": \"torch.per_channel_symmetric\"}}",
                   TARE_UNSUPPORTED, "Cannot reduce range for symmetric quantization for quint8",
                   "");
}

static void descriptors_have_the_names_of_their_rows(void **state) {
    (void)state;
    for (size_t i = 0; i < tare__observer_class_table.count; i++) {
        const module_class *class = &tare__observer_class_table.rows[i];
        assert_ptr_equal(class->kind, tare__builtin_observer_at(i));
        assert_string_equal(class->print_name, tare__builtin_observer_at(i)->name);
    }
    assert_null(tare__builtin_observer_at(tare__observer_class_table.count));
}

typedef struct range_case {
    const char *dtype;
    bool reduce_range;
    int64_t min, max;
} range_case;

static void ranges_follow_from_dtype_and_reduce_range(void **state) {
    (void)state;
    static const range_case cases[] = {
        {"torch.qint8", false, -128, 127}, {"torch.qint8", true, -64, 63},
        {"torch.quint8", false, 0, 255},   {"torch.quint8", true, 0, 127},
        {"torch.uint8", true, 0, 127},     {"torch.qint32", true, INT32_MIN, INT32_MAX},
        {"torch.uint16", false, 0, 65535}, {"torch.int16", false, -32768, 32767},
        {"torch.quint4x2", false, 0, 15},  {"torch.float8_e5m2", false, 0, 15},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tare_observer_info info;
        tare_observer_spec *spec = tare_observer_spec_create("MinMaxObserver");
        tare_observer_spec_set_dtype(spec, "dtype", tare_dtype_from_name(cases[i].dtype));
        tare_observer_spec_set_bool(spec, "reduce_range", cases[i].reduce_range);
        CHECK_OK(tare__observer_spec_info(NULL, spec, &info, NULL));
        assert_int_equal(info.quant_min, cases[i].min);
        assert_int_equal(info.quant_max, cases[i].max);
        assert_true(info.has_range && info.has_eps && info.has_qparams);
        assert_true(info.eps == 0x1p-23F);
        tare_observer_spec_release(spec);
    }
}

static void custom_ranges_are_halved_downwards(void **state) {
    (void)state;
    tare_observer_info info;
    tare_observer_spec *spec = spec_of("{\"class\": \"HistogramObserver\", \"kwargs\": {\"dtype\": "
                                       "\"torch.qint8\", \"quant_min\": -127, \"quant_max\": 127, "
                                       "\"reduce_range\": true}}");
    CHECK_OK(tare__observer_spec_info(NULL, spec, &info, NULL));
    assert_int_equal(info.quant_min, -64);
    assert_int_equal(info.quant_max, 63);
    tare_observer_spec_release(spec);
}

static void placeholders_say_what_they_are(void **state) {
    (void)state;
    tare_observer_info info;
    tare_observer_spec *spec = spec_of("{\"class\": \"PlaceholderObserver\", \"kwargs\": {\"dtype\""
                                       ": \"torch.quint8\", \"quant_min\": 0, \"quant_max\": 255, "
                                       "\"is_dynamic\": true}}");
    CHECK_OK(tare__observer_spec_info(NULL, spec, &info, NULL));
    assert_true(info.is_dynamic && info.has_range && !info.has_qparams && !info.reuses_input);
    assert_int_equal(info.dtype, TARE_QUINT8);
    tare_observer_spec_release(spec);
    spec = tare_observer_spec_create("torch.ao.quantization.observer.ReuseInputObserver");
    CHECK_OK(tare__observer_spec_info(NULL, spec, &info, NULL));
    assert_true(info.reuses_input && !info.has_range && !info.has_eps);
    tare_observer_spec_release(spec);
}

static void setters_remember_their_first_error(void **state) {
    (void)state;
    tare_error *err = tare_error_create();
    module *m = NULL;
    tare_observer_spec *spec = tare_observer_spec_create("MinMaxObserver");
    tare_observer_spec_set_dtype(spec, "dtype", TARE_DTYPE_UNSET);
    tare_observer_spec_set_int(spec, NULL, 3);
    assert_int_equal(tare__observer_spec_instantiate(NULL, spec, &m, err), TARE_INVALID_ARGUMENT);
    assert_string_equal(tare_error_message(err), "MinMaxObserver: argument 'dtype' is no dtype");
    tare_observer_spec_release(spec);
    tare_error_destroy(err);
}

// --- what they print ---

static void fresh_observers_print_as_in_torch(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {CLASS("MinMaxObserver"), "MinMaxObserver(min_val=inf, max_val=-inf)"},
        {CLASS("HistogramObserver"), "HistogramObserver(min_val=inf, max_val=-inf)"},
        {CLASS("PerChannelMinMaxObserver"),
         "PerChannelMinMaxObserver(min_val=tensor([]), max_val=tensor([]))"},
        {"{\"class\": \"PlaceholderObserver\", \"kwargs\": {\"dtype\": \"torch.float16\", "
         "\"is_dynamic\": true}}",
         "PlaceholderObserver(dtype=torch.float16, is_dynamic=True)"},
        {"{\"class\": \"FixedQParamsObserver\", \"kwargs\": {\"scale\": 0.00390625, "
         "\"zero_point\": 0}}",
         "FixedQParamsObserver()"},
        {CLASS("ReuseInputObserver"), "ReuseInputObserver()"},
        {CLASS("NoopObserver"), "NoopObserver()"},
        {CLASS("RecordingObserver"), "RecordingObserver()"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        module *m = made(cases[i][0]);
        assert_text(m, cases[i][1]);
        tare__module_release(m);
    }
}

static void calibrated_observers_print_their_ranges(void **state) {
    (void)state;
    module *m = made(CLASS("MinMaxObserver"));
    SHOW(m, -1.0416680574417114F, 0.7983139157295227F);
    assert_text(m, "MinMaxObserver(min_val=-1.0416680574417114, max_val=0.7983139157295227)");
    tare__module_release(m);
    m = made(CLASS("PerChannelMinMaxObserver"));
    tare_tensor *x = floats(2, (int64_t[]){2, 2}, (float[]){-1, 2, 0.5F, 3});
    CHECK_OK(tare__observer_update(m, x, NULL));
    assert_text(m, "PerChannelMinMaxObserver(min_val=tensor([-1.0000,  0.5000]), "
                   "max_val=tensor([2., 3.]))");
    tare_tensor_release(x);
    tare__module_release(m);
}

static void assert_tensor_text(size_t n, const float *values, const char *expected) {
    text t = {0};
    tare__text_float_tensor(&t, values, n);
    assert_string_equal(tare__text_chars(&t), expected);
    tare__text_release(&t);
}

static void tensors_print_as_in_torch(void **state) {
    (void)state;
    assert_tensor_text(1, (float[]){0x1p-23F}, "tensor([1.1921e-07])");
    assert_tensor_text(1, (float[]){0.00390625F}, "tensor([0.0039])");
    assert_tensor_text(1, (float[]){0}, "tensor([0.])");
    assert_tensor_text(2, (float[]){INFINITY, NAN}, "tensor([inf, nan])");
    assert_tensor_text(3, (float[]){1, -2, INFINITY}, "tensor([ 1., -2., inf])");
    assert_tensor_text(2, (float[]){0.001F, 10}, "tensor([1.0000e-03, 1.0000e+01])");
    assert_tensor_text(2, (float[]){0, 2000000000}, "tensor([0.0000e+00, 2.0000e+09])");
    float many[1200];
    for (int i = 0; i < 1200; i++) many[i] = 1.5F;
    assert_tensor_text(9, many,
                       "tensor([1.5000, 1.5000, 1.5000, 1.5000, 1.5000, 1.5000, 1.5000, 1.5000, "
                       "1.5000])");
    assert_tensor_text(10, many,
                       "tensor([1.5000, 1.5000, 1.5000, 1.5000, 1.5000, 1.5000, 1.5000, 1.5000, "
                       "1.5000,\n        1.5000])");
    assert_tensor_text(1200, many,
                       "tensor([1.5000, 1.5000, 1.5000,  ..., 1.5000, 1.5000, 1.5000])");
}

// --- what they see ---

static void empty_tensors_are_not_seen(void **state) {
    (void)state;
    static const char *const cases[] = {CLASS("MinMaxObserver"), CLASS("HistogramObserver"),
                                        CLASS("PerChannelMinMaxObserver")};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        module *m = made(cases[i]);
        const qparams *q = NULL;
        bool is_calibrated = true;
        show(m, 0, NULL);
        CHECK_OK(tare__observer_qparams(m, &q, &is_calibrated, NULL));
        assert_false(is_calibrated);
        assert_true(q->count == 1 && q->scale[0] == 1 && q->zero_point[0] == 0);
        tare__qparams_release(q);
        tare__module_release(m);
    }
}

static void other_dtypes_are_seen_as_float32(void **state) {
    (void)state;
    module *m = made(CLASS("MinMaxObserver"));
    tare_tensor *t = NULL;
    const int64_t two = 2;
    CHECK_OK(tare_tensor_from_data(TARE_FLOAT64, 1, &two, (double[]){-0.1, 1}, &t, NULL));
    CHECK_OK(tare__observer_update(m, t, NULL));
    tare_tensor_release(t);
    CHECK_OK(tare_tensor_from_data(TARE_INT64, 1, &two, (int64_t[]){0, 7}, &t, NULL));
    CHECK_OK(tare__observer_update(m, t, NULL));
    tare_tensor_release(t);
    assert_text(m, "MinMaxObserver(min_val=-0.10000000149011612, max_val=7.0)");
    tare__module_release(m);
}

static void nan_reaches_the_range_wherever_it_stands(void **state) {
    (void)state;
    for (int at = 0; at < 40; at++) {
        float values[40] = {0};
        values[at] = NAN;
        module *m = made(CLASS("MinMaxObserver"));
        show(m, 40, values);
        SHOW(m, 1, 2);
        assert_text(m, "MinMaxObserver(min_val=nan, max_val=nan)");
        tare__module_release(m);
    }
}

static void histograms_drop_infinities_and_refuse_nan(void **state) {
    (void)state;
    module *m = made(CLASS("HistogramObserver")), *same = made(CLASS("HistogramObserver"));
    SHOW(m, -INFINITY, -INFINITY);
    assert_text(m, "HistogramObserver(min_val=inf, max_val=-inf)");
    SHOW(m, 1, INFINITY, -2, -INFINITY, 3);
    SHOW(same, 1, -2, 3);
    assert_same_qparams(m, same);
    tare_tensor *t = row(2, (float[]){NAN, 1});
    tare_error *err = tare_error_create();
    assert_int_equal(tare__observer_update(m, t, err), TARE_INVALID_ARGUMENT);
    assert_non_null(strstr(tare_error_message(err), "is not finite"));
    assert_string_equal(tare_error_where(err), "HistogramObserver");
    assert_same_qparams(m, same); // a refused batch leaves no trace
    tare_error_destroy(err);
    tare_tensor_release(t);
    tare__module_release(m);
    tare__module_release(same);
}

static void extremes_hold_for_every_length(void **state) {
    (void)state;
    float values[70];
    for (int64_t n = 1; n <= 70; n++)
        for (int64_t least = 0; least < n; least += 7) {
            module *m = made(CLASS("MinMaxObserver"));
            for (int64_t i = 0; i < n; i++) values[i] = (float)(i == least ? -3 : 1);
            show(m, n, values);
            if (n > 1) assert_text(m, "MinMaxObserver(min_val=-3.0, max_val=1.0)");
            tare__module_release(m);
        }
}

static void channels_are_found_on_any_axis(void **state) {
    (void)state;
    static const char *const expected[] = {
        "PerChannelMinMaxObserver(min_val=tensor([0., 6.]), max_val=tensor([ 5., 11.]))",
        "PerChannelMinMaxObserver(min_val=tensor([0., 2., 4.]), max_val=tensor([ 7.,  9., 11.]))",
        "PerChannelMinMaxObserver(min_val=tensor([0., 1.]), max_val=tensor([10., 11.]))",
    };
    float values[12];
    for (int i = 0; i < 12; i++) values[i] = (float)i;
    tare_tensor *x = floats(3, (int64_t[]){2, 3, 2}, values);
    for (int axis = -3; axis < 3; axis++) {
        tare_observer_spec *spec = tare_observer_spec_create("PerChannelMinMaxObserver");
        module *m = NULL;
        tare_observer_spec_set_int(spec, "ch_axis", axis);
        CHECK_OK(tare__observer_spec_instantiate(NULL, spec, &m, NULL));
        CHECK_OK(tare__observer_update(m, x, NULL));
        assert_text(m, expected[(axis + 3) % 3]);
        tare__module_release(m);
        tare_observer_spec_release(spec);
    }
    tare_tensor_release(x);
}

static void channels_must_stay_as_many(void **state) {
    (void)state;
    module *m = made(PER_CHANNEL);
    tare_tensor *two = row(2, (float[]){1, 2}), *three = row(3, (float[]){1, 2, 3}), *scalar = NULL;
    CHECK_OK(tare__tensor_scalar_float(1, &scalar, NULL));
    assert_int_equal(tare__observer_update(m, scalar, NULL), TARE_INVALID_ARGUMENT);
    CHECK_OK(tare__observer_update(m, two, NULL));
    assert_int_equal(tare__observer_update(m, three, NULL), TARE_INVALID_ARGUMENT);
    tare_tensor_release(two);
    tare_tensor_release(three);
    tare_tensor_release(scalar);
    tare__module_release(m);
}

static void fixed_parameters_are_as_given(void **state) {
    (void)state;
    module *m = made("{\"class\": \"FixedQParamsObserver\", \"kwargs\": {\"scale\": 0.0078125, "
                     "\"zero_point\": 128}}");
    const qparams *q = qparams_of(m);
    assert_true(q->scale[0] == 0.0078125 && q->zero_point[0] == 128);
    assert_true(tare__observer_info(m)->has_fixed_qparams);
    tare__qparams_release(q);
    tare__module_release(m);
}

static void those_without_parameters_say_so(void **state) {
    (void)state;
    static const char *const names[] = {"PlaceholderObserver", "NoopObserver", "RecordingObserver",
                                        "ReuseInputObserver"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tare_observer_spec *spec = tare_observer_spec_create(names[i]);
        module *m = NULL;
        const qparams *q = NULL;
        bool is_calibrated = false;
        char expected[128];
        tare_error *err = tare_error_create();
        CHECK_OK(tare__observer_spec_instantiate(NULL, spec, &m, err));
        SHOW(m, 1, 2);
        assert_int_equal(tare__observer_qparams(m, &q, &is_calibrated, err), TARE_INVALID_ARGUMENT);
        snprintf(expected, sizeof expected, "calculate_qparams should not be called for %s",
                 names[i]);
        assert_string_equal(tare_error_message(err), expected);
        tare_error_destroy(err);
        tare__module_release(m);
        tare_observer_spec_release(spec);
    }
}

// --- a class of the user's own ---

// Scales by the greatest magnitude times `margin`.
typedef struct magnitude {
    double margin;
    float most;
} magnitude;

static tare_status magnitude_create(void *user, const tare_observer_args *args, void **state,
                                    tare_observer_info *info, tare_error *err) {
    (void)err;
    magnitude *made_state = calloc(1, sizeof *made_state);
    (*(int *)user)++;
    made_state->margin = 1;
    tare_observer_args_double(args, "margin", &made_state->margin);
    info->dtype = TARE_QINT8;
    info->qscheme = TARE_PER_TENSOR_SYMMETRIC;
    info->has_range = info->has_qparams = true;
    info->quant_min = -127;
    info->quant_max = 127;
    *state = made_state;
    return TARE_OK;
}

static tare_status magnitude_clone(const void *state, void **out, tare_error *err) {
    (void)err;
    magnitude *made_state = malloc(sizeof *made_state);
    *made_state = *(const magnitude *)state;
    *out = made_state;
    return TARE_OK;
}

static tare_status magnitude_update(void *state, const tare_tensor *x, tare_error *err) {
    (void)err;
    magnitude *s = state;
    const float *values = tare_tensor_data(x);
    for (int64_t i = 0; i < tare_tensor_element_count(x); i++)
        s->most = fmaxf(s->most, fabsf(values[i]));
    return TARE_OK;
}

static tare_status magnitude_qparams(const void *state, tare_qparams_sink sink, void *sink_user,
                                     bool *is_calibrated, tare_error *err) {
    const magnitude *s = state;
    const double scale = (double)s->most * s->margin / 127, zero_point = 0;
    *is_calibrated = s->most > 0;
    return sink(sink_user, 1, &scale, &zero_point, err);
}

static tare_status magnitude_describe(const void *state, tare_writer write, void *write_user,
                                      tare_error *err) {
    (void)err;
    char chars[32];
    const int length =
        snprintf(chars, sizeof chars, "most=%g", (double)((const magnitude *)state)->most);
    return write(write_user, chars, (size_t)length) ? TARE_OK : TARE_IO;
}

static void a_user_s_class_is_like_a_built_in_one(void **state) {
    (void)state;
    int created = 0;
    static const char *const arguments[] = {"margin", "unread", NULL};
    tare_observer_class class = {.struct_size = sizeof class,
                                 .name = "MagnitudeObserver",
                                 .arguments = arguments,
                                 .user = &created,
                                 .create = magnitude_create,
                                 .destroy = free,
                                 .clone = magnitude_clone,
                                 .update = magnitude_update,
                                 .qparams = magnitude_qparams,
                                 .describe = magnitude_describe};
    const tare_observer_class *user[] = {&class};
    const observer_classes classes = {.user = user, .user_count = 1};
    tare_observer_spec *spec =
        spec_of("{\"class\": \"MagnitudeObserver\", \"kwargs\": {\"margin\": 2}}");
    module *m = NULL, *clone = NULL;
    CHECK_OK(tare__observer_spec_instantiate(&classes, spec, &m, NULL));
    assert_int_equal(created, 1);
    class = (tare_observer_class){.name = "gone"}; // modules hold their own copy
    SHOW(m, -3, 1);
    CHECK_OK(tare__module_clone(m, &clone, NULL));
    tare__module_release(m);
    assert_text(clone, "MagnitudeObserver(most=3)");
    const qparams *q = qparams_of(clone);
    assert_true(q->scale[0] == 3.0 * 2 / 127 && q->quant_min == -127);
    tare__qparams_release(q);
    tare__module_release(clone);
    tare_observer_spec_release(spec);
}

static void an_argument_that_a_class_does_not_read_is_refused(void **state) {
    (void)state;
    int created = 0;
    static const char *const arguments[] = {"margin", "unread", NULL};
    const tare_observer_class class = {.struct_size = sizeof class,
                                       .name = "MagnitudeObserver",
                                       .arguments = arguments,
                                       .user = &created,
                                       .create = magnitude_create,
                                       .destroy = free,
                                       .clone = magnitude_clone};
    const tare_observer_class *user[] = {&class};
    const observer_classes classes = {.user = user, .user_count = 1};
    module *m = NULL;
    tare_error *err = tare_error_create();
    tare_observer_spec *spec =
        spec_of("{\"class\": \"MagnitudeObserver\", \"kwargs\": {\"unread\": 2}}");
    assert_int_equal(tare__observer_spec_instantiate(&classes, spec, &m, err),
                     TARE_INVALID_ARGUMENT);
    assert_string_equal(tare_error_message(err),
                        "MagnitudeObserver makes no use of argument 'unread' = 2");
    tare_observer_spec_release(spec);
    tare_error_destroy(err);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_vectors_are_equal_to_the_bit),
        cmocka_unit_test(a_changed_vector_is_seen),
        cmocka_unit_test(wrong_arguments_are_refused_by_name),
        cmocka_unit_test(torch_s_refusals_have_torch_s_words),
        cmocka_unit_test(descriptors_have_the_names_of_their_rows),
        cmocka_unit_test(ranges_follow_from_dtype_and_reduce_range),
        cmocka_unit_test(custom_ranges_are_halved_downwards),
        cmocka_unit_test(placeholders_say_what_they_are),
        cmocka_unit_test(setters_remember_their_first_error),
        cmocka_unit_test(fresh_observers_print_as_in_torch),
        cmocka_unit_test(calibrated_observers_print_their_ranges),
        cmocka_unit_test(tensors_print_as_in_torch),
        cmocka_unit_test(empty_tensors_are_not_seen),
        cmocka_unit_test(other_dtypes_are_seen_as_float32),
        cmocka_unit_test(nan_reaches_the_range_wherever_it_stands),
        cmocka_unit_test(histograms_drop_infinities_and_refuse_nan),
        cmocka_unit_test(extremes_hold_for_every_length),
        cmocka_unit_test(channels_are_found_on_any_axis),
        cmocka_unit_test(channels_must_stay_as_many),
        cmocka_unit_test(fixed_parameters_are_as_given),
        cmocka_unit_test(those_without_parameters_say_so),
        cmocka_unit_test(a_user_s_class_is_like_a_built_in_one),
        cmocka_unit_test(an_argument_that_a_class_does_not_read_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
