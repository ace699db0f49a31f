// SPDX-License-Identifier: Apache-2.0
#include "pt2e/sharing.h"
#include "support/models.h"
#include "support/test.h"

// A chain of additions: x -> n0 -> n1 -> .., each of which reads y too.
enum { MOST = 6 };

static tare_model *chain_model(int count) {
    text code = {0};
    tare__text_append(&code, "def forward(self, x, y):\n");
    for (int i = 0; i < count; i++) {
        if (i == 0)
            tare__text_append(&code, "    n0 = x + y\n");
        else
            tare__text_printf(&code, "    n%d = n%d + y\n", i, i - 1);
    }
    tare__text_printf(&code, "    return n%d\n", count - 1);
    tare_model *m = new_model(NULL, new_tree(), tare__text_chars(&code));
    tare__text_release(&code);
    return m;
}

static node *node_of(const tare_model *m, const char *name) {
    node *n = tare__graph_find(m->root->graph, name);
    assert_non_null(n);
    return n;
}

static tare_qspec *plain(int64_t quant_min) {
    tare_observer_spec *observer = tare_observer_spec_create("MinMaxObserver");
    const tare_qspec_fields f = {.struct_size = sizeof f,
                                 .dtype = TARE_INT8,
                                 .observer = observer,
                                 .has_quant_min = true,
                                 .quant_min = quant_min,
                                 .qscheme = TARE_PER_TENSOR_AFFINE};
    tare_qspec *spec = NULL;
    CHECK_DONE(tare_qspec_create(&f, &spec, job_error()));
    tare_observer_spec_release(observer);
    return spec;
}

static tare_qspec *shared(const node *from, const node *n) {
    tare_qspec *spec = NULL;
    CHECK_DONE(tare_qspec_create_shared((tare_edge){(const tare_node *)from, (const tare_node *)n},
                                        &spec, job_error()));
    return spec;
}

static void annotate(tare_model *m, node *from, node *n, tare_qspec *spec) {
    if (from != NULL)
        CHECK_DONE(
            tare_model_annotate_input(m, (tare_node *)n, (tare_node *)from, spec, job_error()));
    else
        CHECK_DONE(tare_model_annotate_output(m, (tare_node *)n, spec, job_error()));
    tare_qspec_release(spec);
}

static tare_status share(const tare_model *m, arena *memory, qspec_keys *keys) {
    CHECK_DONE(tare__qspec_keys_collect(m, memory, keys, job_error()));
    return tare__qspec_keys_share(keys, m, job_error());
}

static size_t group_of(const qspec_keys *keys, const char *from, const char *name) {
    const size_t i = tare__qspec_keys_find(keys, from, name);
    assert_true(i < keys->count);
    return keys->items[i].group;
}

// --- single rules ---

static void edges_of_one_producer_share_when_their_specs_agree(void **state) {
    (void)state;
    tare_model *m = chain_model(3);
    node *y = node_of(m, "y");
    annotate(m, y, node_of(m, "n0"), plain(-128));
    annotate(m, y, node_of(m, "n1"), plain(-127));
    annotate(m, y, node_of(m, "n2"), plain(-128));
    arena memory = {0};
    qspec_keys keys;
    CHECK_DONE(share(m, &memory, &keys));
    assert_int_equal(keys.group_count, 2);
    assert_int_equal(group_of(&keys, "y", "n0"), group_of(&keys, "y", "n2"));
    assert_int_equal(group_of(&keys, "y", "n1"), 1);
    tare__qspec_keys_release(&keys);
    CHECK_DONE(tare_model_annotate_sharing(m, (tare_node *)node_of(m, "n0"), false, job_error()));
    CHECK_DONE(tare_model_annotate_sharing(m, (tare_node *)node_of(m, "n2"), false, job_error()));
    CHECK_DONE(share(m, &memory, &keys));
    assert_int_equal(keys.group_count, 3);
    tare__qspec_keys_release(&keys);
    tare__arena_release(&memory);
    tare_model_destroy(m);
}

static void an_input_may_share_with_what_comes_later(void **state) {
    (void)state;
    tare_model *m = chain_model(2);
    node *n0 = node_of(m, "n0"), *n1 = node_of(m, "n1"), *x = node_of(m, "x");
    annotate(m, x, n0, shared(n0, n1)); // torch refuses this for the order alone
    annotate(m, n0, n1, plain(-128));
    arena memory = {0};
    qspec_keys keys;
    CHECK_DONE(share(m, &memory, &keys));
    assert_int_equal(keys.group_count, 1);
    assert_int_equal(keys.items[0].root_spec->fields.quant_min, -128);
    tare__qspec_keys_release(&keys);
    tare__arena_release(&memory);
    tare_model_destroy(m);
}

static void what_cannot_be_shared_is_named(void **state) {
    (void)state;
    tare_model *m = chain_model(2);
    node *n0 = node_of(m, "n0"), *n1 = node_of(m, "n1"), *x = node_of(m, "x");
    arena memory = {0};
    qspec_keys keys;
    annotate(m, x, n0, shared(NULL, n1));
    CHECK_REFUSED(share(m, &memory, &keys), TARE_NOT_FOUND,
                  "('x', 'n0') is to share with 'n1', which is not annotated");
    tare__qspec_keys_release(&keys);
    annotate(m, NULL, n1, shared(x, n0));
    CHECK_REFUSED(share(m, &memory, &keys), TARE_INVALID_ARGUMENT,
                  "none says how: ('x', 'n0') -> 'n1' -> ('x', 'n0')");
    tare__qspec_keys_release(&keys);
    tare__arena_release(&memory);
    tare_model_destroy(m);
}

