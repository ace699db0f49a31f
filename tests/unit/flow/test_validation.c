// SPDX-License-Identifier: Apache-2.0
// One validation, whoever asks: what cannot work is refused by name before anything is computed.
#include "support/models.h"
#include "support/observers.h"
#include "support/temp.h"
#include "support/test.h"

#include <math.h>

#include "config/backend_config.h"
#include "core/text/text.h"
#include "io/native/safetensors.h"

static tare_model *linear_model(void) {
    module *root = new_tree();
    put_module(root, NULL, "fc", "torch.nn.Linear", "in_features=3, out_features=2");
    return new_model(NULL, root, "def forward(self, x):\n    fc = self.fc(x)\n    return fc\n");
}

// --- backends ---

typedef struct wrong_backend {
    const char *fields; // of the one pattern of a config
    const char *problem;
} wrong_backend;

#define INPUT(fields)                                                                              \
    "\"pattern\": \"torch.nn.Linear\", \"dtype_configs\": [{\"input_dtype\": {\"dtype\": "         \
    "\"torch.quint8\", " fields "}}]"

static const wrong_backend wrong_backends[] = {
    {INPUT("\"quant_min_lower_bound\": 9, \"quant_max_upper_bound\": 1"),
     "quant_min_lower_bound 9 is above quant_max_upper_bound 1"},
    {INPUT("\"quant_min_lower_bound\": 300, \"quant_max_upper_bound\": 400"),
     "nothing of which lies in 300..400"},
    {INPUT("\"scale_min_lower_bound\": 2, \"scale_max_upper_bound\": 1"),
     "scale_min_lower_bound 2 is above scale_max_upper_bound 1"},
    {INPUT("\"scale_max_upper_bound\": 0"), "no scale is as small as 0"},
    {INPUT("\"scale_min_lower_bound\": {\"float\": \"inf\"}"), "no scale is as great as inf"},
    {INPUT("\"scale_min_lower_bound\": 1e60"), "no scale is as great as 1e+60"},
    {INPUT("\"scale_exact_match\": -1, \"zero_point_exact_match\": 0"), "no scale is -1"},
    {INPUT("\"scale_exact_match\": 0.3, \"zero_point_exact_match\": 0, \"scale_power_of_two\": "
           "true"),
     "is no power of two"},
    {INPUT("\"zero_point_lower_bound\": 5, \"zero_point_upper_bound\": 4"),
     "no zero point lies in 5..4"},
    {INPUT("\"quant_min_lower_bound\": 0, \"quant_max_upper_bound\": 9, \"scale_exact_match\": 1, "
           "\"zero_point_exact_match\": 12"),
     "zero_point_exact_match 12 is outside of 0..9"},
    {"\"pattern\": \"torch.nn.Linear\", \"fused_module\": \"torch.ao.nn.intrinsic.LinearReLU\"",
     "has no fuser_method to make it"},
};

static tare_backend_config *read_backend(const char *fields) {
    char json[1024];
    tare_backend_config *b = NULL;
    (void)snprintf(json, sizeof json, "{\"name\": \"wrong\", \"configs\": [{%s}]}", fields);
    CHECK_DONE(tare_backend_config_from_json(json, strlen(json), &b, job_error()));
    return b;
}

static tare_status count_errors(void *user, const tare_backend_finding *f, tare_error *err) {
    (void)err;
    *(size_t *)user += f->is_error;
    return TARE_OK;
}

