// SPDX-License-Identifier: Apache-2.0
// What explain says of the recorded models: every node and edge once, and reasons that are true.
// When the change is made that a reason asks for, the verdict flips or another constraint is named.
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "config/backend_config.h"
#include "config/pattern_form.h"
#include "model/pass.h"
#include "replay/case.h"
#include "replay/pt2e.h"
#include "support/models.h"
#include "support/test.h"

enum { WANTED_SAMPLES = 200, CASE_STRIDE = 2 };

// What is prepared for what, besides the case's own settings: pairs that leave much in float.
static const struct {
    const char *backend, *mapping;
} settings[] = {
    {"x86", "x86"},        {"tensorrt", "x86"}, {"qnnpack", "fbgemm"},
    {"executorch", "x86"}, {NULL, "x86"}, // examples/my_backend.json
    {"x86", NULL},                        // examples/my_mapping.json
};

static bool is_observer(const tare_model *m, const node *n) {
    return tare__is_observer_node(m, n);
}

static const fact *find_fact(const tare_model *m, fact_kind kind, const char *name) {
    const fact_table *t = &m->facts.tables[kind];
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->rows[i].columns[0], name) == 0) return &t->rows[i];
    return NULL;
}

static size_t count_edges(const tare_model *m, const char *from, const char *to) {
    const fact_table *t = &m->facts.tables[FACT_EDGE];
    size_t count = 0;
    for (size_t i = 0; i < t->count; i++)
        count += strcmp(t->rows[i].columns[EDGE_FROM], from) == 0 &&
                 strcmp(t->rows[i].columns[EDGE_TO], to) == 0;
    return count;
}

static size_t mentions(const tare_model *m, const value *v, const node *from) {
    if (v->kind == VALUE_NODE) {
        const node *n = v->as.node;
        while (n != NULL && is_observer(m, n)) n = tare__node_arg(n, 0);
        return n == from;
    }
    size_t count = 0;
    for (uint32_t i = 0; tare__value_has_items(v) && i < v->count; i++)
        count += mentions(m, &v->as.items[i], from);
    return count;
}

static size_t count_mentions(const tare_model *m, const node *n, const node *from) {
    size_t count = 0;
    for (size_t i = 0; i < n->arg_count; i++) count += mentions(m, &n->args[i], from);
    for (size_t i = 0; i < n->kwarg_count; i++) count += mentions(m, &n->kwargs[i].value, from);
    return count;
}

// Every call and every edge of a prepared model, once each.
static void check_complete(const tare_model *m) {
    size_t calls = 0, edges = 0;
    for (const node *n = m->root->graph->first; n != NULL; n = n->next) {
        if (is_observer(m, n)) continue;
        if (tare__node_is_call(n)) {
            calls++;
            assert_non_null(find_fact(m, FACT_NODE, n->name));
        }
        for (const node *from = m->root->graph->first; from != n; from = from->next) {
            if (is_observer(m, from)) continue;
            const size_t count = count_mentions(m, n, from);
            assert_int_equal(count_edges(m, from->name, n->name), count);
            edges += count;
        }
    }
    // Modules that were prepared by themselves have theirs under their path.
    size_t outer_nodes = 0, outer_edges = 0;
    const fact_table *t = m->facts.tables;
    for (size_t i = 0; i < t[FACT_NODE].count; i++)
        outer_nodes += strchr(t[FACT_NODE].rows[i].columns[NODE_NAME], '.') == NULL;
    for (size_t i = 0; i < t[FACT_EDGE].count; i++)
        outer_edges += strchr(t[FACT_EDGE].rows[i].columns[EDGE_TO], '.') == NULL;
    assert_int_equal(outer_nodes, calls);
    assert_int_equal(outer_edges, edges);
}

// --- reasons ---

typedef struct trial {
    const tare_model *model; // float
    tare_backend_config *backend;
    tare_qconfig_mapping *mapping;
    const tare_model *prepared;
} trial;

static tare_model *prepare_again(const trial *t, const tare_backend_config *backend,
                                 const tare_qconfig_mapping *mapping) {
    tare_model *made = NULL;
    const tare_prepare_options options = {
        .backend = backend, .qconfig_mapping = mapping, .is_lenient = true};
    if (tare_prepare_fx(t->model, &options, &made, job_error()) != TARE_OK) return NULL;
    return made;
}

static bool is_observed(const tare_model *m, const char *name) {
    const prepared_node *known = tare__prepared_node(m->prepared, name);
    return known != NULL && known->is_observed;
}

// The first refusal that a node's facts name; "" if there is none.
static const char *refusal(const tare_model *m, const char *name, const char *index) {
    const fact_table *t = &m->facts.tables[FACT_DTYPES];
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->rows[i].columns[DTYPES_OF], name) == 0 &&
            (index == NULL || strcmp(t->rows[i].columns[DTYPES_INDEX], index) == 0))
            return t->rows[i].columns[DTYPES_CONSTRAINT];
    return "";
}

