// SPDX-License-Identifier: Apache-2.0
// Public functions for partitions. tare_node is the public name of node.
#include <string.h>

#include "core/memory/alloc.h"
#include "model/model.h"
#include "quantizers/patterns/partitions.h"
#include "tare/subgraph.h"

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
    const equivalents *same; // NULL: partitions, not chains of them
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

// Copies the names of sources: the search refers to the caller's, but the result needs its own.
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
