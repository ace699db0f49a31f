// SPDX-License-Identifier: Apache-2.0
// Takes graphs inside a graph out as models for a pass, and puts back what the pass made.
#include "model/coverage.h"
#include "model/nested/nested.h"
#include "ops/flow_op.h"

// --- origins of nodes ---

static tare_status strip_origins(const char *path, module *root, tare_error *err);

static tare_status strip_inside(void *user, const module *root, const node *reader,
                                tare_error *err) {
    return strip_origins(user, tare__read_graph((module *)root, reader), err); // NOLINT: a pass's
}

static tare_status strip_origins(const char *path, module *root, tare_error *err) {
    for (node *n = root->graph->first; n != NULL; n = n->next) {
        const char *name = n->origin != NULL ? tare__nested_name(n->origin, path) : NULL;
        if (name != NULL) n->origin = name;
    }
    return tare__flow_each_graph(root, strip_inside, (void *)path, err); // NOLINT: only read
}

static tare_status prefix_origins(const char *path, module *root, tare_error *err);

static tare_status prefix_inside(void *user, const module *root, const node *reader,
                                 tare_error *err) {
    return prefix_origins(user, tare__read_graph((module *)root, reader), err); // NOLINT: a pass's
}

static tare_status prefix_origins(const char *path, module *root, tare_error *err) {
    for (node *n = root->graph->first; n != NULL; n = n->next) {
        if (n->origin == NULL) continue;
        n->origin = tare__arena_printf(&root->graph->memory, "%s/%s", path, n->origin);
        if (n->origin == NULL) return tare__out_of_memory(err);
    }
    return tare__flow_each_graph(root, prefix_inside, (void *)path, err); // NOLINT: only read
}

// --- one graph ---

tare_status tare__nested_open(nested_graphs *g, size_t number, const tare_model *outer,
                              tare_model_stage stage, tare_model **out, tare_error *err) {
    tare_model *made = NULL;
    module *kept = tare__module_retain(tare__read_graph(outer->root, g->readers[number]));
    const tare_status status = tare__model_create(outer->context, kept, stage, NULL, &made, err);
    if (status != TARE_OK) {
        tare__module_release(kept);
        return status;
    }
    *out = made;
    made->engine = outer->engine;
    made->is_inner = true;
    TARE_TRY(strip_origins(g->readers[number]->target, kept, err));
    for (int r = 0; r < NESTED_RECORDS; r++)
        TARE_TRY(tare__nested_copy(g, (nested_record)r, number, outer, made, err));
    tare__coverage_complete(made);
    g->known[number] = made->decisions.count;
    return TARE_OK;
}

tare_status tare__nested_close(nested_graphs *g, size_t number, tare_model *outer, tare_model *made,
                               tare_error *err) {
    const char *path = g->readers[number]->target;
    TARE_TRY(prefix_origins(path, made->root, err));
    TARE_TRY(tare__module_set_path(outer->root, path, made->root, &tare__class_container, err));
    g->made[number] = made;
    return TARE_OK;
}

// --- operators of all graphs ---

// The operator that runs the graph, as the float model calls it.
static const char *operator_of(const node *reader) {
    for (size_t i = 0; i < reader->user_count; i++)
        if (tare__flow_op(reader->users[i]) != NULL) return reader->users[i]->origin;
    return NULL;
}

// Where the operators of a graph stood, or stand: behind the operator that runs it and those of the
// graphs before it; last if that operator is unknown.
static size_t place_of(const nested_graphs *g, size_t number, const tare_model *outer) {
    const nested_rows *rows = &g->rows[NESTED_OPERATORS];
    if (rows->first[number] < rows->first[number + 1]) return rows->items[rows->first[number]];
    const traced_op *op = tare__traced_op(outer, operator_of(g->readers[number]));
    size_t place = op != NULL ? (size_t)(op - outer->ops) + 1 : outer->op_count;
    while (place < outer->op_count && strchr(outer->ops[place].name, '/') != NULL) place++;
    return place;
}

