// SPDX-License-Identifier: Apache-2.0
// Whole jobs in which the n-th allocation fails, for n = 1, 2, .. until the job succeeds. jansson's
// memory is tare's here, so that its failures count too.
#include "support/models.h"
#include "support/temp.h"
#include "support/test.h"

#include <dirent.h>
#include <jansson.h>

static int count_files(void) {
    DIR *folder = opendir(temp_folder());
    assert_non_null(folder);
    int count = 0;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (entry->d_name[0] != '.') count++;
    closedir(folder);
    return count;
}

// FNV-1a over everything that a job says and computes.
static bool note(void *user, const char *chars, size_t length) {
    uint64_t *hash = user;
    for (size_t i = 0; i < length; i++) *hash = (*hash ^ (unsigned char)chars[i]) * 1099511628211u;
    return true;
}

// What a job holds on its way.
typedef struct job {
    tare_backend_config *backend;
    tare_qconfig_mapping *mapping;
    tare_model *model, *prepared, *converted, *read;
    tare_session *session;
    tare_tensor *x, *y;
    uint64_t hash;
} job;

static void drop(job *j) {
    tare_tensor_release(j->x);
    tare_tensor_release(j->y);
    tare_session_destroy(j->session);
    tare_model_destroy(j->read);
    tare_model_destroy(j->converted);
    tare_model_destroy(j->prepared);
    tare_model_destroy(j->model);
    tare_qconfig_mapping_destroy(j->mapping);
    tare_backend_config_destroy(j->backend);
    *j = (job){.hash = j->hash};
}

#define MODEL "examples/data/tutorial_conv_bn_relu.safetensors"
#define BATCH 1, 3, 3, 10

static tare_status read_configs(job *j) {
    TARE_TRY(tare_backend_config_builtin("x86", &j->backend, job_error()));
    return tare_qconfig_mapping_from_json("{\"default\": \"x86\"}", 18, &j->mapping, job_error());
}

static tare_status declare_preprocess(job *j) {
    tare_preprocess *steps = NULL;
    TARE_TRY(tare_preprocess_parse("imagenet,resize=20x30", &steps, job_error()));
    const tare_status status = tare_model_set_preprocess(j->model, steps, job_error());
    tare_preprocess_destroy(steps);
    return status;
}

static tare_status prepare(job *j) {
    const tare_prepare_options options = {.backend = j->backend, .qconfig_mapping = j->mapping};
    TARE_TRY(tare_model_read(MODEL, NULL, &j->model, job_error()));
    TARE_TRY(declare_preprocess(j));
    return tare_prepare_fx(j->model, &options, &j->prepared, job_error());
}

static tare_status calibrate(job *j) {
    TARE_TRY(tare_tensor_create(TARE_FLOAT32, 4, (const int64_t[]){BATCH}, &j->x, job_error()));
    const tare_tensor *inputs[] = {j->x};
    return tare_calibrate(j->prepared, inputs, 1, job_error());
}

static tare_status convert(job *j) {
    const tare_convert_options options = {.backend = j->backend};
    return tare_convert_fx(j->prepared, &options, &j->converted, job_error());
}

static tare_status through_file(job *j, const tare_model *model) {
    TARE_TRY(tare_model_write(model, temp_path("model.safetensors"), job_error()));
    return tare_model_read(temp_path("model.safetensors"), NULL, &j->read, job_error());
}

static tare_status tell(job *j, const tare_model *model) {
    tare_coverage coverage;
    TARE_TRY(tare_model_explain(model, NULL, note, &j->hash, job_error()));
    TARE_TRY(tare_model_explain_json(model, "conv", note, &j->hash, job_error()));
    TARE_TRY(tare_model_print(model, TARE_PRINT_MODEL, note, &j->hash, job_error()));
    TARE_TRY(tare_model_print(model, TARE_PRINT_DOT, note, &j->hash, job_error()));
    return tare_model_coverage(model, &coverage, job_error());
}

static tare_status run_session(job *j, const tare_model *model) {
    size_t count = 0;
    const tare_tensor *inputs[] = {j->x};
    TARE_TRY(tare_session_create(model, NULL, &j->session, job_error()));
    TARE_TRY(tare_session_run(j->session, inputs, 1, &j->y, 1, &count, job_error()));
    note(&j->hash, tare_tensor_data(j->y), tare__tensor_bytes(j->y));
    return TARE_OK;
}

static tare_status read_own_configs(job *j) {
    TARE_TRY(tare_backend_config_read("examples/my_backend.json", &j->backend, job_error()));
    return tare_qconfig_mapping_read("examples/my_mapping.json", &j->mapping, job_error());
}

// Half of it is refused by the backend, and the record says why.
static tare_status run_refused(job *j) {
    TARE_TRY(tare_backend_config_read("examples/my_backend.json", &j->backend, job_error()));
    TARE_TRY(tare_qconfig_mapping_default("x86", false, -1, &j->mapping, job_error()));
    TARE_TRY(prepare(j));
    return tell(j, j->prepared);
}

