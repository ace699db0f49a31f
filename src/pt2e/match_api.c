// SPDX-License-Identifier: Apache-2.0
// The public calls of partitions and patterns. A tare_node is a node under another name.
#include <string.h>

#include "core/alloc.h"
#include "core/struct_size.h"
#include "pt2e/partitions.h"
#include "pt2e/subgraph.h"
#include "quant/model.h"
#include "tare/subgraph.h"

// --- partitions ---

struct tare_partitions {
    arena memory;
    chain_list chains;
};

typedef struct public_filter {
    tare_node_filter filter;
    void *user;
} public_filter;

static bool ask_filter(void *user, const node *n) {
    const public_filter *f = user;
    return f->filter == NULL || f->filter(f->user, (const tare_node *)n);
}

static tare_status as_chains(const partition_list *list, tare_partitions *out, tare_error *err) {
    out->chains = (chain_list){.width = 1, .count = list->count};
    out->chains.items = tare__arena_array(&out->memory, list->count + 1, sizeof *out->chains.items);
    if (out->chains.items == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < list->count; i++) out->chains.items[i] = &list->items[i];
    return TARE_OK;
}

typedef struct search {
    const tare_model *model;
    const char *const *names;
    size_t name_count;
    const equivalents *same; // NULL: partitions alone
    public_filter filter;
} search;

static tare_status run_search(const search *s, const node_sources *sources, tare_partitions *out,
                              tare_error *err) {
    const graph *g = s->model->root->graph;
    const node_filter filter = {.accepts = ask_filter, .user = (void *)&s->filter};
    if (s->same != NULL)
        return tare__sequential_partitions(g, sources, s->names, s->name_count, s->same, &filter,
                                           &out->memory, &out->chains, err);
    partition_list list;
    TARE_TRY(tare__source_partitions(g, sources, s->names, s->name_count, &filter, &out->memory,
                                     &list, err));
    return as_chains(&list, out, err);
}

// The names of sources stay the caller's in the search, so that the result gets its own.
static tare_status copy_names(search *s, arena *memory, tare_error *err) {
    const char **names = tare__arena_array(memory, s->name_count + 1, sizeof *names);
    if (names == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < s->name_count; i++)
        if ((names[i] = tare__arena_strdup(memory, s->names[i])) == NULL)
            return tare__out_of_memory(err);
    s->names = names;
    return TARE_OK;
}

static tare_status find_partitions(search *s, tare_partitions **out, tare_error *err) {
    node_sources sources;
    TARE_TRY(tare__node_sources_read(s->model->root->graph, &sources, err));
    tare_partitions *made = tare__alloc_zeroed(1, sizeof *made);
    tare_status status =
        made != NULL ? copy_names(s, &made->memory, err) : tare__out_of_memory(err);
    if (status == TARE_OK) status = run_search(s, &sources, made, err);
    tare__node_sources_release(&sources);
    if (status == TARE_OK)
        *out = made;
    else
        tare_partitions_destroy(made);
    return status;
}

tare_status tare_source_partitions(const tare_model *model, const char *const *sources,
                                   size_t source_count, tare_node_filter filter, void *user,
                                   tare_partitions **out, tare_error *err) {
    search s = {.model = model,
                .names = sources,
                .name_count = source_count,
                .filter = {.filter = filter, .user = user}};
    return find_partitions(&s, out, err);
}

tare_status tare_sequential_partitions(const tare_model *model, const char *const *types,
                                       size_t type_count, const char *const *const *groups,
                                       size_t group_count, tare_node_filter filter, void *user,
                                       tare_partitions **out, tare_error *err) {
    const equivalents own = {.groups = groups, .count = group_count};
    search s = {.model = model,
                .names = types,
                .name_count = type_count,
                .same = groups != NULL ? &own : &tare__equivalents,
                .filter = {.filter = filter, .user = user}};
    return find_partitions(&s, out, err);
}

void tare_partitions_destroy(tare_partitions *p) {
    if (p == NULL) return;
    tare__arena_release(&p->memory);
    tare__free(p);
}

size_t tare_partitions_count(const tare_partitions *p) {
    return p->chains.count;
}

