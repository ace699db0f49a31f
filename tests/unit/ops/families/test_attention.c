// SPDX-License-Identifier: Apache-2.0
// What transformers need, against values that PyTorch 2.15 computed: attention, its norms, moved
// windows, numbers made of sizes.
#include "support/models.h"
#include "support/run.h"
#include "support/test.h"

#include <math.h>

#define ATTEND "torch.nn.functional.scaled_dot_product_attention"

static tare_tensor *query(void) {
    return COUNTING(-1, 0.25, 1, 2, 2, 2);
}
static tare_tensor *keys(void) {
    return COUNTING(1, -0.125, 1, 2, 3, 2);
}
static tare_tensor *values(void) {
    return COUNTING(0, 0.5, 1, 2, 3, 2);
}

static void attention_follows_torch(void **state) {
    (void)state;
    CHECK(run_expression("q, k, v", ATTEND "(q, k, v)", INPUTS(query(), keys(), values())),
          1.20301664, 1.70301652, 1.08813035, 1.58813047, 3.97054672, 4.47054672, 3.85387254,
          4.3538723);
    CHECK(run_expression("q, k, v", ATTEND "(q, k, v, is_causal = True, scale = 2.0)",
                         INPUTS(query(), keys(), values())),
          0, 0.5, 0.592666626, 1.09266663, 3, 3.5, 3.34864521, 3.84864545);
}

static void masks_of_attention_hide_or_add(void **state) {
    (void)state;
    tare_tensor *mask = NULL;
    const bool may_look[] = {true, false, true, false, false, false};
    CHECK_OK(tare_tensor_from_data(TARE_BOOL, 2, (const int64_t[]){2, 3}, may_look, &mask, NULL));
    // A query that may look at nothing gets zeros.
    CHECK(run_expression("q, k, v, m", ATTEND "(q, k, v, m)",
                         INPUTS(query(), keys(), values(), mask)),
          1.29985404, 1.79985404, 0, 0, 3.95583487, 4.45583487, 0, 0);
    CHECK(run_expression("q, k, v, m", ATTEND "(q, k, v, attn_mask = m)",
                         INPUTS(query(), keys(), values(), COUNTING(-1, 0.5, 1, 1, 2, 3))),
          1.4879508, 1.9879508, 1.39583266, 1.89583278, 4.29380131, 4.79380131, 4.18364525,
          4.68364573);
}

static void heads_share_keys(void **state) {
    (void)state;
    CHECK(run_expression("q, k, v", ATTEND "(q, k, v, enable_gqa = True)",
                         INPUTS(COUNTING(-1, 0.25, 1, 4, 1, 2), keys(), values())),
          1.20301664, 1.70301652, 1.08813035, 1.58813047, 3.97054672, 4.47054672, 3.85387254,
          4.3538723);
}

static void check_error(const char *expression, tare_tensor *const *inputs, size_t count,
                        const char *words) {
    module *m = model_of(count == 4 ? "q, k, v, m" : count == 3 ? "q, k, v" : "q", expression);
    tare_tensor *out = NULL;
    CHECK_REFUSED(run_model(m, inputs, count, NULL, &out, job_error()), TARE_INVALID_ARGUMENT,
                  words);
    tare__module_release(m);
    for (size_t i = 0; i < count; i++) tare_tensor_release(inputs[i]);
}

static void wrong_attention_is_refused(void **state) {
    (void)state;
    check_error(ATTEND "(q, k, v)", INPUTS(query(), COUNTING(0, 1, 1, 2, 3, 4), values()),
                "do not fit each other");
    check_error(ATTEND "(q, k, v)", INPUTS(query(), COUNTING(0, 1, 1, 5, 3, 2), values()),
                "does not fit");
    check_error(ATTEND "(q, k, v, m)", INPUTS(query(), keys(), values(), COUNTING(0, 1, 4, 3)),
                "a mask of");
    check_error(ATTEND "(q, k, v, m, is_causal = True)",
                INPUTS(query(), keys(), values(), COUNTING(0, 1, 2, 3)), "found both");
    check_error(ATTEND "(q, k, v, enable_gqa = True)",
                INPUTS(COUNTING(-1, 0.25, 1, 3, 1, 2), keys(), values()), "do not divide");
}