static void every_pass_refuses_what_the_lint_of_a_backend_calls_an_error(void **state) {
    (void)state;
    tare_model *model = linear_model(), *out = NULL, *p = NULL;
    tare_qconfig_mapping *mapping = default_mapping("x86"), *made = NULL;
    tare_backend_config *native = builtin_backend("native");
    p = prepared(model, native, mapping);
    CALIBRATED(p, 4, 3);
    for (size_t i = 0; i < sizeof wrong_backends / sizeof *wrong_backends; i++) {
        const char *problem = wrong_backends[i].problem;
        tare_backend_config *b = read_backend(wrong_backends[i].fields);
        const tare_prepare_options prepare = {.backend = b, .qconfig_mapping = mapping};
        const tare_convert_options convert = {.backend = b};
        size_t count = 0, errors = 0;
        CHECK_DONE(tare_backend_config_lint(b, NULL, count_errors, &errors, &count, job_error()));
        assert_true(errors > 0);
        CHECK_REFUSED(tare_backend_config_check(b, job_error()), TARE_INVALID_ARGUMENT, problem);
        CHECK_REFUSED(tare_backend_config_check(b, job_error()), TARE_INVALID_ARGUMENT,
                      "backend config 'wrong': $.configs[0]");
        CHECK_REFUSED(tare_fuse_fx(model, b, &out, job_error()), TARE_INVALID_ARGUMENT, problem);
        CHECK_REFUSED(tare_prepare_fx(model, &prepare, &out, job_error()), TARE_INVALID_ARGUMENT,
                      problem);
        CHECK_REFUSED(tare_prepare_qat_fx(model, &prepare, &out, job_error()),
                      TARE_INVALID_ARGUMENT, problem);
        CHECK_REFUSED(tare_convert_fx(p, &convert, &out, job_error()), TARE_INVALID_ARGUMENT,
                      problem);
        CHECK_REFUSED(tare_convert_to_reference_fx(p, &convert, &out, job_error()),
                      TARE_INVALID_ARGUMENT, problem);
        CHECK_REFUSED(tare_qconfig_mapping_for_backend(b, false, &made, job_error()),
                      TARE_INVALID_ARGUMENT, problem);
        tare_backend_config_destroy(b);
    }
    assert_null(out);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(native);
}

static void a_backend_made_by_setters_is_judged_as_one_from_a_file(void **state) {
    (void)state;
    tare_model *model = linear_model(), *out = NULL;
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_backend_config *b = tare_backend_config_create("mine");
    tare_pattern_config *p = tare_backend_config_add(b, "torch.nn.Linear", NULL, NULL);
    tare_dtype_config dtypes = tare_dtype_config_init();
    dtypes.input = (tare_dtype_constraints){.dtype = TARE_QUINT8,
                                            .set = TARE_SET_QUANT_MIN | TARE_SET_QUANT_MAX,
                                            .quant_min_lower_bound = 255};
    tare_pattern_config_add_dtype_config(p, &dtypes);
    const tare_prepare_options options = {.backend = b, .qconfig_mapping = mapping};
    CHECK_REFUSED(tare_prepare_fx(model, &options, &out, job_error()), TARE_INVALID_ARGUMENT,
                  "quant_min_lower_bound 255 is above quant_max_upper_bound 0");
    tare_backend_config_destroy(b);
    tare_qconfig_mapping_destroy(mapping);
    tare_model_destroy(model);
}

static void what_is_only_without_effect_is_a_warning_and_taken(void **state) {
    (void)state;
    tare_model *model = linear_model(), *out = NULL;
    tare_backend_config *b = read_backend("\"pattern\": \"torch.nn.Lnear\"");
    size_t count = 0, errors = 0;
    CHECK_DONE(tare_backend_config_lint(b, NULL, count_errors, &errors, &count, job_error()));
    assert_int_equal(count, 2); // a name that nothing has, no dtypes
    assert_int_equal(errors, 0);
    CHECK_DONE(tare_backend_config_check(b, job_error()));
    CHECK_DONE(tare_fuse_fx(model, b, &out, job_error()));
    tare_model_destroy(out);
    tare_model_destroy(model);
    tare_backend_config_destroy(b);
}

// --- observers ---

