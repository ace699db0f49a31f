// SPDX-License-Identifier: Apache-2.0
// Solutions of integer programs against every possible one of small random programs.
#include "support/test.h"

#include <math.h>

#include "core/math/choice_program.h"

enum { MOST_ITEMS = 8, PROGRAMS = 600 };

static uint32_t next_random(uint32_t *state) {
    return (*state = *state * 1664525u + 1013904223u) >> 8;
}

static program_costs random_costs(uint32_t *state, bool is_whole) {
    program_costs c = {{0}};
    for (int k = 0; k < PROGRAM_KINDS; k++) {
        c.of[k] = (double)(next_random(state) % 50);
        if (!is_whole) c.of[k] *= 0.37 * exp((double)(k * 3));
    }
    return c;
}

// The last item is free; the edges between it and others are such as values have.
static void make_program(choice_program *p, uint32_t *state) {
    const bool is_whole = next_random(state) % 2 == 0;
    const size_t count = 2 + next_random(state) % (MOST_ITEMS - 2);
    size_t item = 0;
    CHECK_OK(tare__program_begin(p, NULL));
    for (size_t i = 1; i < count; i++) {
        CHECK_OK(tare__program_add_item(p, &item, NULL));
        const size_t choices = 1 + next_random(state) % 3;
        for (size_t c = 0; c < choices; c++) {
            const program_costs costs = random_costs(state, is_whole);
            tare__program_add_choice(p, item, next_random(state) % 2 == 0, &costs);
        }
    }
    CHECK_OK(tare__program_add_free_item(p, &item, NULL));
    const size_t edges = next_random(state) % 12;
    for (size_t e = 0; e < edges; e++) {
        const program_costs costs = random_costs(state, is_whole);
        const bool is_forbidden = next_random(state) % 6 == 0;
        CHECK_OK(tare__program_add_edge(p, next_random(state) % p->item_count,
                                        next_random(state) % p->item_count,
                                        is_forbidden ? NULL : &costs, NULL));
    }
}

static bool is_allowed(const choice_program *p, const bool *is_float) {
    for (size_t e = 0; e < p->edge_count; e++)
        if (p->edges[e].is_forbidden && !is_float[p->edges[e].from] && is_float[p->edges[e].to])
            return false;
    return true;
}

static double value_of(const choice_program *p, const program_goal *goal, const uint8_t *choices,
                       program_costs *sums) {
    bool is_float[MOST_ITEMS + 1];
    double value = 0;
    for (size_t i = 0; i < p->item_count; i++)
        is_float[i] = p->items[i].choices[choices[i]].is_float;
    if (!is_allowed(p, is_float)) return INFINITY;
    *sums = tare__program_sums(p, choices, is_float);
    for (int k = 0; k < PROGRAM_KINDS; k++) {
        if (sums->of[k] > goal->limits[k] * (1 + 1e-12)) return INFINITY;
        value += goal->weights[k] * sums->of[k];
    }
    return value;
}

static double least_value(const choice_program *p, const program_goal *goal) {
    uint8_t choices[MOST_ITEMS + 1] = {0};
    double least = INFINITY;
    program_costs sums;
    for (size_t i = 0; i < p->item_count;) {
        const double value = value_of(p, goal, choices, &sums);
        if (value < least) least = value;
        for (i = 0; i < p->item_count && ++choices[i] == p->items[i].choice_count; i++)
            choices[i] = 0;
    }
    return least;
}

// Limits between what the least and a random assignment need, so that some bind and some do not.
static program_goal make_goal(const choice_program *p, uint32_t *state) {
    program_goal goal = {.weights = {1, 0, 0}, .limits = {INFINITY, INFINITY, INFINITY}};
    program_costs sums = {{0}};
    uint8_t choices[MOST_ITEMS + 1] = {0};
    if (next_random(state) % 4 == 0) goal.weights[2] = 0.5;
    for (size_t i = 0; i < p->item_count; i++)
        choices[i] = (uint8_t)(next_random(state) % p->items[i].choice_count);
    if (isinf(value_of(p, &goal, choices, &sums))) return goal;
    for (int k = 1; k < PROGRAM_KINDS; k++)
        if (next_random(state) % 3 != 0)
            goal.limits[k] = sums.of[k] * (double)(6 + next_random(state) % 10) / 10;
    return goal;
}