static void norms_of_lines_follow_torch(void **state) {
    (void)state;
    CHECK(run_expression("x, w", "torch.nn.functional.rms_norm(x, (3,), w, 1e-05)",
                         INPUTS(COUNTING(-1.5, 0.5, 2, 3), COUNTING(1, 0.5, 3))),
          -1.38872421, -1.38872421, -0.92581614, 0, 1.16188109, 3.09834957);
    CHECK(run_expression("x", "torch.nn.functional.rms_norm(x, [3])",
                         INPUTS(COUNTING(-1.5, 0.5, 2, 3))),
          -1.38873005, -0.925819993, -0.462909997, 0, 0.774596572, 1.54919314);
    CHECK(run_expression("x", "torch.nn.functional.normalize(x, dim = 1)",
                         INPUTS(COUNTING(-1.5, 0.5, 2, 3))),
          -0.801783681, -0.534522474, -0.267261237, 0, 0.44721359, 0.89442718);
    CHECK(run_expression("x", "torch.nn.functional.normalize(x, p = 1.0, dim = 0)",
                         INPUTS(COUNTING(-1.5, 0.5, 2, 3))),
          -1, -0.666666687, -0.333333343, 0, 0.333333343, 0.666666687);
}

static void elements_roll_and_flip(void **state) {
    (void)state;
    CHECK(run_expression("x", "torch.roll(x, 1)", INPUTS(COUNTING(0, 1, 2, 3))), 5, 0, 1, 2, 3, 4);
    CHECK(run_expression("x", "torch.roll(x, (1, -1), (0, 1))", INPUTS(COUNTING(0, 1, 2, 3))), 4, 5,
          3, 1, 2, 0);
    CHECK(run_expression("x", "x.roll(shifts = (-4,), dims = (1,))", INPUTS(COUNTING(0, 1, 2, 3))),
          1, 2, 0, 4, 5, 3);
    CHECK(run_expression("x", "torch.flip(x, [0, 1])", INPUTS(COUNTING(0, 1, 2, 3))), 5, 4, 3, 2, 1,
          0);
    CHECK(run_expression("x", "x.flip(-1)", INPUTS(COUNTING(0, 1, 2, 3))), 2, 1, 0, 5, 4, 3);
    check_error("torch.roll(q, (1, 2), 0)", INPUTS(COUNTING(0, 1, 2, 3)),
                "2 shifts for 1 dimensions");
    check_error("q.flip(2)", INPUTS(COUNTING(0, 1, 2, 3)), "dimension 2 does not exist");
}

static void numbers_of_sizes_are_computed(void **state) {
    (void)state;
    CHECK(run_expression("x", "n = x.size(-1); r = math_sqrt(n); f = 1.0 / r; x * f",
                         INPUTS(COUNTING(2, 2, 1, 4))),
          1, 2, 3, 4);
    CHECK(run_expression("x", "n = x.size(-1); q = n / 3; c = math_ceil(q); x + c",
                         INPUTS(COUNTING(0, 1, 1, 4))),
          2, 3, 4, 5);
    check_error("r = math_sqrt(q); q + r", INPUTS(COUNTING(0, 1, 2)), "expected a number");
}

static void conversions_name_their_type(void **state) {
    (void)state;
    CHECK(run_expression("x", "y = x.long(); y.float()", INPUTS(COUNTING(-1.5, 1.25, 3))), -1, 0,
          1);
    CHECK(run_expression("x", "y = x.bool(); y.float()", INPUTS(COUNTING(-0.5, 0.5, 3))), 1, 0, 1);
    CHECK(run_expression("x", "y = x.int(); y.type_as(x)", INPUTS(COUNTING(1.75, 1, 2))), 1, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_follows_torch),
        cmocka_unit_test(masks_of_attention_hide_or_add),
        cmocka_unit_test(heads_share_keys),
        cmocka_unit_test(wrong_attention_is_refused),
        cmocka_unit_test(norms_of_lines_follow_torch),
        cmocka_unit_test(elements_roll_and_flip),
        cmocka_unit_test(numbers_of_sizes_are_computed),
        cmocka_unit_test(conversions_name_their_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
