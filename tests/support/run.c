// SPDX-License-Identifier: Apache-2.0
// Parses a text as a graph, interprets it, and compares floats within a relative tolerance.
#include "support/run.h"

#include <math.h>

#include "support/test.h"

#include "core/text/text.h"
#include "ops/classes/classes.h"
#include "ops/op.h"
#include "ops/text/print.h"

// "a = f(x); g(a)": statements, then the result.
static void write_quantized(const char *parameters, const char *body, text *code) {
    tare__text_printf(code, "def forward(self, %s):\n", parameters);
    for (const char *end; (end = strstr(body, "; ")) != NULL; body = end + 2)
        tare__text_printf(code, "    %.*s\n", (int)(end - body), body);
    tare__text_printf(code, "    result = %s\n    return result\n", body);
}

module *model_of(const char *parameters, const char *expression) {
    text code = {0};
    module *m = NULL;
    tare_error *err = tare_error_create();
    write_quantized(parameters, expression, &code);
    CHECK_OK(tare__module_create(&tare__class_graph_module, &m, NULL));
    if (tare__parse_code(tare__text_chars(&code), code.length, NULL, &m->graph, err) != TARE_OK)
        fail_msg("%s: %s", expression, tare_error_message(err));
    tare_error_destroy(err);
    tare__text_release(&code);
    return m;
}

tare_tensor *counting(double start, double step, int ndim, const int64_t *shape) {
    tare_tensor *t = NULL;
    CHECK_OK(tare_tensor_create(TARE_FLOAT32, ndim, shape, &t, NULL));
    for (int64_t i = 0; i < t->count; i++) tare__tensor_set(t, i, start + step * (double)i);
    return t;
}

tare_status run_model(module *model, tare_tensor *const *inputs, size_t count,
                      float_kernels *kernels, tare_tensor **out, tare_error *err) {
    value values[8], result = tare__none();
    arena memory = {0};
    const interpreter it = {.root = model, .own = model, .thread_count = 1, .kernels = kernels};
    for (size_t i = 0; i < count; i++)
        values[i] = (value){.kind = VALUE_TENSOR, .as.tensor = inputs[i]};
    const tare_status status = tare__interpret(&it, values, count, &memory, &result, err);
    if (status == TARE_OK) {
        assert_int_equal(result.kind, VALUE_TENSOR);
        *out = result.as.tensor;
    }
    tare__arena_release(&memory);
    return status;
}

tare_tensor *run_expression(const char *parameters, const char *expression,
                            tare_tensor *const *inputs, size_t count) {
    module *m = model_of(parameters, expression);
    tare_tensor *out = NULL;
    tare_error *err = tare_error_create();
    if (run_model(m, inputs, count, NULL, &out, err) != TARE_OK)
        fail_msg("%s: %s", expression, tare_error_message(err));
    for (size_t i = 0; i < count; i++) tare_tensor_release(inputs[i]);
    tare_error_destroy(err);
    tare__module_release(m);
    return out;
}

void check_floats(tare_tensor *t, const double *expected, size_t count) {
    assert_int_equal(t->count, count);
    for (size_t i = 0; i < count; i++) {
        const double found = tare__tensor_get(t, (int64_t)i);
        if (found == expected[i] || (isnan(found) && isnan(expected[i]))) continue;
        if (!(fabs(found - expected[i]) <= 1e-6 + 1e-6 * fabs(expected[i])))
            fail_msg("element %zu: expected %.9g, found %.9g", i, expected[i], found);
    }
    tare_tensor_release(t);
}