static void check_program(uint32_t seed, size_t *feasible, size_t *limited) {
    choice_program p = {0};
    uint8_t choices[MOST_ITEMS + 1];
    bool is_float[MOST_ITEMS + 1];
    program_costs sums;
    uint32_t state = seed;
    make_program(&p, &state);
    const program_goal goal = make_goal(&p, &state);
    const double least = least_value(&p, &goal);
    program_solution found = {.choices = choices, .is_float = is_float};
    CHECK_OK(tare__program_solve(&p, &goal, &found, NULL));
    if (found.is_feasible != !isinf(least)) fail_msg("seed %u: feasible or not", seed);
    if (found.is_feasible) {
        const double value = value_of(&p, &goal, choices, &sums);
        if (fabs(value - least) > 1e-6 * (1 + least))
            fail_msg("seed %u: %g, where %g is possible", seed, value, least);
        assert_true(found.is_proven);
        assert_true(fabs(found.value - value) <= 1e-9 * (1 + value));
        assert_true(found.bound <= value * (1 + 1e-9) + 1e-9);
        assert_true(found.bound >= value - 1e-6 * (1 + value));
        ++*feasible;
        *limited += !isinf(goal.limits[1]) || !isinf(goal.limits[2]);
    }
    tare__program_release(&p);
}

static void no_assignment_is_cheaper(void **state) {
    (void)state;
    size_t feasible = 0, limited = 0;
    for (uint32_t seed = 1; seed <= PROGRAMS; seed++) check_program(seed, &feasible, &limited);
    assert_true(feasible > PROGRAMS / 3);
    assert_true(limited > PROGRAMS / 6);
}

// A chain of layers as of a real network, in which time is short; more than can be enumerated.
static void make_chain(choice_program *p, size_t layers, uint32_t *state, double *most) {
    size_t before = PROGRAM_FLOATS, item = 0;
    CHECK_OK(tare__program_begin(p, NULL));
    for (size_t i = 0; i < layers; i++) {
        const double ns = 1000 + (double)(next_random(state) % 100000);
        const double error = exp((double)(next_random(state) % 1000) * 0.01);
        const program_costs integers = {{error, ns, ns}}, floats = {{0, 2.2 * ns, 4 * ns}};
        const program_costs boundary = {{0, 3000, 0}};
        *most += ns;
        CHECK_OK(tare__program_add_item(p, &item, NULL));
        tare__program_add_choice(p, item, false, &integers);
        tare__program_add_choice(p, item, true, &floats);
        CHECK_OK(tare__program_add_edge(p, before, item, &boundary, NULL));
        CHECK_OK(tare__program_add_edge(p, item, before, &boundary, NULL));
        before = item;
    }
}

static void long_chains_are_solved_within_the_limit_of_work(void **state) {
    (void)state;
    enum { LAYERS = 120 };
    for (uint32_t seed = 1; seed <= 4; seed++) {
        choice_program p = {0};
        uint8_t choices[2][LAYERS + 1];
        bool is_float[2][LAYERS + 1];
        double most = 0;
        uint32_t random = seed;
        make_chain(&p, LAYERS, &random, &most);
        const program_goal goal = {.weights = {1, 0, 0},
                                   .limits = {INFINITY, 1.15 * most, 2 * most},
                                   .gap = 1e-3,
                                   .work_limit = 5e7};
        program_solution found[2];
        for (int i = 0; i < 2; i++) {
            found[i] = (program_solution){.choices = choices[i], .is_float = is_float[i]};
            CHECK_OK(tare__program_solve(&p, &goal, &found[i], NULL));
        }
        assert_true(found[0].is_feasible);
        assert_true(found[0].sums.of[1] <= 1.15 * most * (1 + 1e-9));
        assert_true(found[0].value <= 1.02 * found[0].bound);
        assert_memory_equal(choices[0], choices[1], sizeof choices[0]);
        tare__program_release(&p);
    }
}

static void a_limit_that_nothing_meets_has_no_solution(void **state) {
    (void)state;
    choice_program p = {0};
    uint8_t choices[3];
    bool is_float[3];
    double most = 0;
    uint32_t random = 5;
    make_chain(&p, 2, &random, &most);
    const program_goal goal = {.weights = {1, 0, 0}, .limits = {INFINITY, 0.9 * most, INFINITY}};
    program_solution found = {.choices = choices, .is_float = is_float};
    CHECK_OK(tare__program_solve(&p, &goal, &found, NULL));
    assert_false(found.is_feasible);
    tare__program_release(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_assignment_is_cheaper),
        cmocka_unit_test(long_chains_are_solved_within_the_limit_of_work),
        cmocka_unit_test(a_limit_that_nothing_meets_has_no_solution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
