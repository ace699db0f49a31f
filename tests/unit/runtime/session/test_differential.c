// SPDX-License-Identifier: Apache-2.0
// Graphs made of bytes, of a fixed number of seeds, give the same bits everywhere; and which
// operators they are made of. tests/fuzz/fuzz_differential.c goes on where this ends.
// TARE_DIFFERENTIAL_SEEDS=FIRST-LAST in the environment asks for others, and tells what was
// compared.
#include "support/test.h"

#include "support/differential/differential.h"

enum {
    SEED_BYTES = 320,
    COMPARED_SEEDS = 180,
    COUNTED_SEEDS = 500,
    TRIES = 400,
    LEAST_PACKED = 6, // rows of packed weights
};

// --- the same bits ---

typedef struct seed_range {
    unsigned long long first, last;
} seed_range;

static seed_range choose_seeds(bool *is_asked) {
    seed_range seeds = {1, COMPARED_SEEDS};
    const char *asked = getenv("TARE_DIFFERENTIAL_SEEDS");
    *is_asked = asked != NULL;
    if (asked != NULL && sscanf(asked, "%llu-%llu", &seeds.first, &seeds.last) != 2)
        fail_msg("TARE_DIFFERENTIAL_SEEDS: expected FIRST-LAST, found '%s'", asked);
    return seeds;
}

static void check_seed(uint64_t seed, differential_coverage *coverage) {
    uint8_t bytes[SEED_BYTES];
    text finding = {0};
    choices_of_seed(seed, bytes, sizeof bytes);
    if (!differential_check(bytes, sizeof bytes, coverage, &finding)) {
        (void)fputs(tare__text_chars(&finding), stderr); // longer than messages of tests may be
        fail_msg("seed %llu", (unsigned long long)seed);
    }
    tare__text_release(&finding);
}

static void tell_forms(const differential_coverage *c) {
    print_message("%zu graphs, %zu models, %zu runs\n", c->graphs, c->models, c->runs);
    for (size_t i = 0; i < c->forms.count; i++)
        print_message("%7zu %s\n", (size_t)c->forms.entries[i].value, c->forms.entries[i].key);
}

static void graphs_give_the_same_bits_everywhere(void **state) {
    (void)state;
    differential_coverage coverage = {0};
    bool is_asked;
    const seed_range seeds = choose_seeds(&is_asked);
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++) check_seed(seed, &coverage);
    assert_true(coverage.models > coverage.graphs); // flows take most of them
    if (is_asked) tell_forms(&coverage);
    differential_coverage_release(&coverage);
}

// --- coverage ---

// Rows that no graph of bytes has, and why. Of some rows a few graphs have calls.
#define FEW "in few graphs, "
static const struct {
    const char *start, *why;
} left_out[] = {
    {"higher_order.", "graphs within graphs: unit.flow.export.branches"},
    {"view_back", "has no name: the interpreter calls it where a view is written"},
    {"grouped_mm", "no input has the ends of groups: unit.ops.families.core_aten"},
    {"fused_moving_avg", "observes, as modules do: golden.prepared_files"},
    {"sym_m", "takes two numbers, no tensor: unit.ops.families.core_aten"},
    {"sym_ite", "takes numbers, no tensor: unit.ops.families.core_aten"},
    {"addr", "no input has fitting vectors: unit.ops.families.aten.matrix"},
    {"bilinear", "no input has the weight's sizes: unit.ops.families.aten.matrix"},
    {"tril_indices", "takes numbers, no tensor: unit.ops.families.aten.matrix"},
    {"triu_indices", "takes numbers, no tensor: unit.ops.families.aten.matrix"},
    {"quantile", "no input has ranks: unit.ops.families.aten.rank"},
    {"take_along_dim", "no input has as many indices: unit.ops.families.aten.picks"},
    {"index_fill", "no input has a line of places: unit.ops.families.aten.picks"},
    {"repeat_elements", "no input has repetitions: unit.ops.families.aten.picks"},
    {"max_unpool", "no input has places of a plane: unit.ops.families.aten.spatial"},
    {"affine_grid", "no input has the sizes of a map: unit.ops.families.aten.spatial"},
    {"bincount", "no input has bins: unit.ops.families.aten.counts"},
    {"unique", "how long it is depends on the data: unit.ops.families.aten.counts"},
    {"gcd", "no input has integers: unit.ops.families.aten.formulas"},
    {"lcm", "no input has integers: unit.ops.families.aten.formulas"},
    {"einsum_sums", FEW "only einsum calls it: unit.ops.families.index"},
    {"torchao.", "no input has the parameters of blocks: unit.ops.quantized.affine"},
    {"out_dtype", FEW "only flows write it: unit.flow.export.reference"},
    {"integer_linear", "has no name: out_dtype calls it"},
    {"integer_convolution", "has no name: out_dtype calls it"},
};

