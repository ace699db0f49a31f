// SPDX-License-Identifier: Apache-2.0
// The graphs directly inside a model, and the rows of its records by graph.
#include "core/memory/alloc.h"
#include "model/coverage.h"
#include "model/nested/nested.h"
#include "ops/flow_op.h"

// --- the records ---

static const char *decision_name(const void *list, size_t row) {
    return ((const tare_model *)list)->decisions.items[row].node;
}

static const char *annotation_name(const void *list, size_t row) {
    return ((const tare_model *)list)->annotations.by_node.entries[row].key;
}

static const char *operator_name(const void *list, size_t row) {
    return ((const tare_model *)list)->ops[row].name;
}

static tare_status copy_decision(const tare_model *from, size_t row, const char *path,
                                 tare_model *to, tare_error *err) {
    tare_decision d = from->decisions.items[row];
    d.node = tare__nested_name(d.node, path);
    return tare__record_keep(&to->decisions, &d, err);
}

static tare_status copy_annotation(const tare_model *from, size_t row, const char *path,
                                   tare_model *to, tare_error *err) {
    const map_entry *entry = &from->annotations.by_node.entries[row];
    return tare__annotation_put(&to->annotations, tare__nested_name(entry->key, path), entry->value,
                                err);
}

static tare_status copy_operator(const tare_model *from, size_t row, const char *path,
                                 tare_model *to, tare_error *err) {
    const traced_op *op = &from->ops[row];
    return tare__coverage_put(
        to, op, tare__nested_name(op->name, path),
        op->fused_into != NULL ? tare__nested_name(op->fused_into, path) : NULL, err);
}

typedef struct record_form {
    const char *(*name)(const void *list, size_t row);
    tare_status (*copy)(const tare_model *from, size_t row, const char *path, tare_model *to,
                        tare_error *err);
} record_form;

static const record_form forms[NESTED_RECORDS] = {
    [NESTED_DECISIONS] = {decision_name, copy_decision},
    [NESTED_ANNOTATIONS] = {annotation_name, copy_annotation},
    [NESTED_OPERATORS] = {operator_name, copy_operator},
};

tare_status tare__nested_copy(const nested_graphs *g, nested_record which, size_t number,
                              const tare_model *outer, tare_model *inner, tare_error *err) {
    const nested_rows *rows = &g->rows[which];
    for (size_t i = rows->first[number]; i < rows->first[number + 1]; i++)
        TARE_TRY(forms[which].copy(outer, rows->items[i], g->readers[number]->target, inner, err));
    return TARE_OK;
}

// --- sorting ---

// The number of the graph that "PATH/NODE" belongs to; the number of graphs if it is none of them.
static size_t number_of(const nested_graphs *g, const char *name, text *path) {
    for (const char *slash = name != NULL ? strchr(name, '/') : NULL; slash != NULL;
         slash = strchr(slash + 1, '/')) {
        tare__text_clear(path);
        tare__text_append_n(path, name, (size_t)(slash - name));
        const size_t found = (size_t)tare__map_get(&g->numbers, tare__text_chars(path));
        if (found > 0) return found - 1;
    }
    return g->count;
}

tare_status tare__nested_sort(nested_graphs *g, const void *list, size_t count,
                              const char *(*name)(const void *list, size_t row), nested_rows *out,
                              tare_error *err) {
    text path = {0};
    size_t *number = tare__arena_array(&g->memory, count + 1, sizeof *number);
    out->items = tare__arena_array(&g->memory, count + 1, sizeof *out->items);
    out->first = tare__arena_array(&g->memory, g->count + 3, sizeof *out->first);
    if (number == NULL || out->items == NULL || out->first == NULL) return tare__out_of_memory(err);
    // Counts the rows two places behind, so that filling moves each start to where it belongs.
    for (size_t i = 0; i < count; i++) {
        number[i] = number_of(g, name(list, i), &path);
        out->first[number[i] + 2]++;
    }
    for (size_t i = 2; i < g->count + 3; i++) out->first[i] += out->first[i - 1];
    for (size_t i = 0; i < count; i++) out->items[out->first[number[i] + 1]++] = i;
    const tare_status status = tare__text_status(&path, err);
    tare__text_release(&path);
    return status;
}

static tare_status add_graph(void *user, const module *root, const node *reader, tare_error *err) {
    nested_graphs *g = user;
    (void)root;
    g->readers[g->count++] = reader;
    return tare__map_set(&g->numbers, reader->target, tare__map_int(g->count))
               ? TARE_OK
               : tare__out_of_memory(err);
}

tare_status tare__nested_list(const tare_model *model, nested_graphs *out, tare_error *err) {
    const graph *around = model->root->graph;
    out->readers = tare__arena_array(&out->memory, around->node_count + 1, sizeof *out->readers);
    if (out->readers == NULL) return tare__out_of_memory(err);
    TARE_TRY(tare__flow_each_graph(model->root, add_graph, out, err));
    out->made = tare__arena_array(&out->memory, out->count + 1, sizeof *out->made);
    out->known = tare__arena_array(&out->memory, out->count + 1, sizeof *out->known);
    if (out->made == NULL || out->known == NULL) return tare__out_of_memory(err);
    const size_t counts[NESTED_RECORDS] = {[NESTED_DECISIONS] = model->decisions.count,
                                           [NESTED_ANNOTATIONS] = model->annotations.by_node.count,
                                           [NESTED_OPERATORS] = model->op_count};
    for (int r = 0; r < NESTED_RECORDS && out->count > 0; r++)
        TARE_TRY(tare__nested_sort(out, model, counts[r], forms[r].name, &out->rows[r], err));
    return TARE_OK;
}

void tare__nested_release(nested_graphs *g) {
    for (size_t i = 0; i < g->count && g->made != NULL; i++) tare_model_destroy(g->made[i]);
    tare__map_release(&g->numbers);
    tare__arena_release(&g->memory);
    *g = (nested_graphs){0};
}