static void observers_that_no_data_could_satisfy_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *json, *words;
    } rows[] = {
        {"{\"class\": \"MinMaxObserver\", \"kwargs\": {\"eps\": 0}}",
         "eps must be positive and finite in float32, found 0"},
        {"{\"class\": \"HistogramObserver\", \"kwargs\": {\"eps\": -1e-3}}",
         "eps must be positive and finite"},
        {"{\"class\": \"MinMaxObserver\", \"kwargs\": {\"eps\": 1e-60}}",
         "eps must be positive and finite"},
        {"{\"class\": \"PerChannelMinMaxObserver\", \"kwargs\": {\"eps\": 1e60}}",
         "eps must be positive and finite"},
        {"{\"class\": \"MovingAverageMinMaxObserver\", \"kwargs\": {\"averaging_constant\": -3}}",
         "averaging_constant must be from 0 to 1, found -3"},
        {"{\"class\": \"MinMaxObserver\", \"kwargs\": {\"quant_min\": 100, \"quant_max\": -100}}",
         "must include 0"},
        {"{\"class\": \"PlaceholderObserver\", \"kwargs\": {\"dtype\": \"torch.quint8\", "
         "\"quant_min\": 100, \"quant_max\": 1}}",
         "quant_min 100 is above quant_max 1"},
        {"{\"class\": \"FixedQParamsObserver\", \"kwargs\": {\"scale\": 0.1, \"zero_point\": 0, "
         "\"quant_min\": 9, \"quant_max\": 1}}",
         "quant_min 9 is above quant_max 1"},
        {"{\"class\": \"FixedQParamsObserver\", \"kwargs\": {\"scale\": 0.1, \"zero_point\": 300}}",
         "zero_point 300 lies outside of 0..255"},
        {"{\"class\": \"FixedQParamsObserver\", \"kwargs\": {\"scale\": 0, \"zero_point\": 0}}",
         "scale must be positive and finite"},
        {"{\"class\": \"FakeQuantize\", \"kwargs\": {\"observer\": {\"class\": "
         "\"MovingAverageMinMaxObserver\"}, \"quant_min\": 9, \"quant_max\": 1}}",
         "quant_min must be less than or equal to quant_max"},
        {"{\"class\": \"FakeQuantize\", \"kwargs\": {\"observer\": {\"class\": "
         "\"MovingAverageMinMaxObserver\"}, \"eps\": 0}}",
         "eps must be positive and finite"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char mapping[512];
        tare_qconfig_mapping *made = NULL;
        module *m = NULL;
        CHECK_REFUSED(make(rows[i].json, &m, job_error()), TARE_INVALID_ARGUMENT, rows[i].words);
        assert_null(m);
        (void)snprintf(mapping, sizeof mapping, "{\"global\": {\"activation\": %s}}", rows[i].json);
        CHECK_REFUSED(tare_qconfig_mapping_from_json(mapping, strlen(mapping), &made, job_error()),
                      TARE_INVALID_ARGUMENT, rows[i].words);
        CHECK_REFUSED(tare_qconfig_mapping_from_json(mapping, strlen(mapping), &made, job_error()),
                      TARE_INVALID_ARGUMENT, "$.global.activation");
        assert_null(made);
    }
}

static void an_observer_given_by_setters_is_judged_when_it_is_used(void **state) {
    (void)state;
    tare_model *model = linear_model(), *out = NULL;
    tare_observer_spec *spec = tare_observer_spec_create("MinMaxObserver");
    tare_observer_spec_set_double(spec, "eps", 0);
    tare_qconfig *q = tare_qconfig_create(spec, spec);
    tare_qconfig_mapping *mapping = tare_qconfig_mapping_create();
    tare_qconfig_mapping_set_global(mapping, q);
    const tare_prepare_options options = {.qconfig_mapping = mapping};
    CHECK_REFUSED(tare_prepare_fx(model, &options, &out, job_error()), TARE_INVALID_ARGUMENT,
                  "eps must be positive and finite");
    assert_null(out);
    tare_qconfig_release(q);
    tare_observer_spec_release(spec);
    tare_qconfig_mapping_destroy(mapping);
    tare_model_destroy(model);
}

// --- weights ---

static void spoil(tare_model *model, const char *path, size_t element, float with) {
    ((float *)tare__module_find_tensor(model->root, path)->data)[element] = with;
}