static const char *why_left_out(const char *id) {
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        if (strncmp(id, left_out[i].start, strlen(left_out[i].start)) == 0) return left_out[i].why;
    return NULL;
}

static bool is_in_few(const char *why) {
    return why != NULL && strncmp(why, FEW, strlen(FEW)) == 0;
}

static void count_seeds(differential_coverage *coverage) {
    uint8_t bytes[SEED_BYTES];
    for (uint64_t seed = 1; seed <= COUNTED_SEEDS; seed++) {
        choices_of_seed(seed, bytes, sizeof bytes);
        assert_true(differential_check(bytes, sizeof bytes, coverage, NULL));
    }
}

// By a module, which is the only way to some rows.
static bool draw_module(random_graph *g, const op_info *row) {
    static const class_table *const tables[] = {&tare__weighted_classes, &tare__plain_classes};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (size_t i = 0; i < tables[t]->count; i++) {
            const module_class *class = &tables[t]->rows[i];
            if (class->op != NULL && tare__op_by_id(class->op, class->dims) == row &&
                random_graph_call_module(g, class))
                return true;
        }
    return false;
}

// Some graph has a call of the row, if it is tried long enough.
static bool can_be_drawn(const op_info *row) {
    uint8_t bytes[SEED_BYTES];
    bool drawn = false;
    for (uint64_t seed = 1; seed <= TRIES && !drawn; seed++) {
        random_graph g;
        choices_of_seed(seed, bytes, sizeof bytes);
        choices c = {.bytes = bytes, .count = sizeof bytes};
        if (random_graph_begin(&g, &c))
            for (int i = 0; i < 8 && !drawn; i++)
                drawn = random_graph_call(&g, row) || draw_module(&g, row);
        random_graph_release(&g);
    }
    return drawn;
}

// Only flows make the weights that such a row takes.
static bool takes_packed_weights(const op_info *row) {
    return strstr(row->params, "packed_weight") != NULL || strstr(row->params, "W_prepack") != NULL;
}

// A new row is drawn by the names of its parameters. One that is not asks for a name in
// random_arguments.c, or for a reason above.
static void every_operator_is_drawn_or_says_why_not(void **state) {
    (void)state;
    differential_coverage coverage = {0};
    const op_info *row;
    size_t missing = 0, packed = 0;
    count_seeds(&coverage);
    for (size_t i = 0; (row = tare__op_at(i)) != NULL; i++) {
        assert_true(i < MOST_ROWS);
        const char *why = why_left_out(row->id);
        const bool drawn = coverage.rows[i] > 0;
        if (takes_packed_weights(row)) packed += drawn;
        if (takes_packed_weights(row) || is_in_few(why) ||
            (drawn || can_be_drawn(row)) == (why == NULL))
            continue;
        print_error("%s: %s\n", row->id, why != NULL ? "drawn all the same" : "never drawn");
        missing++;
    }
    differential_coverage_release(&coverage);
    assert_int_equal(missing, 0);
    assert_true(packed >= LEAST_PACKED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_give_the_same_bits_everywhere),
        cmocka_unit_test(every_operator_is_drawn_or_says_why_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
