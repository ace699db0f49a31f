// SPDX-License-Identifier: Apache-2.0
// Calls whose result consists of independent parts: threads that share them give the bits of the
// reference, which no step calls.
#include "support/test.h"

#include <string.h>

#include "support/models.h"
#include "support/plan_checks.h"

#define THEN "\n    "

// What y becomes; i and k are integers, m is a mask.
static const char *const lines[] = {
    "y = x.to(torch.int8)",
    "y = i.to(torch.float32)",
    "y = m.to(torch.int32)",
    "h = x.to(torch.float16)" THEN "y = h.to(torch.float32)",
    "y = i + k",
    "y = torch.add(i, k, alpha = 3)",
    "y = i * 2.5",
    "y = i / k",
    "y = torch.div(i, 3, rounding_mode = 'floor')",
    "y = x > 0.5",
    "y = torch.le(i, k)",
    "r = torch.amax(x, 2, True)" THEN "y = torch.eq(x, r)",
    "y = torch.logical_and(x, m)",
    "y = torch.isnan(x)",
    "y = torch.logical_not(i)",
    "y = torch.neg(i)",
    "y = torch.sign(i)",
    "y = torch.bitwise_and(i, k)",
    "y = torch.bitwise_or(i, 5)",
    "n = torch.gt(k, 2)" THEN "y = torch.bitwise_xor(m, n)",
    "y = torch.bitwise_not(m)",
    "y = torch.bitwise_not(i)",
    "y = torch.where(m, i, k)",
    "y = torch.where(m, i, 7)",
    "y = torch.where(m, 0.5, -2.0)",
    "y = torch.cumsum(x, 3)",
    "y = torch.cumsum(x, 1)",
    "y = torch.cumsum(i, 2)",
    "y = torch.cumprod(x, 2)",
    "y = torch.sum(x, 1)",
    "y = torch.sum(x, (1, 2))",
    "y = torch.sum(x, 0)",
    "y = torch.sum(i, 3)",
    "y = torch.sum(x, 2, dtype = torch.int64)",
    "y = torch.mean(x, 2)",
    "y = torch.mean(x, 1, True)",
    "y = torch.amax(x, 3)",
    "y = torch.amin(x, (2, 3), True)",
    "y = torch.prod(x, 1)",
    "y = torch.any(m, 2)",
    "y = torch.all(m, 3)",
    "y = torch.argmax(x, 1)",
    "y = torch.argmin(x, 3)",
    "y = torch.argmax(x)",
    "p = torch.max(x, 2)" THEN "y = p[0]",
    "p = torch.min(x, 3)" THEN "y = p[1]",
    "y = torch.max(i, k)",
    "p = torch.topk(x, 3, 2)" THEN "y = p[1]",
    "p = torch.sort(x, 3, True)" THEN "y = p[0]",
    "y = torch.argsort(x, 1)",
    "j = torch.argsort(x, 3)" THEN "y = torch.gather(x, 3, j)",
    "j = torch.argsort(x, 1)" THEN "y = torch.gather(i, 1, j)",
    "j = torch.argsort(x, 0)" THEN "y = torch.gather(m, 0, j)",
    "f = x.flatten(0, 2)" THEN "g = f.sum(1)" THEN "j = torch.argsort(g)" THEN "y = f[j]",
    "h = torch.amax(x, (2, 3))" THEN "g = torch.amax(h, 0)" THEN "j = torch.argsort(g)" THEN
    "y = x[(slice(None, None, None), j)]",
    "h = torch.amax(x, 3)" THEN "g = torch.amax(h, (0, 1))" THEN "j = torch.argsort(g)" THEN
    "y = x[(slice(None, None, None), slice(None, None, None), j, slice(1, 3, None))]",
    "g = torch.amax(x, (0, 1, 2))" THEN "j = torch.argsort(g)" THEN
    "y = i[(0, slice(None, None, None), None, slice(None, None, None), j)]",
    "g = torch.amax(x, (0, 1, 2))" THEN "o = torch.argsort(g)" THEN "j = torch.remainder(o, 3)" THEN
    "y = x[(slice(None, None, None), j, slice(None, None, None), j)]",
    "g = torch.amax(x, (0, 1, 2))" THEN "o = torch.argsort(g)" THEN "j = torch.remainder(o, 3)" THEN
    "u = j.unsqueeze(1)" THEN "y = m[(slice(None, None, None), u, slice(1, None, 2), j)]",
    "g = torch.amax(x, (0, 1, 2))" THEN "o = torch.argsort(g)" THEN "j = torch.remainder(o, 3)" THEN
    "u = j.unsqueeze(1)" THEN "w = torch.amax(x, 3)" THEN
    "y = w[(slice(None, None, None), u, slice(None, None, None))]",
    "y = torch.logsumexp(x, 3)",
    "z = torch.narrow(x, 3, 0, 2)" THEN
    "y = torch.nn.functional.grid_sample(x, z, 'bilinear', 'zeros', False)",
    "z = torch.narrow(x, 3, 0, 2)" THEN
    "y = torch.nn.functional.grid_sample(x, z, 'bicubic', 'reflection', True)",
    "y = torch.softmax(x, 1)",
    "y = torch.softmax(x, 2)",
    "y = torch.log_softmax(x, 1)",
    "y = torch.log_softmax(x, 0)",
    "y = torch.var(x, 1, True)",
    "y = torch.var(x, (2, 3), correction = 0)",
    "y = torch.std(x, 2)",
    "z = torch.cat([x, x], 3)" THEN "y = torch.nn.functional.glu(z)",
    "z = torch.cat([x, s], 1)" THEN "y = torch.nn.functional.glu(z, 1)",
    "z = torch.stack([x, s], 1)" THEN "y = torch.sum(z, 1)",
    "y = torch.sum(x, (1, 3))",
    "y = torch.mean(x, (0, 2))",
    "y = torch.all(m, (0, 2), True)",
    "y = torch.var(x, (1, 3))",
    "u = x.unsqueeze(2)" THEN "y = torch.amin(u, (2, 4))",
    "u = x.unsqueeze(1)" THEN "v = u.unsqueeze(4)" THEN "y = torch.mean(v, (1, 4))",
};

