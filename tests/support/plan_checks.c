// SPDX-License-Identifier: Apache-2.0
// Runs sessions, compares their outputs bit by bit, and counts the steps of their plans by kind.
#include "support/plan_checks.h"

#include <math.h>

#include "support/models.h"
#include "support/test.h"

const tare_session_options portable_reference = {.reference = true, .portable_floats = true};

// --- runs ---

tare_session *session_with(const tare_model *model, const tare_session_options *options) {
    tare_session *s = NULL;
    CHECK_DONE(tare_session_create(model, options, &s, job_error()));
    return s;
}

tare_session *session_on(const tare_model *model, int threads) {
    return session_with(model, &(tare_session_options){.thread_count = threads});
}

tare_session *session_of(const tare_model *model, bool reference) {
    return session_with(model, &(tare_session_options){.thread_count = 1, .reference = reference});
}

run_outputs outputs_of(tare_session *s, const tare_tensor *const *inputs, size_t count) {
    run_outputs out = {0};
    CHECK_DONE(tare_session_run(s, inputs, count, out.at, MOST_OUTPUTS, &out.count, job_error()));
    return out;
}

void release_outputs(run_outputs *outputs) {
    for (size_t i = 0; i < outputs->count; i++) tare_tensor_release(outputs->at[i]);
    *outputs = (run_outputs){0};
}

tare_tensor *output_of(tare_session *s, const tare_tensor *x) {
    const run_outputs out = outputs_of(s, &x, 1);
    assert_int_equal(out.count, 1);
    return out.at[0];
}

tare_tensor *output_with(const tare_model *model, const tare_session_options *options,
                         const tare_tensor *x) {
    tare_session *s = session_with(model, options);
    tare_tensor *y = output_of(s, x);
    tare_session_destroy(s);
    return y;
}

static tare_status run_whole(const tare_model *model, const tare_session_options *options,
                             const tare_tensor *const *inputs, size_t count) {
    tare_session *s = NULL;
    tare_status status = tare_session_create(model, options, &s, job_error());
    for (int run = 0; run < 2 && status == TARE_OK; run++) {
        run_outputs out = {0};
        status = tare_session_run(s, inputs, count, out.at, MOST_OUTPUTS, &out.count, job_error());
        if (status == TARE_OK) release_outputs(&out);
    }
    tare_session_destroy(s);
    return status;
}

void check_run_without_memory(const tare_model *model, const tare_session_options *options,
                              const tare_tensor *const *inputs, size_t count) {
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(status, status = run_whole(model, options, inputs, count), (void)0);
}

static tare_status run_profiled(const tare_model *model, const tare_tensor *x) {
    tare_session *s = NULL;
    run_outputs out = {0};
    const tare_session_options options = {.thread_count = 2};
    tare_status status = tare_session_create(model, &options, &s, NULL);
    if (status == TARE_OK) status = tare_session_profile(s, true, NULL);
    if (status == TARE_OK)
        status = tare_session_run(s, &x, 1, out.at, MOST_OUTPUTS, &out.count, NULL);
    if (status == TARE_OK) release_outputs(&out);
    tare_session_destroy(s);
    return status;
}

void check_profile_without_memory(const tare_model *model, const tare_tensor *x) {
    tare_status status = TARE_OK;
    EVERY_ALLOCATION_FAILS(status, status = run_profiled(model, x), (void)0);
}

// --- steps ---

size_t count_steps(const tare_session *s, const char *kind, const char *words) {
    tare_step step = {.struct_size = sizeof step};
    size_t found = 0;
    for (size_t i = 0; tare_session_get_step(s, i, &step); i++)
        found += (kind == NULL || strcmp(step.kind, kind) == 0) &&
                 (words == NULL || strstr(step.why, words) != NULL);
    return found;
}

static bool is_listed(const char *list, const char *name) {
    const size_t length = strlen(name);
    for (const char *at = list;; at++) {
        const size_t next = strcspn(at, "|");
        if (next == length && strncmp(at, name, length) == 0) return true;
        at += next;
        if (*at == 0) return false;
    }
}

