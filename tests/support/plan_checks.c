// SPDX-License-Identifier: Apache-2.0
#include "support/plan_checks.h"

#include <math.h>

#include "support/models.h"
#include "support/test.h"

tare_session *session_of(const tare_model *model, bool reference) {
    tare_session *s = NULL;
    const tare_session_options options = {.thread_count = 1, .reference = reference};
    CHECK_OK(tare_session_create(model, &options, &s, NULL));
    return s;
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
    tare_tensor *found[4], *expected[4];
    size_t count = 0, expected_count = 0;
    tare_error *err = job_error();
    if (tare_session_run(reference, &x, 1, expected, 4, &expected_count, err) != TARE_OK)
        fail_msg("%s in\n%s", tare_error_message(err), what);
    for (int run = 0; run < 2; run++) {
        if (tare_session_run(planned, &x, 1, found, 4, &count, err) != TARE_OK)
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
