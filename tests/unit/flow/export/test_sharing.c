// SPDX-License-Identifier: Apache-2.0
// Groups of edges that share an observer: single rules, and random specs against brute force.
#include "flow/export/sharing.h"
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
                  "none gives the parameters: ('x', 'n0') -> 'n1' -> ('x', 'n0')");
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

// Up to 12 edges and outputs of a chain: (n, n+1), (y, n) and n itself, with random specs.
enum { KEYS = 12, SOURCES = 2 };
typedef struct trial {
    tare_model *model;
    node *from[KEYS], *node[KEYS];
    size_t count;
    int kind[KEYS];             // of a spec of its own: what it is; 0: shared
    int needs[KEYS][SOURCES];   // what it is shared with or derived from; -1: nothing
    bool refuses_sharing[MOST]; // by node
} trial;

static void add_key(trial *t, node *from, node *n) {
    if (t->count == KEYS) return;
    t->from[t->count] = from;
    t->node[t->count++] = n;
}

static int node_index(const node *n) {
    return n->name[1] - '0';
}

static tare_qspec *derived(const trial *t, const int *sources, int64_t quant_min) {
    const tare_qspec_fields f = {.struct_size = sizeof f,
                                 .dtype = TARE_INT8,
                                 .has_quant_min = true,
                                 .quant_min = quant_min,
                                 .qscheme = TARE_PER_TENSOR_AFFINE};
    tare_edge from[SOURCES];
    size_t count = 0;
    for (; count < SOURCES && sources[count] >= 0; count++)
        from[count] = (tare_edge){(const tare_node *)t->from[sources[count]],
                                  (const tare_node *)t->node[sources[count]]};
    tare_qspec *spec = NULL;
    CHECK_DONE(
        tare_qspec_create_derived(&f, from, count, tare_derive_bias_rule(), &spec, job_error()));
    return spec;
}

static void choose_spec(trial *t, size_t i, unsigned *seed) {
    const unsigned what = next_random(seed) % 6;
    t->needs[i][0] = t->needs[i][1] = -1;
    t->kind[i] = what < 3 ? 0 : -(int)(next_random(seed) % 2) - 1;
    if (what <= 3) t->needs[i][0] = (int)(next_random(seed) % t->count);
    if (what == 3) t->needs[i][1] = (int)(next_random(seed) % t->count);
}

static void annotate_key(const trial *t, size_t i) {
    tare_qspec *spec = t->kind[i] == 0 ? shared(t->from[t->needs[i][0]], t->node[t->needs[i][0]])
                       : t->needs[i][0] >= 0 ? derived(t, t->needs[i], t->kind[i])
                                             : plain(t->kind[i]);
    annotate(t->model, t->from[i], t->node[i], spec);
}

// The annotations come in the order of the graph, or against it.
static void make_trial(trial *t, unsigned *seed, bool is_reversed) {
    const int nodes = 1 + (int)(next_random(seed) % MOST);
    *t = (trial){.model = chain_model(nodes)};
    for (int i = 0; i < nodes; i++) {
        char name[16], previous[16];
        (void)snprintf(name, sizeof name, "n%d", i);
        (void)snprintf(previous, sizeof previous, i == 0 ? "x" : "n%d", i - 1);
        add_key(t, node_of(t->model, previous), node_of(t->model, name));
        add_key(t, node_of(t->model, "y"), node_of(t->model, name));
        if (next_random(seed) % 2 == 0) add_key(t, NULL, node_of(t->model, name));
        t->refuses_sharing[i] = next_random(seed) % 4 == 0;
    }
    for (size_t i = 0; i < t->count; i++) choose_spec(t, i, seed);
    for (size_t i = 0; i < t->count; i++) annotate_key(t, is_reversed ? t->count - 1 - i : i);
    for (size_t i = 0; i < t->count; i++)
        CHECK_DONE(tare_model_annotate_sharing(t->model, (tare_node *)t->node[i],
                                               !t->refuses_sharing[node_index(t->node[i])],
                                               job_error()));
}

typedef struct relation {
    bool has[KEYS][KEYS];
} relation;

// The size of the smallest set of keys in which every key waits for one of the set; 0: none. No set
// without that is a conflict: one of its keys could be decided first.
static size_t smallest_conflict(const trial *t, const relation *waits) {
    size_t least = 0;
    for (unsigned set = 1; set < 1u << t->count; set++) {
        size_t size = 0;
        bool is_stuck = true;
        for (size_t i = 0; i < t->count; i++) {
            if (!(set >> i & 1)) continue;
            bool waits_within = false;
            size++;
            for (size_t k = 0; k < t->count; k++)
                if ((set >> k & 1) && waits->has[i][k]) waits_within = true;
            is_stuck = is_stuck && waits_within;
        }
        if (is_stuck && (least == 0 || size < least)) least = size;
    }
    return least;
}

static relation explicit_needs(const trial *t) {
    relation r = {0};
    for (size_t i = 0; i < t->count; i++)
        for (size_t s = 0; s < SOURCES; s++)
            if (t->needs[i][s] >= 0) r.has[i][t->needs[i][s]] = true;
    return r;
}

static int resolved_kind(const trial *t, size_t i) {
    while (t->kind[i] == 0) i = (size_t)t->needs[i][0];
    return t->kind[i];
}