// Reductions of two groups of dimensions, and the same by one at a time, of what are exact.
static const char *const pairs[][2] = {
    {"y = torch.sum(i, (1, 3))", "r = torch.sum(i, 3)" THEN "y = torch.sum(r, 1)"},
    {"y = torch.sum(i, (0, 2))", "r = torch.sum(i, 2)" THEN "y = torch.sum(r, 0)"},
    {"y = torch.amax(x, (0, 2), True)",
     "r = torch.amax(x, 2, True)" THEN "y = torch.amax(r, 0, True)"},
    {"y = torch.amin(x, (1, 3))", "r = torch.amin(x, 3)" THEN "y = torch.amin(r, 1)"},
    {"y = torch.any(m, (0, 3))", "r = torch.any(m, 3)" THEN "y = torch.any(r, 0)"},
    {"y = torch.var(s, (0, 2))",
     "p = s.permute(0, 2, 1, 3)" THEN "r = p.reshape(18, 5, 4)" THEN "y = torch.var(r, 0)"},
};

static tare_model *model_of(const char *line) {
    char code[640];
    (void)snprintf(code, sizeof code,
                   "def forward(self, x):\n"
                   "    s = x * 8\n"
                   "    i = s.to(torch.int64)\n"
                   "    t = torch.amax(i, 2, True)\n"
                   "    k = t + 1\n"
                   "    m = torch.gt(x, 0.4)\n"
                   "    %s\n"
                   "    return y\n",
                   line);
    return new_model(NULL, new_tree(), code);
}