static tare_pattern_config *find_config(tare_backend_config *b, const char *name) {
    for (size_t i = 0; i < b->count; i++) {
        text given = {0};
        tare__pattern_to_text(tare__pattern_config_given(b->configs[i]), &given);
        const bool is_it = strcmp(tare__text_chars(&given), name) == 0;
        tare__text_release(&given);
        if (is_it) return b->configs[i];
    }
    return NULL;
}

static tare_dtype dtype_named(const char *name) {
    return tare_dtype_from_name(name); // "no dtype" is UNSET: no constraint
}

// Makes a dtype config ask for what was found.
static void relax(tare_dtype_config *d, const fact *row) {
    const char *constraint = row->columns[DTYPES_CONSTRAINT], *found = row->columns[DTYPES_FOUND];
    if (strcmp(constraint, "is_dynamic") == 0) d->is_dynamic = strcmp(found, "true") == 0;
    if (strcmp(constraint, "bias_dtype") == 0) d->bias = dtype_named(found);
    tare_dtype_constraints *of = strncmp(constraint, "input_dtype.", 12) == 0    ? &d->input
                                 : strncmp(constraint, "output_dtype.", 13) == 0 ? &d->output
                                 : strncmp(constraint, "weight_dtype.", 13) == 0 ? &d->weight
                                                                                 : NULL;
    if (of == NULL) return;
    if (strcmp(strchr(constraint, '.'), ".dtype") == 0)
        of->dtype = dtype_named(found);
    else
        of->set = 0;
}

// A refused dtype config: relaxed, it accepts, or names something else.
static void check_dtypes(const trial *t, const fact *about, const fact *row) {
    const char *name = row->columns[DTYPES_OF], *index = row->columns[DTYPES_INDEX];
    tare_backend_config *changed = NULL;
    CHECK_DONE(tare_backend_config_clone(t->backend, &changed, job_error()));
    tare_pattern_config *p = find_config(changed, about->columns[NODE_PATTERN]);
    assert_non_null(p);
    relax(&p->dtype_configs.items[strtoul(index, NULL, 10)], row);
    tare_model *again = prepare_again(t, changed, t->mapping);
    assert_non_null(again);
    if (!is_observed(again, name) &&
        strcmp(refusal(again, name, index), row->columns[DTYPES_CONSTRAINT]) == 0)
        fail_msg("%s: still %s: %s", name, row->columns[DTYPES_CONSTRAINT],
                 row->columns[DTYPES_WHY]);
    tare_model_destroy(again);
    tare_backend_config_destroy(changed);
}

static tare_qconfig *any_qconfig(const tare_model *prepared) {
    for (size_t i = 0; i < prepared->prepared->node_count; i++)
        if (prepared->prepared->nodes[i].qconfig != NULL)
            return prepared->prepared->nodes[i].qconfig;
    return NULL;
}

// A selector that said no: with a qconfig in its place, the node has one.
static bool check_qconfig(const trial *t, const fact *about) {
    tare_qconfig *q = any_qconfig(t->prepared);
    const char *section = about->columns[NODE_SECTION], *key = about->columns[NODE_KEY];
    if (q == NULL) return false;
    tare_qconfig_mapping *changed = NULL;
    CHECK_DONE(tare_qconfig_mapping_clone(t->mapping, &changed, job_error()));
    if (strcmp(section, "object_type") == 0)
        tare_qconfig_mapping_set_object_type(changed, key, q);
    else if (strcmp(section, "module_name") == 0)
        tare_qconfig_mapping_set_module_name(changed, key, q);
    else if (strcmp(section, "module_name_regex") == 0)
        tare_qconfig_mapping_set_module_name_regex(changed, key, q);
    else
        tare_qconfig_mapping_set_global(changed, q);
    tare_model *again = prepare_again(t, t->backend, changed);
    bool is_told = false;
    if (again != NULL) { // else a fused pattern now has two qconfigs, which is an error
        const fact *now = find_fact(again, FACT_NODE, about->columns[NODE_NAME]);
        is_told = now == NULL || now->columns[NODE_QCONFIG][0] != '\0';
        if (!is_told) fail_msg("%s: still no qconfig", about->columns[NODE_NAME]);
    }
    tare_model_destroy(again);
    tare_qconfig_mapping_destroy(changed);
    return is_told;
}

// No pattern: with one for the operator, the node is observed, or a constraint is named.
static bool check_pattern(const trial *t, const fact *about) {
    tare_backend_config *changed = NULL;
    CHECK_DONE(tare_backend_config_clone(t->backend, &changed, job_error()));
    tare_dtype_config any = tare_dtype_config_init();
    any.input.dtype = any.output.dtype = TARE_QUINT8;
    tare_pattern_config_add_dtype_config(
        tare_backend_config_add(changed, about->columns[NODE_OPERATOR], NULL, NULL), &any);
    tare_model *again = prepare_again(t, changed, t->mapping);
    const char *name = about->columns[NODE_NAME];
    if (again != NULL && !is_observed(again, name) && refusal(again, name, NULL)[0] == '\0' &&
        find_fact(again, FACT_NODE, name)->columns[NODE_QCONFIG][0] != '\0')
        fail_msg("%s (%s): still no verdict", name, about->columns[NODE_OPERATOR]);
    const bool is_told = again != NULL;
    tare_model_destroy(again);
    tare_backend_config_destroy(changed);
    return is_told;
}

