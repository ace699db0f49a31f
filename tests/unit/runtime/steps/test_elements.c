// SPDX-License-Identifier: Apache-2.0
// Steps of elementwise operators give the bits of the operators' references, in either layout, with
// operands that are broadcast, odd values, and any number of threads; none is left to a call.
#include "support/test.h"

#include <math.h>

#include "support/models.h"
#include "support/plan_checks.h"

#define THEN           "\n    "
#define MASK(x, below) "m = torch.lt(" x ", " below ")" THEN

static void check(const char *line, const tare_tensor *x) {
    char code[512];
    (void)snprintf(
        code, sizeof code,
        "def forward(self, x):\n"
        "    p = torch.nn.functional.interpolate(x, scale_factor = 2)\n" // lies channels last
        "    %s\n"
        "    return y\n",
        line);
    tare_model *model = new_model(NULL, new_tree(), code);
    tare_session *reference = session_of(model, true);
    tare_tensor *expected = output_of(reference, x);
    for (int threads = 1; threads <= 2; threads++) {
        tare_session *s = session_on(model, threads);
        tare_tensor *found = output_of(s, x);
        check_calls(s, "lt|amax", line);
        assert_int_equal(found->count, expected->count);
        for (int64_t i = 0; i < found->count; i++) {
            const float a = tare__f32(found)[i], b = tare__f32(expected)[i];
            if (memcmp(&a, &b, sizeof a) != 0 && !(isnan(a) && isnan(b)))
                fail_msg("%s: element %lld is %g, expected %g", line, (long long)i, (double)a,
                         (double)b);
        }
        tare_tensor_release(found);
        tare_session_destroy(s);
    }
    tare_tensor_release(expected);
    tare_session_destroy(reference);
    tare_model_destroy(model);
}

// What y becomes.
static const char *const lines[] = {
    "y = torch.neg(p)",
    "y = torch.neg(x)",
    "y = p.abs()",
    "y = torch.sign(x)",
    "y = torch.pow(x, 2)",
    "y = torch.pow(p, 3.0)",
    "y = torch.pow(x, 0.5)",
    "y = torch.pow(x, -0.5)",
    "y = torch.pow(x, -1)",
    "y = torch.pow(p, -2)",
    "y = torch.pow(x, 1.7)",
    "y = torch.pow(2.5, p)",
    "y = torch.pow(x, x)",
    MASK("x", "0.25") "y = torch.masked_fill(x, m, -3.5)",
    MASK("p", "0.25") "y = torch.masked_fill(p, m, -inf)",
    "a = torch.amax(p, 1, True)" THEN MASK("a", "0.5") "y = torch.masked_fill(p, m, 7)",
    "a = torch.amax(x, (2, 3), True)" THEN MASK("a", "0.9") "f = torch.masked_fill(x, m, 7)" THEN
                                                            "y = f * 2",
    "a = torch.amax(x, (0, 1), False)" THEN MASK("a", "0.9") "y = torch.masked_fill(x, m, 0.1)",
    MASK("p", "0.1") "y = torch.where(m, p, 0.3)",
    MASK("p", "0.1") "f = torch.where(m, 0.3, p)" THEN "y = f + 1",
    MASK("x", "0.1") "a = x * 2" THEN "b = x - 1" THEN "y = torch.where(m, a, b)",
    "a = torch.amax(x, (2, 3), True)" THEN
    "b = torch.amax(x, 1, True)" THEN MASK("a", "0.9") "y = torch.where(m, x, b)",
    "a = torch.amax(x, (2, 3), True)" THEN "b = torch.amax(x, 1, True)" THEN "y = a * b",
    "a = torch.amax(x, (2, 3), True)" THEN "b = torch.amax(x, 1, True)" THEN "f = a - b" THEN
    "y = torch.exp(f)",
    "a = torch.amax(x, (0, 1, 2))" THEN
    "b = torch.amax(x, (1, 3), True)" THEN MASK("a", "0.9") "f = b / a" THEN
                                                            "y = torch.masked_fill(f, m, 7)",
};

static void check_all(const tare_tensor *x) {
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) check(lines[i], x);
}

static void steps_have_the_references_bits(void **state) {
    static const float odd[] = {0.0F, -0.0F, INFINITY, -INFINITY, NAN, 1e-40F, -1e-40F, 3e38F};
    (void)state;
    tare_tensor *x = NEW_INPUT(2, 5, 6, 4);
    check_all(x);
    for (int64_t i = 0; i < x->count; i += 3)
        tare__f32(x)[i] = odd[i / 3 % (int64_t)(sizeof odd / sizeof *odd)];
    check_all(x);
    tare_tensor_release(x);
}

static void threads_share_them(void **state) {
    (void)state;
    tare_tensor *x = NEW_INPUT(1, 19, 50, 70);
    check_all(x);
    tare_tensor_release(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_have_the_references_bits),
        cmocka_unit_test(threads_share_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