bool tare_partitions_at(const tare_partitions *p, size_t row, size_t column, tare_partition *out) {
    if (row >= p->chains.count || column >= p->chains.width) return false;
    const partition *x = p->chains.items[row * p->chains.width + column];
    *out = (tare_partition){.struct_size = sizeof *out,
                            .source = x->source,
                            .nodes = (const tare_node *const *)x->nodes.items,
                            .node_count = x->nodes.count,
                            .inputs = (const tare_node *const *)x->inputs.items,
                            .input_count = x->inputs.count,
                            .outputs = (const tare_node *const *)x->outputs.items,
                            .output_count = x->outputs.count,
                            .params = (const tare_node *const *)x->params.items,
                            .param_count = x->params.count};
    return true;
}

// --- patterns ---

struct tare_subgraph_pattern {
    subgraph_pattern **forms;
    size_t form_count;
};

struct tare_subgraph_matches {
    const tare_subgraph_pattern *pattern;
    arena memory;
    subgraph_matches list;
};

void tare_subgraph_pattern_destroy(tare_subgraph_pattern *p) {
    if (p == NULL) return;
    for (size_t i = 0; i < p->form_count; i++) tare__subgraph_destroy(p->forms[i]);
    tare__free(p->forms);
    tare__free(p);
}

static tare_status parse_forms(tare_subgraph_pattern *p, const char *const *codes, size_t count,
                               const subgraph_options *options, tare_error *err) {
    p->forms = tare__alloc_zeroed(count + 1, sizeof(subgraph_pattern *));
    if (p->forms == NULL) return tare__out_of_memory(err);
    for (; p->form_count < count; p->form_count++) {
        const size_t i = p->form_count;
        const tare_status status =
            tare__subgraph_parse(codes[i], strlen(codes[i]), options, &p->forms[i], err);
        if (status != TARE_OK) return tare__at(err, status, "form %zu", i);
    }
    return TARE_OK;
}

tare_status tare_subgraph_pattern_create(const char *const *codes, size_t count,
                                         const tare_pattern_options *options,
                                         tare_subgraph_pattern **out, tare_error *err) {
    tare_pattern_options o = {0};
    if (options != NULL) tare__struct_copy(&o, sizeof o, options);
    const subgraph_options known = {.match_output = o.match_output,
                                    .match_placeholder = o.match_placeholder,
                                    .keeps_overlapping = o.keeps_overlapping,
                                    .ignore_literals = o.ignore_literals};
    tare_subgraph_pattern *p = tare__alloc_zeroed(1, sizeof *p);
    if (p == NULL) return tare__out_of_memory(err);
    const tare_status status = parse_forms(p, codes, count, &known, err);
    if (status == TARE_OK)
        *out = p;
    else
        tare_subgraph_pattern_destroy(p);
    return status;
}

tare_status tare_subgraph_find(const tare_subgraph_pattern *pattern, const tare_model *model,
                               tare_subgraph_matches **out, tare_error *err) {
    tare_subgraph_matches *made = tare__alloc_zeroed(1, sizeof *made);
    if (made == NULL) return tare__out_of_memory(err);
    made->pattern = pattern;
    tare_status status = TARE_OK;
    for (size_t i = 0; i < pattern->form_count && status == TARE_OK; i++)
        status = tare__subgraph_find(pattern->forms[i], model->root->graph, &made->memory,
                                     &made->list, err);
    if (status == TARE_OK)
        *out = made;
    else
        tare_subgraph_matches_destroy(made);
    return status;
}

void tare_subgraph_matches_destroy(tare_subgraph_matches *m) {
    if (m == NULL) return;
    tare__arena_release(&m->memory);
    tare__free(m);
}

size_t tare_subgraph_matches_count(const tare_subgraph_matches *m) {
    return m->list.count;
}

size_t tare_subgraph_match_form(const tare_subgraph_matches *m, size_t index) {
    size_t form = 0;
    while (form < m->pattern->form_count && m->pattern->forms[form] != m->list.items[index].pattern)
        form++;
    return form;
}

const tare_node *tare_subgraph_match_node(const tare_subgraph_matches *m, size_t index,
                                          const char *name) {
    return index < m->list.count
               ? (const tare_node *)tare__subgraph_node(&m->list.items[index], name)
               : NULL;
}

bool tare_subgraph_match_edge(const tare_subgraph_matches *m, size_t index, const char *name,
                              size_t nth, tare_edge *out) {
    node *from = NULL, *to = NULL;
    if (index >= m->list.count ||
        !tare__subgraph_edge(&m->list.items[index], name, nth, &from, &to))
        return false;
    *out = (tare_edge){.from = (const tare_node *)from, .node = (const tare_node *)to};
    return true;
}