// Other operators, in front of the one that is meant, may need a reference.
static void check(const char *line, const tare_tensor *x) {
    tare_model *model = model_of(line);
    tare_session *reference = session_with(model, &portable_reference);
    run_outputs expected = outputs_of(reference, &x, 1);
    for (int threads = 1; threads <= 2; threads++) {
        tare_session *s = session_on(model, threads);
        check_same_outputs(s, x, &expected);
        check_calls(s, "", line);
        tare_session_destroy(s);
    }
    release_outputs(&expected);
    tare_session_destroy(reference);
    tare_model_destroy(model);
}

static void check_all(const tare_tensor *x) {
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) check(lines[i], x);
}

static void parts_have_the_references_bits(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(2, 5, 6, 4);
    check_all(x);
    tare_tensor_release(x);
}

static void threads_share_parts(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(2, 9, 41, 33);
    check_all(x);
    tare_tensor_release(x);
}

static void dimensions_apart_are_reduced_as_one_by_one(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(3, 5, 6, 4);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        tare_tensor *y[2];
        for (size_t k = 0; k < 2; k++) {
            tare_model *model = model_of(pairs[i][k]);
            tare_session *s = session_on(model, 1);
            y[k] = output_of(s, x);
            tare_session_destroy(s);
            tare_model_destroy(model);
        }
        check_same_tensor(y[0], y[1]);
        tare_tensor_release(y[0]);
        tare_tensor_release(y[1]);
    }
    tare_tensor_release(x);
}

// A part may have no elements.
static void sums_of_nothing_are_computed(void **state) {
    static const char *const of_nothing[] = {"torch.sum(x, 1)", "torch.prod(x, 1)",
                                             "torch.mean(x, 1)", "torch.any(x, 1)",
                                             "torch.var(x, 1)"};
    (void)state;
    tare_tensor *x = NEW_INPUT(3, 0, 2);
    for (size_t i = 0; i < sizeof of_nothing / sizeof *of_nothing; i++) {
        char code[96];
        (void)snprintf(code, sizeof code, "def forward(self, x):\n    y = %s\n    return y\n",
                       of_nothing[i]);
        tare_model *model = new_model(NULL, new_tree(), code);
        tare_session *reference = session_with(model, &portable_reference);
        tare_session *planned = session_on(model, 2);
        run_outputs expected = outputs_of(reference, (const tare_tensor *const[]){x}, 1);
        check_same_outputs(planned, x, &expected);
        release_outputs(&expected);
        tare_session_destroy(planned);
        tare_session_destroy(reference);
        tare_model_destroy(model);
    }
    tare_tensor_release(x);
}

// What is wrong is said as the reference says it, whichever thread finds it.
static void a_wrong_index_is_named(void **state) {
    (void)state;
    tare_model *model = model_of("n = i + 20000" THEN "y = torch.gather(x, 3, n)");
    tare_tensor *x = NEW_INPUT(2, 9, 41, 33);
    tare_session *s = session_on(model, 2);
    tare_error *err = tare_error_create();
    size_t count = 0;
    tare_tensor *y = NULL;
    assert_int_not_equal(
        tare_session_run(s, (const tare_tensor *const[]){x}, 1, &y, 1, &count, err), TARE_OK);
    assert_non_null(strstr(tare_error_message(err), "is outside of a dimension of 33"));
    tare_error_destroy(err);
    tare_session_destroy(s);
    tare_tensor_release(x);
    tare_model_destroy(model);
}

static void a_failed_allocation_is_an_error(void **state) {
    (void)state;
    tare_model *model = model_of("p = torch.sort(x, 3, True)" THEN "y = p[0]");
    tare_tensor *x = NEW_INPUT(2, 3, 4, 5);
    check_run_without_memory(model, NULL, (const tare_tensor *const[]){x}, 1);
    tare_tensor_release(x);
    tare_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_have_the_references_bits),
        cmocka_unit_test(threads_share_parts),
        cmocka_unit_test(dimensions_apart_are_reduced_as_one_by_one),
        cmocka_unit_test(sums_of_nothing_are_computed),
        cmocka_unit_test(a_wrong_index_is_named),
        cmocka_unit_test(a_failed_allocation_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