static void an_edge_that_does_not_exist_is_refused(void **state) {
    (void)state;
    static const char json[] = "{\"n1\": {\"input_qspec_map\": [[\"x\", null]]}}";
    tare_model *m = chain_model(2);
    CHECK_DONE(tare_model_annotations_from_json(m, json, strlen(json), NULL, 0, job_error()));
    arena memory = {0};
    qspec_keys keys;
    CHECK_REFUSED(tare__qspec_keys_collect(m, &memory, &keys, job_error()), TARE_NOT_FOUND,
                  "its input 'x', which it does not read");
    tare__arena_release(&memory);
    tare_model_destroy(m);
}

// --- against brute force ---

static unsigned next_random(unsigned *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 16;
}

// Up to 12 keys: the inputs (n, n+1) and (y, n) of a chain, with random specs.
typedef struct trial {
    tare_model *model;
    node *from[2 * MOST], *node[2 * MOST];
    size_t count;
    int target[2 * MOST]; // -1: a spec of its own
    int kind[2 * MOST];   // of those
} trial;

static void make_trial(trial *t, unsigned *seed) {
    const int nodes = 1 + (int)(next_random(seed) % MOST);
    *t = (trial){.model = chain_model(nodes)};
    for (int i = 0; i < nodes; i++) {
        char name[16], previous[16];
        (void)snprintf(name, sizeof name, "n%d", i);
        (void)snprintf(previous, sizeof previous, i == 0 ? "x" : "n%d", i - 1);
        const char *const froms[] = {previous, "y"};
        for (int k = 0; k < 2; k++) {
            t->from[t->count] = node_of(t->model, froms[k]);
            t->node[t->count++] = node_of(t->model, name);
        }
    }
    for (size_t i = 0; i < t->count; i++) {
        const bool points = next_random(seed) % 2 == 0;
        t->target[i] = points ? (int)(next_random(seed) % t->count) : -1;
        t->kind[i] = -(int)(next_random(seed) % 2) - 1;
        tare_qspec *spec =
            points ? shared(t->from[t->target[i]], t->node[t->target[i]]) : plain(t->kind[i]);
        annotate(t->model, t->from[i], t->node[i], spec);
    }
}

// The size of the smallest set of keys that all share within the set; 0: there is none.
static size_t smallest_conflict(const trial *t) {
    size_t least = 0;
    for (unsigned set = 1; set < 1u << t->count; set++) {
        size_t size = 0;
        bool is_closed = true;
        for (size_t i = 0; i < t->count; i++) {
            if (!(set >> i & 1)) continue;
            size++;
            if (t->target[i] < 0 || !(set >> t->target[i] & 1)) is_closed = false;
        }
        if (is_closed && (least == 0 || size < least)) least = size;
    }
    return least;
}

static int resolved_kind(const trial *t, size_t i) {
    while (t->target[i] >= 0) i = (size_t)t->target[i];
    return t->kind[i];
}

// Reachability over every equality, by repeated squaring of nothing: plain closure.
static void closure(const trial *t, bool same[2 * MOST][2 * MOST]) {
    for (size_t i = 0; i < t->count; i++)
        for (size_t k = 0; k < t->count; k++)
            same[i][k] = i == k || t->target[i] == (int)k || t->target[k] == (int)i ||
                         (t->from[i] == t->from[k] && resolved_kind(t, i) == resolved_kind(t, k));
    for (size_t via = 0; via < t->count; via++)
        for (size_t i = 0; i < t->count; i++)
            for (size_t k = 0; k < t->count; k++)
                same[i][k] = same[i][k] || (same[i][via] && same[via][k]);
}

static size_t count_text(const char *whole, const char *part) {
    size_t count = 0;
    for (const char *at = whole; (at = strstr(at, part)) != NULL; at++) count++;
    return count;
}

static void check_trial(const trial *t) {
    arena memory = {0};
    qspec_keys keys;
    const tare_status status = share(t->model, &memory, &keys);
    const size_t conflict = smallest_conflict(t);
    if (conflict > 0) {
        assert_int_equal(status, TARE_INVALID_ARGUMENT);
        assert_int_equal(count_text(tare_error_message(job_error()), "->"), conflict);
    } else {
        bool same[2 * MOST][2 * MOST];
        CHECK_DONE(status);
        closure(t, same);
        for (size_t i = 0; i < t->count; i++)
            for (size_t k = 0; k < t->count; k++)
                assert_int_equal(group_of(&keys, t->from[i]->name, t->node[i]->name) ==
                                     group_of(&keys, t->from[k]->name, t->node[k]->name),
                                 same[i][k]);
    }
    tare__qspec_keys_release(&keys);
    tare__arena_release(&memory);
}

static void groups_and_conflicts_equal_brute_force(void **state) {
    (void)state;
    unsigned seed = 20250;
    print_message("seed %u\n", seed);
    for (int i = 0; i < 300; i++) {
        trial t;
        make_trial(&t, &seed);
        check_trial(&t);
        tare_model_destroy(t.model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges_of_one_producer_share_when_their_specs_agree),
        cmocka_unit_test(an_input_may_share_with_what_comes_later),
        cmocka_unit_test(what_cannot_be_shared_is_named),
        cmocka_unit_test(an_edge_that_does_not_exist_is_refused),
        cmocka_unit_test(groups_and_conflicts_equal_brute_force),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