static void weights_that_are_no_numbers_are_refused_by_name_and_element(void **state) {
    (void)state;
    static const struct {
        const char *path, *words;
        size_t element;
        float with;
    } rows[] = {
        {"fc.weight", "weight 'fc.weight' is NaN at [1, 1]", 4, NAN},
        {"fc.weight", "weight 'fc.weight' is inf at [0, 2]", 2, INFINITY},
        {"fc.weight", "weight 'fc.weight' is -inf at [0, 0]", 0, -INFINITY},
        {"fc.bias", "weight 'fc.bias' is NaN at [1]", 1, NAN},
    };
    tare_qconfig_mapping *mapping = default_mapping("x86");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tare_model *model = linear_model(), *out = NULL;
        const tare_prepare_options options = {.qconfig_mapping = mapping};
        // Convert looks again: training may have spoiled what prepare saw.
        tare_model *p = prepared(model, NULL, mapping);
        CALIBRATED(p, 4, 3);
        spoil(p, rows[i].path, rows[i].element, rows[i].with);
        CHECK_REFUSED(tare_convert_fx(p, NULL, &out, job_error()), TARE_INVALID_ARGUMENT,
                      rows[i].words);
        tare_model_destroy(p);
        spoil(model, rows[i].path, rows[i].element, rows[i].with);
        CHECK_REFUSED(tare_prepare_fx(model, &options, &out, job_error()), TARE_INVALID_ARGUMENT,
                      rows[i].words);
        CHECK_REFUSED(tare_prepare_fx(model, &options, &out, job_error()), TARE_INVALID_ARGUMENT,
                      "node 'fc'");
        assert_null(out);
        tare_model_destroy(model);
    }
    tare_qconfig_mapping_destroy(mapping);
}

// The program's tensors are in its file: one replaces another.
static void replace(tare_model *model, const char *path, float first) {
    const tare_tensor *was = tare__module_find_tensor(model->root, path);
    tare_tensor *t = NULL;
    CHECK_DONE(
        tare_tensor_from_data(was->dtype, was->ndim, was->shape, was->data, &t, job_error()));
    tare__tensor_set(t, 0, (double)first);
    CHECK_DONE(tare__module_set_tensor_path(model->root, path, t, true, &tare__class_container,
                                            job_error()));
    tare_tensor_release(t);
}

static void weights_of_programs_are_refused_with_what_stands_beside_them(void **state) {
    (void)state;
    static const char *const paths[] = {"tied.weight", "tied.bias"};
    tare_quantizer *quantizer = NULL;
    CHECK_DONE(tare_quantizer_open("XNNPACKQuantizer", NULL, &quantizer, job_error()));
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        const float with[] = {NAN, INFINITY};
        for (size_t k = 0; k < 2; k++) {
            tare_model *model = NULL, *p = NULL, *out = NULL;
            char words[64];
            (void)snprintf(words, sizeof words, "weight '%s' is %s at [0", paths[i],
                           k == 0 ? "NaN" : "inf");
            CHECK_DONE(
                tare_model_read("tests/fuzz/corpus/pt2/arguments", NULL, &model, job_error()));
            CHECK_DONE(tare_prepare_pt2e(model, quantizer, &p, job_error()));
            replace(p, paths[i], with[k]);
            CHECK_REFUSED(tare_convert_pt2e(p, NULL, &out, job_error()), TARE_INVALID_ARGUMENT,
                          words);
            tare_model_destroy(p);
            replace(model, paths[i], with[k]);
            CHECK_REFUSED(tare_prepare_pt2e(model, quantizer, &p, job_error()),
                          TARE_INVALID_ARGUMENT, words);
            tare_model_destroy(model);
        }
    }
    tare_quantizer_destroy(quantizer);
}

static void a_layer_that_stays_float_may_have_any_weights(void **state) {
    (void)state;
    tare_model *model = linear_model();
    tare_qconfig_mapping *mapping = tare_qconfig_mapping_create(); // asks for nothing
    spoil(model, "fc.weight", 0, NAN);
    tare_model *p = prepared(model, NULL, mapping);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
}

// --- data ---

