// SPDX-License-Identifier: Apache-2.0
// Makes observers, feeds them rows of floats, and compares their text and parameters.
#include "support/observers.h"

#include <string.h>

#include "core/text/text.h"
#include "observe/observer.h"
#include "support/test.h"

tare_status read_spec(const char *json, tare_observer_spec **out, tare_error *err) {
    json_t *parsed = NULL;
    CHECK_OK(tare__json_parse(json, strlen(json), &parsed, NULL));
    const json_at at = tare__json_root(parsed);
    const tare_status status = tare__observer_spec_from_json(&at, out, err);
    json_decref(parsed);
    return status;
}

tare_observer_spec *spec_of(const char *json) {
    tare_observer_spec *spec = NULL;
    CHECK_OK(read_spec(json, &spec, NULL));
    return spec;
}

tare_status make(const char *json, module **out, tare_error *err) {
    tare_observer_spec *spec = NULL;
    TARE_TRY(read_spec(json, &spec, err));
    const tare_status status = tare__observer_spec_instantiate(NULL, spec, out, err);
    tare_observer_spec_release(spec);
    return status;
}

module *made(const char *json) {
    module *m = NULL;
    CHECK_OK(make(json, &m, NULL));
    return m;
}

tare_tensor *floats(int ndim, const int64_t *shape, const float *values) {
    tare_tensor *t = NULL;
    CHECK_OK(tare_tensor_from_data(TARE_FLOAT32, ndim, shape, values, &t, NULL));
    return t;
}

tare_tensor *row(int64_t count, const float *values) {
    return floats(1, &count, values);
}

void show(module *m, int64_t count, const float *values) {
    tare_tensor *t = row(count, values);
    CHECK_OK(tare__observer_update(m, t, NULL));
    tare_tensor_release(t);
}

void assert_text(const module *m, const char *expected) {
    text t = {0};
    tare__text_printf(&t, "%s(", m->class->print_name);
    CHECK_OK(m->class->describe(m, &t, NULL));
    tare__text_char(&t, ')');
    assert_string_equal(tare__text_chars(&t), expected);
    tare__text_release(&t);
}

const qparams *qparams_of(const module *m) {
    const qparams *q = NULL;
    bool is_calibrated = false;
    CHECK_OK(tare__observer_qparams(m, &q, &is_calibrated, NULL));
    return q;
}

void assert_same_qparams(const module *a, const module *b) {
    const qparams *left = qparams_of(a), *right = qparams_of(b);
    assert_true(tare__qparams_equal(left, right));
    tare__qparams_release(left);
    tare__qparams_release(right);
}

float noise(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return (float)(int32_t)*seed / 4e8F;
}
