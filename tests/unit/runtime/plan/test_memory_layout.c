// SPDX-License-Identifier: Apache-2.0
// Pieces that live at the same time never overlap, and the block stays close to the least there
// could be: for addends of all kinds, and for those of networks with branches.
#include "support/test.h"

#include "runtime/plan/memory_layout.h"

enum { MOST = 400 };

typedef struct random_state {
    uint64_t state;
} random_state;

static size_t below(random_state *r, size_t bound) { // a linear congruential generator, upper bits
    r->state = r->state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(r->state >> 33) % bound;
}

static bool live_together(const memory_buffer *a, const memory_buffer *b) {
    return a->first <= b->last && b->first <= a->last;
}

static size_t live_at(const memory_buffer *addends, size_t count, size_t step) {
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        if (addends[i].first <= step && step <= addends[i].last) bytes += addends[i].bytes;
    return bytes;
}

// Returns the block as a multiple of the least one.
static double check(memory_buffer *addends, size_t count) {
    size_t block = 1, least = 1, most = 0, end = 0;
    CHECK_OK(tare__memory_lay_out(addends, count, &block, &least, NULL));
    for (size_t i = 0; i < count; i++) {
        const size_t live = live_at(addends, count, addends[i].first);
        if (live > most) most = live;
        if (addends[i].offset + addends[i].bytes > end) end = addends[i].offset + addends[i].bytes;
        for (size_t k = 0; k < i; k++)
            assert_true(!live_together(&addends[i], &addends[k]) ||
                        addends[i].offset + addends[i].bytes <= addends[k].offset ||
                        addends[k].offset + addends[k].bytes <= addends[i].offset);
    }
    assert_int_equal(block, end);
    assert_int_equal(least, most);
    return most > 0 ? (double)block / (double)most : 1;
}

static void test_any_pieces(void **state) {
    (void)state;
    memory_buffer addends[MOST];
    random_state r = {1};
    for (int round = 0; round < 200; round++) {
        const size_t count = below(&r, 60), steps = 1 + below(&r, 40);
        for (size_t i = 0; i < count; i++) {
            const size_t first = below(&r, steps);
            addends[i] = (memory_buffer){.bytes = below(&r, 1000) * 64 * below(&r, 2),
                                         .first = first,
                                         .last = first + below(&r, steps - first)};
        }
        assert_true(check(addends, count) <= 2);
    }
}

// A network's results in order: each is read by the next step, some by a later one too, as in
// residual blocks and dense ones; some steps work in memory of their own.
static size_t make_network(random_state *r, memory_buffer *addends, size_t steps) {
    size_t count = 0, size = 1 + below(r, 4096);
    const size_t reach = 2 + below(r, 8), share = 2 + below(r, 4);
    for (size_t s = 0; s + 1 < steps; s++) {
        if (below(r, 6) == 0) size = 1 + below(r, 4096);
        size_t last = s + 1;
        if (below(r, share) == 0) last += below(r, reach);
        if (last >= steps) last = steps - 1;
        const size_t factor = below(r, 4) == 0 ? 4 : 1;
        addends[count++] = (memory_buffer){size * factor * 64, s, last, 0};
        if (below(r, 2) == 0) addends[count++] = (memory_buffer){(1 + below(r, 256)) * 64, s, s, 0};
    }
    return count;
}

static void test_networks(void **state) {
    (void)state;
    memory_buffer addends[MOST];
    random_state r = {2};
    double worst = 1, sum = 0;
    enum { NETWORKS = 60 };
    for (int i = 0; i < NETWORKS; i++) {
        const size_t count = make_network(&r, addends, 10 + below(&r, 150));
        const double ratio = check(addends, count);
        sum += ratio;
        if (ratio > worst) worst = ratio;
    }
    if (worst > 1.1 || sum / NETWORKS > 1.01)
        fail_msg("blocks are %.3f of the least at worst, %.4f on average", worst, sum / NETWORKS);
}

// The same pattern many times: mending one place alone makes the block no smaller.
static void test_repeated_blocks(void **state) {
    (void)state;
    memory_buffer addends[MOST];
    size_t count = 0;
    for (size_t s = 0; s < 24 * 15; s += 15) {
        addends[count++] = (memory_buffer){602112, s, s + 15, 0};
        addends[count++] = (memory_buffer){2408448, s + 2, s + 3, 0};
        addends[count++] = (memory_buffer){2408448, s + 3, s + 4, 0};
        addends[count++] = (memory_buffer){2408448, s + 4, s + 6, 0};
        addends[count++] = (memory_buffer){602112, s + 6, s + 7, 0};
    }
    assert_true(check(addends, count) <= 1.02);
}

static void test_none(void **state) {
    (void)state;
    memory_buffer empty = {0};
    assert_true(check(&empty, 0) == 1);
    assert_true(check(&empty, 1) == 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_pieces),
        cmocka_unit_test(test_networks),
        cmocka_unit_test(test_repeated_blocks),
        cmocka_unit_test(test_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