static void infinite_data_is_refused_unless_the_caller_is_lenient(void **state) {
    (void)state;
    tare_model *model = linear_model();
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *p = prepared(model, NULL, mapping);
    tare_tensor *x = NEW_INPUT(6, 3);
    ((float *)tare_tensor_mutable_data(x))[14] = INFINITY;
    const char *name = "x", *path = temp_path("x.npz");
    const tare_tensor *const list[] = {x};
    CHECK_DONE(tare_arrays_write(path, &name, list, 1, job_error()));
    const tare_data_options finite = {.batch_size = 3, .is_finite = true}, any = {.batch_size = 3};
    tare_data *data = NULL;
    // With the file where the data knows it, with the batch where calibration does.
    static const char *const of_file[] = {"array 'x' is inf at [4, 2]", "x.npz"},
                             *const of_batch[] = {"input 'x' is inf at [1, 2]",
                                                  "the batch from sample 3 on"};
    for (size_t i = 0; i < 2; i++) {
        CHECK_DONE(tare_data_open(path, p, &finite, &data, job_error()));
        CHECK_REFUSED(tare_calibrate_data(p, data, NULL, NULL, job_error()), TARE_INVALID_ARGUMENT,
                      of_file[i]);
        tare_data_close(data);
        CHECK_DONE(tare_data_open(path, p, &any, &data, job_error()));
        CHECK_REFUSED(tare_calibrate_data(p, data, NULL, NULL, job_error()), TARE_INVALID_ARGUMENT,
                      of_batch[i]);
        tare_data_close(data);
        data = NULL;
    }
    const tare_calibrate_options lenient = {.is_lenient = true};
    CHECK_DONE(tare_data_open(path, p, &any, &data, job_error()));
    CHECK_DONE(tare_calibrate_data(p, data, &lenient, NULL, job_error()));
    tare_data_close(data);
    tare_tensor_release(x);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
}

// --- stored parameters ---

// The model in this file, run once; what failed is in job_error().
static tare_status read_and_run(const char *path, bool is_reference) {
    const tare_session_options options = {.reference = is_reference};
    tare_model *model = NULL;
    tare_session *session = NULL;
    tare_tensor *x = NEW_INPUT(1, 3, 3, 10), *y = NULL;
    const tare_tensor *inputs[] = {x};
    size_t count = 0;
    tare_status status = tare_model_read(path, NULL, &model, job_error());
    if (status == TARE_OK) status = tare_session_create(model, &options, &session, job_error());
    if (status == TARE_OK)
        status = tare_session_run(session, inputs, 1, &y, 1, &count, job_error());
    tare_tensor_release(y);
    tare_tensor_release(x);
    tare_session_destroy(session);
    tare_model_destroy(model);
    return status;
}

// Writes the file with one number of one tensor changed.
static void write_changed(const safetensors *file, const char *name, double number,
                          const char *path) {
    tare_tensor *t = tare__map_get(&file->tensors, name), *changed = NULL;
    map tensors = {0};
    CHECK_DONE(tare_tensor_create(t->dtype, t->ndim, t->shape, &changed, job_error()));
    memcpy(changed->data, t->data, tare__tensor_bytes(t));
    tare__tensor_set(changed, 0, number);
    for (size_t i = 0; i < file->tensors.count; i++) {
        const map_entry *e = &file->tensors.entries[i];
        assert_true(tare__map_set(&tensors, e->key, e->value == t ? changed : e->value));
    }
    CHECK_DONE(tare__safetensors_write(path, &tensors,
                                       json_object_get(file->header, "__metadata__"), job_error()));
    tare__map_release(&tensors);
    tare_tensor_release(changed);
}

static void check_refused_with(const safetensors *file, const char *name, double number) {
    const char *path = temp_path("changed.safetensors");
    write_changed(file, name, number, path);
    for (int is_reference = 0; is_reference < 2; is_reference++) {
        const tare_status status = read_and_run(path, is_reference);
        if (status != TARE_INVALID_ARGUMENT && status != TARE_MALFORMED_FILE)
            fail_msg("%s = %g: %s", name, number, tare_status_name(status));
    }
}