// Does edge i share with k because both watch one tensor?
static bool shares_implicitly(const trial *t, size_t i, size_t k) {
    if (t->from[i] == NULL || t->refuses_sharing[node_index(t->node[i])]) return false;
    const node *watched = t->from[k] != NULL ? t->from[k] : t->node[k];
    return t->from[i] == watched && resolved_kind(t, i) == resolved_kind(t, k);
}

// Reachability over every equality.
static relation closure(const trial *t) {
    relation r = {0};
    for (size_t i = 0; i < t->count; i++)
        for (size_t k = 0; k < t->count; k++)
            r.has[i][k] = i == k || (t->kind[i] == 0 && t->needs[i][0] == (int)k) ||
                          (t->kind[k] == 0 && t->needs[k][0] == (int)i) ||
                          shares_implicitly(t, i, k) || shares_implicitly(t, k, i);
    for (size_t via = 0; via < t->count; via++)
        for (size_t i = 0; i < t->count; i++)
            for (size_t k = 0; k < t->count; k++)
                r.has[i][k] = r.has[i][k] || (r.has[i][via] && r.has[via][k]);
    return r;
}

static size_t place_of(const qspec_keys *keys, const trial *t, size_t i) {
    return tare__qspec_keys_find(keys, t->from[i] != NULL ? t->from[i]->name : NULL,
                                 t->node[i]->name);
}

// A group goes by the first spec of its own; who joined a derived one waits for it.
static relation needs_of_groups(const trial *t, const qspec_keys *keys, const relation *same) {
    relation r = explicit_needs(t);
    for (size_t i = 0; i < t->count; i++) {
        size_t speaker = t->count;
        for (size_t k = 0; k < t->count; k++)
            if (same->has[i][k] && t->kind[k] != 0 &&
                (speaker == t->count || place_of(keys, t, k) < place_of(keys, t, speaker)))
                speaker = k;
        if (speaker < t->count && speaker != i && t->needs[speaker][0] >= 0)
            r.has[i][speaker] = true;
    }
    return r;
}

static size_t count_text(const char *whole, const char *words) {
    size_t count = 0;
    for (const char *at = whole; (at = strstr(at, words)) != NULL; at++) count++;
    return count;
}

static void check_groups(const trial *t, const qspec_keys *keys, const relation *same) {
    for (size_t i = 0; i < t->count; i++)
        for (size_t k = 0; k < t->count; k++)
            assert_int_equal(keys->items[place_of(keys, t, i)].group ==
                                 keys->items[place_of(keys, t, k)].group,
                             same->has[i][k]);
}

typedef struct tally {
    size_t fine, rings, group_rings;
} tally;

static void check_trial(const trial *t, tally *seen) {
    arena memory = {0};
    qspec_keys keys;
    relation waits = explicit_needs(t), same = {0};
    const tare_status status = share(t->model, &memory, &keys);
    size_t conflict = smallest_conflict(t, &waits);
    if (conflict > 0) {
        seen->rings++;
    } else {
        same = closure(t);
        check_groups(t, &keys, &same);
        waits = needs_of_groups(t, &keys, &same);
        conflict = smallest_conflict(t, &waits);
        *(conflict > 0 ? &seen->group_rings : &seen->fine) += 1;
    }
    assert_int_equal(status, conflict > 0 ? TARE_INVALID_ARGUMENT : TARE_OK);
    if (conflict > 0) assert_int_equal(count_text(tare_error_message(job_error()), "->"), conflict);
    tare__qspec_keys_release(&keys);
    tare__arena_release(&memory);
}

static void groups_and_conflicts_equal_brute_force(void **state) {
    (void)state;
    unsigned seed = 20250;
    tally seen = {0};
    print_message("seed %u\n", seed);
    for (int i = 0; i < 1000; i++) {
        trial t;
        make_trial(&t, &seed, i % 2 == 1);
        check_trial(&t, &seen);
        tare_model_destroy(t.model);
    }
    assert_true(seen.fine > 100 && seen.rings > 100 && seen.group_rings > 10);
}

static void a_derived_spec_cannot_be_its_own_source(void **state) {
    (void)state;
    tare_model *m = chain_model(2);
    node *n0 = node_of(m, "n0"), *n1 = node_of(m, "n1"), *x = node_of(m, "x");
    trial t = {.model = m, .from = {n0}, .node = {n1}};
    const int sources[SOURCES] = {0, -1};
    arena memory = {0};
    qspec_keys keys;
    annotate(m, x, n0, derived(&t, sources, -128));
    annotate(m, n0, n1, shared(x, n0));
    CHECK_REFUSED(share(m, &memory, &keys), TARE_INVALID_ARGUMENT,
                  "none gives the parameters: ('x', 'n0') -> ('n0', 'n1') -> ('x', 'n0')");
    tare__qspec_keys_release(&keys);
    tare__arena_release(&memory);
    tare_model_destroy(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges_of_one_producer_share_when_their_specs_agree),
        cmocka_unit_test(an_input_may_share_with_what_comes_later),
        cmocka_unit_test(what_cannot_be_shared_is_named),
        cmocka_unit_test(an_edge_that_does_not_exist_is_refused),
        cmocka_unit_test(a_derived_spec_cannot_be_its_own_source),
        cmocka_unit_test(groups_and_conflicts_equal_brute_force),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
