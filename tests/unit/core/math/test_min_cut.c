// SPDX-License-Identifier: Apache-2.0
// Cuts against every possible one of small random graphs.
#include "support/test.h"

#include "core/math/min_cut.h"

enum { MOST_VERTICES = 9, GRAPHS = 400 };

typedef struct plain_edge {
    size_t from, to;
    int64_t capacity;
} plain_edge;

static uint32_t next_random(uint32_t *state) {
    return *state = *state * 1664525u + 1013904223u;
}

static int64_t cost_of(const plain_edge *edges, size_t count, const bool *is_source) {
    int64_t cost = 0;
    for (size_t i = 0; i < count; i++)
        if (is_source[edges[i].from] && !is_source[edges[i].to]) cost += edges[i].capacity;
    return cost;
}

// Vertex 0 is the source, 1 the sink.
static int64_t least_cost(const plain_edge *edges, size_t count, size_t vertices) {
    int64_t least = INT64_MAX;
    for (size_t chosen = 0; chosen < (size_t)1 << (vertices - 2); chosen++) {
        bool is_source[MOST_VERTICES] = {true, false};
        for (size_t v = 2; v < vertices; v++) is_source[v] = (chosen >> (v - 2) & 1) != 0;
        const int64_t cost = cost_of(edges, count, is_source);
        if (cost < least) least = cost;
    }
    return least;
}

static void check_graph(uint32_t seed) {
    cut_graph g = {0};
    plain_edge edges[40];
    bool is_source[MOST_VERTICES];
    size_t unused;
    uint32_t state = seed;
    const size_t vertices = 2 + next_random(&state) % (MOST_VERTICES - 1);
    const size_t count = (next_random(&state) >> 8) % 41;
    for (size_t v = 0; v < vertices; v++) CHECK_OK(tare__cut_add_vertex(&g, &unused, NULL));
    for (size_t i = 0; i < count; i++) {
        edges[i] = (plain_edge){(next_random(&state) >> 8) % vertices,
                                (next_random(&state) >> 8) % vertices,
                                (int64_t)((next_random(&state) >> 8) % 20)};
        CHECK_OK(tare__cut_add_edge(&g, edges[i].from, edges[i].to, edges[i].capacity, NULL));
    }
    CHECK_OK(tare__cut_solve(&g, 0, 1, is_source, NULL));
    assert_true(is_source[0]);
    assert_false(is_source[1]);
    const int64_t found = cost_of(edges, count, is_source);
    const int64_t least = least_cost(edges, count, vertices);
    if (found != least)
        fail_msg("seed %u: a cut of %lld, where %lld is possible", seed, (long long)found,
                 (long long)least);
    tare__cut_release(&g);
}

static void no_cut_is_cheaper(void **state) {
    (void)state;
    for (uint32_t seed = 1; seed <= GRAPHS; seed++) check_graph(seed);
}

static void what_must_not_be_cut_is_not(void **state) {
    (void)state;
    cut_graph g = {0};
    bool is_source[4];
    size_t v;
    for (int i = 0; i < 4; i++) CHECK_OK(tare__cut_add_vertex(&g, &v, NULL));
    CHECK_OK(tare__cut_add_edge(&g, 0, 2, 5, NULL));
    CHECK_OK(tare__cut_add_edge(&g, 2, 3, CUT_NEVER, NULL));
    CHECK_OK(tare__cut_add_edge(&g, 3, 1, 7, NULL));
    CHECK_OK(tare__cut_solve(&g, 0, 1, is_source, NULL));
    assert_false(is_source[2]);
    assert_false(is_source[3]);
    tare__cut_release(&g);
}

static tare_status make_and_solve(void) {
    cut_graph g = {0};
    bool is_source[2];
    size_t v;
    tare_status status = tare__cut_add_vertex(&g, &v, NULL);
    if (status == TARE_OK) status = tare__cut_add_vertex(&g, &v, NULL);
    if (status == TARE_OK) status = tare__cut_add_edge(&g, 0, 1, 3, NULL);
    if (status == TARE_OK) status = tare__cut_solve(&g, 0, 1, is_source, NULL);
    tare__cut_release(&g);
    return status;
}

static void memory_may_be_short(void **state) {
    (void)state;
    tare_status status;
    EVERY_ALLOCATION_FAILS(status, status = make_and_solve(), (void)0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_cut_is_cheaper),
        cmocka_unit_test(what_must_not_be_cut_is_not),
        cmocka_unit_test(memory_may_be_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