static tare_status run_calibrated_later(job *j) {
    TARE_TRY(prepare(j));
    TARE_TRY(calibrate(j));
    TARE_TRY(through_file(j, j->prepared));
    const tare_convert_options options = {.backend = j->backend};
    TARE_TRY(
        tare_convert_to_reference_decomposed_fx(j->read, &options, &j->converted, job_error()));
    TARE_TRY(tell(j, j->converted));
    return run_session(j, j->converted);
}

static tare_status run_reference(job *j) {
    TARE_TRY(prepare(j));
    TARE_TRY(calibrate(j));
    const tare_convert_options options = {.backend = j->backend};
    TARE_TRY(tare_convert_to_reference_fx(j->prepared, &options, &j->converted, job_error()));
    return run_session(j, j->converted);
}

static tare_status run_whole(job *j) {
    TARE_TRY(prepare(j));
    TARE_TRY(calibrate(j));
    TARE_TRY(convert(j));
    TARE_TRY(through_file(j, j->converted));
    TARE_TRY(tell(j, j->read));
    return run_session(j, j->read);
}

static long first_request = 1; // from the command line, with a test's name, to look at a failure

static job lent; // configs that every run of a job uses

// One run; its hash. request 0: nothing fails. *was_denied: an allocation failed.
static uint64_t run_once(tare_status (*run)(job *j), long request, bool *was_denied,
                         tare_status *status) {
    job j = {.backend = lent.backend, .mapping = lent.mapping};
    tare_error_clear(job_error());
    tare__alloc_fail_at(request);
    *status = run(&j);
    *was_denied = tare__alloc_failed();
    tare__alloc_fail_at(0);
    assert_int_equal(tare_error_status(job_error()), *status);
    if (j.backend == lent.backend) j.backend = NULL;
    if (j.mapping == lent.mapping) j.mapping = NULL;
    drop(&j);
    remove(temp_path("model.safetensors"));
    if (count_files() != 0) fail_msg("allocation %ld: files are left behind", request);
    return j.hash;
}

// A job that succeeds all the same did without something that it can do without (the sentence of an
// error that nobody asked for): what it says and computes is then unchanged.
static void fail_each(tare_status (*run)(job *j), long stride) {
    bool was_denied = true;
    tare_status status = TARE_OK;
    const uint64_t wanted = run_once(run, 0, &was_denied, &status);
    assert_int_equal(status, TARE_OK);
    was_denied = true;
    for (long request = first_request; was_denied; request += stride) {
        const uint64_t hash = run_once(run, request, &was_denied, &status);
        if (status == TARE_OUT_OF_MEMORY && was_denied) continue;
        if (status != TARE_OK) fail_msg("allocation %ld: %s", request, tare_status_name(status));
        if (hash != wanted) fail_msg("allocation %ld changed the result", request);
    }
}

// They are long, and much of them repeats.
static void built_in_configs_are_read_or_not(void **state) {
    (void)state;
    fail_each(read_configs, 7);
}

static void own_configs_are_read_or_not(void **state) {
    (void)state;
    fail_each(read_own_configs, 1);
}

static void refusals_are_told_in_full_or_not(void **state) {
    (void)state;
    fail_each(run_refused, 3);
}

static int lend_configs(void **state) {
    (void)state;
    return read_configs(&lent) == TARE_OK ? 0 : -1;
}

static int take_configs_back(void **state) {
    (void)state;
    drop(&lent);
    return 0;
}

static void a_whole_job_ends_cleanly_at_any_allocation(void **state) {
    (void)state;
    fail_each(run_whole, 1);
}

// Up to the file it repeats the whole job.
static void a_prepared_file_is_complete_or_absent(void **state) {
    (void)state;
    fail_each(run_calibrated_later, 3);
}

static void reference_models_run_or_not(void **state) {
    (void)state;
    fail_each(run_reference, 1);
}

static void *json_alloc(size_t size) {
    return tare__alloc(size);
}

int main(int argc, char **argv) {
    if (argc > 1) first_request = atol(argv[1]);
    if (argc > 2) cmocka_set_test_filter(argv[2]);
#define WITH_CONFIGS(test) cmocka_unit_test_setup_teardown(test, lend_configs, take_configs_back)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(built_in_configs_are_read_or_not),
        cmocka_unit_test(own_configs_are_read_or_not),
        cmocka_unit_test(refusals_are_told_in_full_or_not),
        WITH_CONFIGS(a_whole_job_ends_cleanly_at_any_allocation),
        WITH_CONFIGS(a_prepared_file_is_complete_or_absent),
        WITH_CONFIGS(reference_models_run_or_not),
    };
    json_set_alloc_funcs(json_alloc, tare__free);
    return cmocka_run_group_tests(tests, temp_make, temp_remove);
}