static void check_stored_parameters(const char *path) {
    safetensors file = {0};
    size_t scales = 0, zero_points = 0;
    CHECK_DONE(tare__safetensors_read(path, &file, job_error()));
    for (size_t i = 0; i < file.tensors.count; i++) {
        const char *name = file.tensors.entries[i].key;
        const tare_tensor *t = file.tensors.entries[i].value;
        const double bad[] = {0, -0.5, NAN, INFINITY};
        if (strstr(name, "scale") != NULL && tare__dtype(t->dtype)->is_float) {
            for (size_t k = 0; k < 4; k++) check_refused_with(&file, name, bad[k]);
            scales++;
        }
        if (strstr(name, "zero_point") != NULL) {
            check_refused_with(&file, name, -1000);
            zero_points++;
        }
    }
    assert_true(scales > 1 && zero_points > 1);
    tare__safetensors_release(&file);
}

static void stored_parameters_that_no_tensor_can_have_are_refused(void **state) {
    (void)state;
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping("x86");
    tare_model *model = read_example("conv_relu"), *p = prepared(model, backend, mapping);
    CALIBRATED(p, 1, 3, 3, 10);
    tare_model *forms[] = {referenced(p, backend), lowered(p, backend)};
    for (size_t i = 0; i < 2; i++) {
        const char *path = temp_path("quantized.safetensors");
        CHECK_DONE(tare_model_write(forms[i], path, job_error()));
        CHECK_DONE(read_and_run(path, false));
        check_stored_parameters(path);
        tare_model_destroy(forms[i]);
    }
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

// Every tensor whose name ends so, with every number that it cannot hold.
static size_t check_every(const char *path, const char *ending) {
    const double bad[] = {0, -0.5, NAN, INFINITY};
    safetensors file = {0};
    size_t count = 0;
    CHECK_DONE(tare__safetensors_read(path, &file, job_error()));
    for (size_t i = 0; i < file.tensors.count; i++) {
        const char *name = file.tensors.entries[i].key;
        if (!tare__ends_with(name, ending)) continue;
        for (size_t k = 0; k < 4; k++) check_refused_with(&file, name, bad[k]);
        count++;
    }
    tare__safetensors_release(&file);
    return count;
}

static void a_prepared_file_has_observers_and_fake_quantizers_that_can_be(void **state) {
    (void)state;
    tare_backend_config *backend = builtin_backend("x86");
    tare_qconfig_mapping *mapping = default_mapping("x86"), *qat = NULL;
    tare_model *model = read_example("conv_relu"), *p = prepared(model, backend, mapping);
    const char *path = temp_path("prepared.safetensors");
    CHECK_DONE(tare_model_write(p, path, job_error()));
    CHECK_DONE(read_and_run(path, true));
    assert_true(check_every(path, ".eps") > 1);
    tare_model_destroy(p);
    CHECK_DONE(tare_qconfig_mapping_default("x86", true, -1, &qat, job_error()));
    const tare_prepare_options options = {.backend = backend, .qconfig_mapping = qat};
    CHECK_DONE(tare_prepare_qat_fx(model, &options, &p, job_error()));
    CHECK_DONE(tare_model_write(p, path, job_error()));
    CHECK_DONE(read_and_run(path, true));
    assert_true(check_every(path, ".scale") > 1);
    tare_model_destroy(p);
    tare_model_destroy(model);
    tare_qconfig_mapping_destroy(qat);
    tare_qconfig_mapping_destroy(mapping);
    tare_backend_config_destroy(backend);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pass_refuses_what_the_lint_of_a_backend_calls_an_error),
        cmocka_unit_test(a_backend_made_by_setters_is_judged_as_one_from_a_file),
        cmocka_unit_test(what_is_only_without_effect_is_a_warning_and_taken),
        cmocka_unit_test(observers_that_no_data_could_satisfy_are_refused),
        cmocka_unit_test(an_observer_given_by_setters_is_judged_when_it_is_used),
        cmocka_unit_test(weights_that_are_no_numbers_are_refused_by_name_and_element),
        cmocka_unit_test(weights_of_programs_are_refused_with_what_stands_beside_them),
        cmocka_unit_test(a_layer_that_stays_float_may_have_any_weights),
        cmocka_unit_test(infinite_data_is_refused_unless_the_caller_is_lenient),
        cmocka_unit_test(stored_parameters_that_no_tensor_can_have_are_refused),
        cmocka_unit_test(a_prepared_file_has_observers_and_fake_quantizers_that_can_be),
    };
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
