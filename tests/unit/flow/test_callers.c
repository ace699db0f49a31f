// SPDX-License-Identifier: Apache-2.0
// What callers get wrong: shapes, counts, NULLs, stages, numbers. One clear error each, and nothing
// is handed out.
#include "support/models.h"
#include "support/test.h"

#include <math.h>

typedef struct flow {
    tare_backend_config *backend;
    tare_qconfig_mapping *mapping;
    tare_model *model, *prepared, *lowered;
    tare_tensor *x;
} flow;

static flow f;

static int make_flow(void **state) {
    (void)state;
    f = (flow){.backend = builtin_backend("x86"),
               .mapping = default_mapping("x86"),
               .model = read_example("conv_relu"),
               .x = NEW_INPUT(1, 3, 3, 10)};
    f.prepared = prepared(f.model, f.backend, f.mapping);
    CALIBRATED(f.prepared, 1, 3, 3, 10);
    f.lowered = lowered(f.prepared, f.backend);
    return 0;
}

static int drop_flow(void **state) {
    (void)state;
    tare_tensor_release(f.x);
    tare_model_destroy(f.lowered);
    tare_model_destroy(f.prepared);
    tare_model_destroy(f.model);
    tare_qconfig_mapping_destroy(f.mapping);
    tare_backend_config_destroy(f.backend);
    return 0;
}