void check_calls(const tare_session *s, const char *allowed, const char *what) {
    tare_step step = {.struct_size = sizeof step};
    for (size_t i = 0; tare_session_get_step(s, i, &step); i++)
        if (strcmp(step.kind, "call") == 0 && !is_listed(allowed, step.op))
            fail_msg("%s: '%s' of '%s' is a call: %s", what, step.node, step.op, step.why);
    assert_true(tare_session_step_count(s) > 0);
}

// --- numbers ---

void check_same_outputs(tare_session *s, const tare_tensor *x, const run_outputs *expected) {
    run_outputs found = outputs_of(s, &x, 1);
    assert_int_equal(found.count, expected->count);
    for (size_t i = 0; i < found.count; i++) check_same_tensor(found.at[i], expected->at[i]);
    release_outputs(&found);
}

void check_plans(const tare_model *model, const tare_tensor *x,
                 void (*check_steps)(const tare_session *s, size_t which), size_t which) {
    tare_session *reference = session_of(model, true);
    run_outputs expected = outputs_of(reference, &x, 1);
    for (int threads = 1; threads <= 2; threads++) {
        tare_session *s = session_on(model, threads);
        check_same_outputs(s, x, &expected);
        check_steps(s, which);
        tare_session_destroy(s);
    }
    release_outputs(&expected);
    tare_session_destroy(reference);
}

void check_near_floats(const tare_tensor *found, const tare_tensor *expected, float tolerance,
                       const char *what) {
    assert_int_equal(found->count, expected->count);
    for (int64_t i = 0; i < found->count; i++) {
        const float a = tare__f32(found)[i], b = tare__f32(expected)[i];
        if (!(fabsf(a - b) <= tolerance * (1 + fabsf(b))))
            fail_msg("%s, element %lld: %g, not %g", what, (long long)i, (double)a, (double)b);
    }
}

static void check_close(const tare_tensor *found, const tare_tensor *expected, const char *what) {
    double greatest = 1e-3;
    assert_int_equal(found->dtype, expected->dtype);
    assert_int_equal(found->ndim, expected->ndim);
    assert_memory_equal(found->shape, expected->shape, (size_t)found->ndim * sizeof(int64_t));
    for (int64_t i = 0; i < expected->count; i++) {
        const double size = fabs(tare__tensor_get(expected, i));
        if (size > greatest) greatest = size;
    }
    for (int64_t i = 0; i < expected->count; i++) {
        const double a = tare__tensor_get(found, i), b = tare__tensor_get(expected, i);
        if (!(fabs(a - b) <= 2e-5 * greatest))
            fail_msg("element %lld: found %.9g, expected %.9g in\n%s", (long long)i, a, b, what);
    }
}

void check_equal_runs(tare_session *planned, tare_session *reference, const tare_tensor *x,
                      const char *what) {
    tare_tensor *found[MOST_OUTPUTS], *expected[MOST_OUTPUTS];
    size_t count = 0, expected_count = 0;
    tare_error *err = job_error();
    if (tare_session_run(reference, &x, 1, expected, MOST_OUTPUTS, &expected_count, err) != TARE_OK)
        fail_msg("%s in\n%s", tare_error_message(err), what);
    for (int run = 0; run < 2; run++) {
        if (tare_session_run(planned, &x, 1, found, MOST_OUTPUTS, &count, err) != TARE_OK)
            fail_msg("%s in\n%s", tare_error_message(err), what);
        assert_int_equal(count, expected_count);
        for (size_t i = 0; i < count; i++) {
            check_close(found[i], expected[i], what);
            tare_tensor_release(found[i]);
        }
    }
    for (size_t i = 0; i < count; i++) tare_tensor_release(expected[i]);
}

void check_model(tare_model *model, const tare_tensor *x, const char *what) {
    tare_session *planned = session_of(model, false), *reference = session_of(model, true);
    check_equal_runs(planned, reference, x, what);
    tare_session_destroy(planned);
    tare_session_destroy(reference);
}