static tare_status put_operators(tare_model *to, const tare_model *made, const char *path,
                                 tare_error *err) {
    tare_status status = TARE_OK;
    text name = {0}, into = {0};
    for (size_t i = 0; i < made->op_count && status == TARE_OK; i++) {
        const traced_op *op = &made->ops[i];
        tare__text_clear(&name);
        tare__text_clear(&into);
        tare__text_printf(&name, "%s/%s", path, op->name);
        if (op->fused_into != NULL) tare__text_printf(&into, "%s/%s", path, op->fused_into);
        status = name.failed || into.failed ? tare__out_of_memory(err) : TARE_OK;
        if (status == TARE_OK)
            status =
                tare__coverage_put(to, op, tare__text_chars(&name),
                                   op->fused_into != NULL ? tare__text_chars(&into) : NULL, err);
    }
    tare__text_release(&name);
    tare__text_release(&into);
    return status;
}

// Rows in the outer model's order, each graph's at its place. at: places behind which graph
// number + 1 comes first; next: the graph behind a graph at the same place, in the same form.
static tare_status list_operators(const nested_graphs *g, const tare_model *outer, const size_t *at,
                                  const size_t *next, tare_model *out, tare_error *err) {
    const nested_rows *rows = &g->rows[NESTED_OPERATORS];
    size_t own = rows->first[g->count]; // the next row of the graph around
    for (size_t i = 0; i <= outer->op_count; i++) {
        for (size_t k = at[i]; k > 0; k = next[k - 1])
            TARE_TRY(put_operators(out, g->made[k - 1], g->readers[k - 1]->target, err));
        if (own == rows->first[g->count + 1] || rows->items[own] != i) continue;
        own++;
        const traced_op *op = &outer->ops[i];
        TARE_TRY(tare__coverage_put(out, op, op->name, op->fused_into, err));
    }
    tare__coverage_complete(out);
    return TARE_OK;
}

static tare_status join_operators(nested_graphs *g, tare_model *outer, tare_error *err) {
    tare_model joined = {0}; // only its operators
    size_t *at = tare__arena_array(&g->memory, outer->op_count + 1, sizeof *at);
    size_t *next = tare__arena_array(&g->memory, g->count + 1, sizeof *next);
    if (at == NULL || next == NULL) return tare__out_of_memory(err);
    for (size_t i = g->count; i-- > 0;) {
        const size_t place = place_of(g, i, outer);
        next[i] = at[place];
        at[place] = i + 1;
    }
    const tare_status status = list_operators(g, outer, at, next, &joined, err);
    if (status == TARE_OK) tare__coverage_move(outer, &joined);
    tare__coverage_release(&joined);
    return status;
}

// --- all records ---

static bool is_outside(void *user, const map_entry *entry) {
    const map *inside = user;
    return !tare__map_has(inside, entry->key);
}

// Removes the annotations that the graphs began with.
static tare_status drop_annotations(const nested_graphs *g, tare_model *outer, tare_error *err) {
    const nested_rows *rows = &g->rows[NESTED_ANNOTATIONS];
    map inside = {0};
    bool has_memory = true;
    for (size_t i = 0; i < rows->first[g->count]; i++)
        has_memory =
            has_memory &&
            tare__map_set(&inside, outer->annotations.by_node.entries[rows->items[i]].key, NULL);
    if (has_memory) tare__annotations_keep(&outer->annotations, is_outside, &inside);
    tare__map_release(&inside);
    return has_memory ? TARE_OK : tare__out_of_memory(err);
}

tare_status tare__nested_join(nested_graphs *g, tare_model *outer, tare_error *err) {
    if (g->count == 0) return TARE_OK;
    TARE_TRY(join_operators(g, outer, err));
    TARE_TRY(drop_annotations(g, outer, err));
    for (size_t i = 0; i < g->count; i++) {
        const tare_model *made = g->made[i];
        const char *path = g->readers[i]->target;
        TARE_TRY(tare__record_append_inner(&outer->decisions, &made->decisions, g->known[i], path,
                                           '/', err));
        TARE_TRY(tare__facts_append_inner(&outer->facts, &made->facts, path, '/', err));
        TARE_TRY(
            tare__annotations_append_inner(&outer->annotations, &made->annotations, path, err));
    }
    return TARE_OK;
}
