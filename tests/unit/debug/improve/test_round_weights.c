// SPDX-License-Identifier: Apache-2.0
// Rounding beside the best outcome of all, found by trying every one.
#include "debug/improve/round_weights.h"

#include <math.h>

#include "support/observers.h"
#include "support/test.h"

enum { INNER = 6, ROWS = 3, COUNT = INNER * ROWS, SAMPLES = 12, LEVELS = 4 };

typedef struct problem {
    double weights[COUNT], scales[COUNT], least[COUNT], most[COUNT], quantized[COUNT];
    double gram[INNER * INNER];
    rounding r;
} problem;

// Inputs that depend on each other, so that errors can make each other good.
static void make_problem(problem *p, uint32_t seed) {
    *p = (problem){.weights = {0}};
    for (int s = 0; s < SAMPLES; s++) {
        double x[INNER];
        const double common = (double)noise(&seed);
        for (int i = 0; i < INNER; i++) x[i] = common + (double)noise(&seed) / 3;
        for (int i = 0; i < INNER * INNER; i++) p->gram[i] += x[i / INNER] * x[i % INNER];
    }
    for (int i = 0; i < COUNT; i++) {
        p->weights[i] = (double)noise(&seed) / 5;
        p->scales[i] = 0.6;
        p->least[i] = -2;
        p->most[i] = 1;
    }
    p->r = (rounding){.weights = p->weights,
                      .scales = p->scales,
                      .least = p->least,
                      .most = p->most,
                      .count = ROWS,
                      .inner = INNER,
                      .gram = p->gram,
                      .quantized = p->quantized};
}

static double error_of(const problem *p) {
    double error = 0;
    CHECK_OK(tare__round_error(&p->r, &error));
    return error;
}

static double row_error(const problem *p, int row, const double *quantized) {
    double sum = 0;
    for (int i = 0; i < INNER; i++)
        for (int k = 0; k < INNER; k++)
            sum += (p->weights[row * INNER + i] - quantized[i] * 0.6) * p->gram[i * INNER + k] *
                   (p->weights[row * INNER + k] - quantized[k] * 0.6);
    return sum;
}

static double best_error(const problem *p) {
    double all = 0;
    for (int row = 0; row < ROWS; row++) {
        double least = INFINITY;
        for (int number = 0; number < 4096; number++) { // LEVELS to the power of INNER
            double quantized[INNER];
            for (int i = 0, rest = number; i < INNER; i++, rest /= LEVELS)
                quantized[i] = (double)(rest % LEVELS - 2);
            least = fmin(least, row_error(p, row, quantized));
        }
        all += least;
    }
    return all;
}

static void check_levels(const problem *p) {
    for (int i = 0; i < COUNT; i++) {
        assert_true(p->quantized[i] == nearbyint(p->quantized[i]));
        assert_true(p->quantized[i] >= p->least[i] && p->quantized[i] <= p->most[i]);
    }
}

// Over many problems; a single one may be unlucky.
static void errors_lie_between_the_best_and_the_nearest(void **state) {
    (void)state;
    double nearest = 0, gptq = 0, adaround = 0, best = 0;
    for (uint32_t seed = 1; seed <= 12; seed++) {
        problem p;
        make_problem(&p, seed * 977);
        const double least = best_error(&p);
        tare__round_nearest(&p.r);
        nearest += error_of(&p);
        check_levels(&p);
        CHECK_OK(tare__round_gptq(&p.r));
        check_levels(&p);
        assert_true(error_of(&p) >= least * (1 - 1e-9));
        gptq += error_of(&p);
        CHECK_OK(tare__round_adaround(&p.r));
        check_levels(&p);
        assert_true(error_of(&p) >= least * (1 - 1e-9));
        adaround += error_of(&p);
        best += least;
    }
    assert_true(gptq < 0.5 * nearest);
    assert_true(gptq < 2 * best);
    assert_true(adaround < 0.8 * nearest);
}

// Inputs that never come, and such that are one: no division by nothing.
static void odd_inputs_give_levels(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        problem p;
        make_problem(&p, 5);
        for (int i = 0; i < INNER * INNER; i++) p.gram[i] = kind;
        CHECK_OK(tare__round_gptq(&p.r));
        check_levels(&p);
        CHECK_OK(tare__round_adaround(&p.r));
        check_levels(&p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_lie_between_the_best_and_the_nearest),
        cmocka_unit_test(odd_inputs_give_levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