static void shapes_that_do_not_fit_are_refused_at_their_node(void **state) {
    (void)state;
    tare_tensor *wide = NEW_INPUT(1, 3, 3, 11), *flat = NEW_INPUT(10),
                *deep = NEW_INPUT(1, 4, 3, 10);
    const struct {
        const tare_tensor *input;
        const char *words, *known; // of models that know their input's shape; NULL: the same
    } rows[] = {{wide, "node 'linear'", NULL},
                {wide, "11", NULL},
                {flat, "node 'conv'",
                 "input 'x': expected torch.float32 [any, 3, 3, 10], found torch.float32 [10]"},
                {deep, "node 'conv'", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tare_tensor *inputs[] = {rows[i].input};
        CHECK_REFUSED(tare_calibrate(f.prepared, inputs, 1, job_error()), TARE_INVALID_ARGUMENT,
                      rows[i].words);
        const tare_model *models[] = {f.model, f.lowered};
        for (size_t m = 0; m < 4; m++) {
            const tare_session_options options = {.reference = m % 2 == 0};
            tare_session *session = NULL;
            tare_tensor *y = NULL;
            size_t count = 0;
            CHECK_DONE(tare_session_create(models[m / 2], &options, &session, job_error()));
            const bool is_known = models[m / 2] == f.lowered && rows[i].known != NULL;
            CHECK_REFUSED(tare_session_run(session, inputs, 1, &y, 1, &count, job_error()),
                          TARE_INVALID_ARGUMENT, is_known ? rows[i].known : rows[i].words);
            tare_error *err = tare_error_create(); // what the node said stays as a hint
            assert_int_not_equal(tare_session_run(session, inputs, 1, &y, 1, &count, err), TARE_OK);
            if (is_known) CHECK_HOLDS(tare_error_hint(err), rows[i].words);
            tare_error_destroy(err);
            assert_null(y);
            // The session is as good as before.
            const tare_tensor *good[] = {f.x};
            CHECK_DONE(tare_session_run(session, good, 1, &y, 1, &count, job_error()));
            assert_int_equal(count, 1);
            tare_tensor_release(y);
            tare_session_destroy(session);
        }
    }
    tare_tensor_release(deep);
    tare_tensor_release(flat);
    tare_tensor_release(wide);
}

static void counts_of_inputs_and_outputs_are_checked(void **state) {
    (void)state;
    const tare_tensor *inputs[] = {f.x, f.x};
    const tare_tensor *nothing[] = {NULL};
    CHECK_REFUSED(tare_calibrate(f.prepared, inputs, 2, job_error()), TARE_INVALID_ARGUMENT, "2");
    CHECK_REFUSED(tare_calibrate(f.prepared, inputs, 0, job_error()), TARE_INVALID_ARGUMENT, "0");
    CHECK_REFUSED(tare_calibrate(f.prepared, nothing, 1, job_error()), TARE_INVALID_ARGUMENT,
                  "input 'x' is NULL");
    CHECK_REFUSED(tare_calibrate(f.prepared, NULL, 1, job_error()), TARE_INVALID_ARGUMENT, "NULL");
    tare_session *session = NULL;
    tare_tensor *y = NULL;
    size_t count = 0;
    CHECK_DONE(tare_session_create(f.lowered, NULL, &session, job_error()));
    CHECK_REFUSED(tare_session_run(session, inputs, 2, &y, 1, &count, job_error()),
                  TARE_INVALID_ARGUMENT, "2");
    CHECK_REFUSED(tare_session_run(session, inputs, 0, &y, 1, &count, job_error()),
                  TARE_INVALID_ARGUMENT, "0");
    CHECK_REFUSED(tare_session_run(session, nothing, 1, &y, 1, &count, job_error()),
                  TARE_INVALID_ARGUMENT, "NULL");
    CHECK_REFUSED(tare_session_run(session, inputs, 1, &y, 0, &count, job_error()),
                  TARE_INVALID_ARGUMENT, "output");
    assert_null(y);
    tare_session_destroy(session);
}

static void data_of_other_kinds_is_refused(void **state) {
    (void)state;
    tare_tensor *integers = NULL, *nans = NEW_INPUT(1, 3, 3, 10);
    CHECK_DONE(
        tare_tensor_create(TARE_INT64, 4, (const int64_t[]){1, 3, 3, 10}, &integers, job_error()));
    ((float *)tare_tensor_mutable_data(nans))[7] = NAN;
    const tare_tensor *inputs[] = {integers};
    const tare_status status = tare_calibrate(f.prepared, inputs, 1, job_error());
    assert_int_equal(status, TARE_INVALID_ARGUMENT);
    inputs[0] = nans;
    const char *before = printed(f.prepared);
    CHECK_REFUSED(tare_calibrate(f.prepared, inputs, 1, job_error()), TARE_INVALID_ARGUMENT, "'x'");
    assert_string_equal(printed(f.prepared), before); // the observers never saw it
    tare_tensor_release(nans);
    tare_tensor_release(integers);
}

static void null_arguments_are_refused(void **state) {
    (void)state;
    tare_model *out = NULL;
    const tare_prepare_options empty = {0}, full = {.qconfig_mapping = f.mapping};
    CHECK_REFUSED(tare_prepare_fx(NULL, &full, &out, job_error()), TARE_INVALID_ARGUMENT, "NULL");
    CHECK_REFUSED(tare_prepare_fx(f.model, NULL, &out, job_error()), TARE_INVALID_ARGUMENT, "NULL");
    CHECK_REFUSED(tare_prepare_fx(f.model, &empty, &out, job_error()), TARE_INVALID_ARGUMENT,
                  "a qconfig mapping");
    CHECK_REFUSED(tare_fuse_fx(NULL, f.backend, &out, job_error()), TARE_INVALID_ARGUMENT, "NULL");
    CHECK_REFUSED(tare_convert_fx(NULL, NULL, &out, job_error()), TARE_INVALID_ARGUMENT,
                  "must be produced by prepare_fx");
    CHECK_REFUSED(tare_calibrate(NULL, NULL, 0, job_error()), TARE_INVALID_ARGUMENT,
                  "expected a prepared model");
    assert_null(out);
    // An error is optional everywhere.
    assert_int_equal(tare_fuse_fx(NULL, f.backend, &out, NULL), TARE_INVALID_ARGUMENT);
    assert_int_equal(tare_calibrate(f.model, NULL, 0, NULL), TARE_INVALID_ARGUMENT);
    tare_model_destroy(NULL);
    tare_context_destroy(NULL);
    tare_module_release(NULL);
}

static void each_pass_wants_its_stage(void **state) {
    (void)state;
    tare_model *out = NULL;
    const tare_prepare_options prepare = {.backend = f.backend, .qconfig_mapping = f.mapping};
    const tare_convert_options convert = {.backend = f.backend};
    const tare_tensor *inputs[] = {f.x};
    tare_model *const late[] = {f.prepared, f.lowered};
    for (size_t i = 0; i < 2; i++) {
        CHECK_REFUSED(tare_prepare_fx(late[i], &prepare, &out, job_error()), TARE_INVALID_ARGUMENT,
                      "prepare: expected a float model");
        CHECK_REFUSED(tare_fuse_fx(late[i], f.backend, &out, job_error()), TARE_INVALID_ARGUMENT,
                      "fuse: expected a float model");
    }
    tare_model *const others[] = {f.model, f.lowered};
    for (size_t i = 0; i < 2; i++) {
        CHECK_REFUSED(tare_calibrate(others[i], inputs, 1, job_error()), TARE_INVALID_ARGUMENT,
                      "calibrate: expected a prepared model");
        CHECK_REFUSED(tare_convert_fx(others[i], &convert, &out, job_error()),
                      TARE_INVALID_ARGUMENT, "must be produced by prepare_fx");
        CHECK_REFUSED(tare_convert_to_reference_fx(others[i], &convert, &out, job_error()),
                      TARE_INVALID_ARGUMENT, "must be produced by prepare_fx");
        CHECK_REFUSED(
            tare_convert_to_reference_decomposed_fx(others[i], &convert, &out, job_error()),
            TARE_INVALID_ARGUMENT, "must be produced by prepare_fx");
    }
    assert_null(out);
    // A model is fused once more without harm.
    tare_model *once = NULL, *twice = NULL;
    CHECK_DONE(tare_fuse_fx(f.model, f.backend, &once, job_error()));
    CHECK_DONE(tare_fuse_fx(once, f.backend, &twice, job_error()));
    assert_string_equal(printed(once), printed(twice));
    tare_model_destroy(once);
    tare_model_destroy(twice);
}

static void broken_configs_are_refused_by_every_pass(void **state) {
    (void)state;
    tare_model *out = NULL;
    tare_backend_config *backend = tare_backend_config_create("broken");
    tare_pattern_config *p = tare_backend_config_add(backend, "torch.nn.Linear", NULL, NULL);
    tare_pattern_config_set_fuser_method(p, "fuse_everything");
    CHECK_REFUSED(tare_fuse_fx(f.model, backend, &out, job_error()), TARE_NOT_FOUND,
                  "fuse_everything");
    const tare_prepare_options options = {.backend = backend, .qconfig_mapping = f.mapping};
    CHECK_REFUSED(tare_prepare_fx(f.model, &options, &out, job_error()), TARE_NOT_FOUND,
                  "fuse_everything");
    tare_backend_config_destroy(backend);

    tare_observer_spec *unknown = tare_observer_spec_create("MinMaxObserver");
    tare_observer_spec_set_int(unknown, "quant_maxx", 127);
    tare_qconfig *q = tare_qconfig_create(unknown, NULL);
    tare_qconfig_mapping *mapping = tare_qconfig_mapping_create();
    tare_qconfig_mapping_set_global(mapping, q);
    const tare_prepare_options bad = {.backend = f.backend, .qconfig_mapping = mapping};
    CHECK_REFUSED(tare_prepare_fx(f.model, &bad, &out, job_error()), TARE_INVALID_ARGUMENT,
                  "MinMaxObserver has no argument 'quant_maxx'");
    CHECK_REFUSED(tare_prepare_fx(f.model, &bad, &out, job_error()), TARE_INVALID_ARGUMENT,
                  "did you mean 'quant_max'?");
    assert_null(out);
    tare_qconfig_mapping_destroy(mapping);
    tare_qconfig_release(q);
    tare_observer_spec_release(unknown);
}

static void unknown_print_forms_are_refused(void **state) {
    (void)state;
    CHECK_REFUSED(tare_model_print(f.model, (tare_print_form)9, NULL, NULL, job_error()),
                  TARE_INVALID_ARGUMENT, "no print form 9");
    assert_null(tare_model_input_name(f.model, 1));
    assert_string_equal(tare_model_input_name(f.model, 0), "x");
    assert_int_equal(tare_engine_from_name("x87"), TARE_ENGINE_DEFAULT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_that_do_not_fit_are_refused_at_their_node),
        cmocka_unit_test(counts_of_inputs_and_outputs_are_checked),
        cmocka_unit_test(data_of_other_kinds_is_refused),
        cmocka_unit_test(null_arguments_are_refused),
        cmocka_unit_test(each_pass_wants_its_stage),
        cmocka_unit_test(broken_configs_are_refused_by_every_pass),
        cmocka_unit_test(unknown_print_forms_are_refused),
    };
    return cmocka_run_group_tests(tests, make_flow, drop_flow);
}