// How many reasons of each kind were tried.
typedef struct tally {
    size_t qconfigs, patterns, dtypes, skip;
} tally;

// One reason of each float node.
static void check_reasons(const trial *t, tally *of) {
    const fact_table *nodes = &t->prepared->facts.tables[FACT_NODE];
    for (size_t i = 0; i < nodes->count; i++) {
        const fact *about = &nodes->rows[i];
        const char *name = about->columns[NODE_NAME];
        if (is_observed(t->prepared, name) || strchr(name, '.') != NULL) continue;
        if (of->skip++ % CASE_STRIDE != 0) continue;
        const fact *row = find_fact(t->prepared, FACT_DTYPES, name);
        if (about->columns[NODE_QCONFIG][0] == '\0') {
            of->qconfigs += check_qconfig(t, about);
        } else if (about->columns[NODE_PATTERN][0] == '\0') {
            of->patterns += check_pattern(t, about);
        } else if (row != NULL && strcmp(row->columns[DTYPES_OUTCOME], "refused") == 0) {
            check_dtypes(t, about, row);
            of->dtypes++;
        }
    }
}

// A reason against a pattern is given only where it does not match; where the node can only stand
// at its end and it does not match, a reason is given.
static void check_whys(const tare_model *model, const tare_backend_config *backend) {
    text why = {0};
    for (const node *n = model->root->graph->first; n != NULL; n = n->next)
        for (size_t i = 0; i < backend->count && tare__node_is_call(n); i++) {
            const pattern *p = backend->configs[i]->complex;
            const value v = {.kind = VALUE_NODE, .as.node = (node *)n};
            const bool is_match = tare__pattern_matches(p, &v, model->root);
            tare__text_clear(&why);
            const bool is_told = tare__pattern_why(p, n, model->root, &why);
            assert_int_equal(is_told, why.length > 0);
            if (is_match) assert_false(is_told);
            pattern_kind kind = PATTERN_ANY;
            const char *operator_name = tare__node_operator(n, model->root, &kind);
            const pattern *head = p->kind == PATTERN_TUPLE ? &p->items[0] : p;
            if (!is_match && head->kind == kind && strcmp(head->name, operator_name) == 0)
                assert_true(is_told);
        }
    tare__text_release(&why);
}

static void try_settings(const recorded_case *c, size_t s, tally *of) {
    tare_model *model = NULL;
    if (case_model(c, &model, job_error()) != TARE_OK) return;
    trial t = {.model = model,
               .backend = settings[s].backend != NULL ? builtin_backend(settings[s].backend)
                                                      : my_backend(),
               .mapping = settings[s].mapping != NULL ? default_mapping(settings[s].mapping)
                                                      : my_mapping()};
    check_whys(model, t.backend);
    tare_model *prepared = prepare_again(&t, t.backend, t.mapping);
    if (prepared != NULL) {
        check_complete(prepared);
        t.prepared = prepared;
        check_reasons(&t, of);
    }
    tare_model_destroy(prepared);
    tare_backend_config_destroy(t.backend);
    tare_qconfig_mapping_destroy(t.mapping);
    tare_model_destroy(model);
}

// Cases of one family are one model under many settings: the first of each name is enough.
static bool is_new_family(const case_list *list, size_t i) {
    const size_t length = strcspn(list->items[i].name, "_");
    return i == 0 || strncmp(list->items[i].name, list->items[i - 1].name, length + 1) != 0 ||
           strncmp(list->items[i].name, "test", 4) == 0;
}

static void reasons_are_true(void **state) {
    (void)state;
    case_list list = {0};
    CHECK_DONE(case_list_add(&list, "tests/cases", job_error()));
    tally of = {0};
    size_t models = 0;
    for (size_t i = 0; i < list.count; i++) {
        if (!is_new_family(&list, i)) continue;
        recorded_case c;
        CHECK_DONE(case_read(&list.items[i], &c, job_error()));
        // Exported programs are prepared by quantizers, which leave a record of their own.
        const size_t count = pt2e_is_case(&c) ? 0 : sizeof settings / sizeof *settings;
        models += count > 0;
        for (size_t s = 0; s < count; s++) try_settings(&c, s, &of);
        case_release(&c);
    }
    print_message("%zu models; tried: %zu qconfigs, %zu patterns, %zu dtypes\n", models,
                  of.qconfigs, of.patterns, of.dtypes);
    assert_true(of.qconfigs > 0 && of.patterns > 0 && of.dtypes > 0);
    assert_true(of.qconfigs + of.patterns + of.dtypes >= WANTED_SAMPLES);
    case_list_release(&list);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reasons_are_true),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
