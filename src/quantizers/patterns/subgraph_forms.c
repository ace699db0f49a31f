// SPDX-License-Identifier: Apache-2.0
// The forms of a pattern: its code captured with each example, without duplicates.
#include <string.h>

#include "core/memory/alloc.h"
#include "quantizers/patterns/capture.h"

// Compares values of two patterns; nodes are equal if they have the same position.
static bool are_equal(const value *a, const value *b, const size_t *index_a,
                      const size_t *index_b) {
    if (a->kind != b->kind) return false;
    if (a->kind == VALUE_NODE) return index_a[a->as.node->id] == index_b[b->as.node->id];
    if (!tare__value_has_items(a)) return tare__value_equal(a, b);
    if (a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (!are_equal(&a->as.items[i], &b->as.items[i], index_a, index_b)) return false;
    return true;
}

static bool are_equal_nodes(const node *a, const node *b, const size_t *index_a,
                            const size_t *index_b) {
    if (a->op != b->op || a->arg_count != b->arg_count || a->kwarg_count != b->kwarg_count)
        return false;
    if (a->op != NODE_PLACEHOLDER && strcmp(a->target, b->target) != 0) return false;
    for (size_t i = 0; i < a->arg_count; i++)
        if (!are_equal(&a->args[i], &b->args[i], index_a, index_b)) return false;
    for (size_t i = 0; i < a->kwarg_count; i++)
        if (strcmp(a->kwargs[i].name, b->kwargs[i].name) != 0 ||
            !are_equal(&a->kwargs[i].value, &b->kwargs[i].value, index_a, index_b))
            return false;
    return true;
}

static bool have_equal_names(const subgraph_pattern *a, const subgraph_pattern *b,
                             const size_t *index_a, const size_t *index_b) {
    if (a->name_count != b->name_count) return false;
    for (size_t i = 0; i < a->name_count; i++) {
        const node *x = a->names[i].node, *y = b->names[i].node;
        if (strcmp(a->names[i].name, b->names[i].name) != 0 || (x == NULL) != (y == NULL) ||
            (x != NULL && index_a[x->id] != index_b[y->id]))
            return false;
    }
    return true;
}

static size_t *indices_of(const graph *g) {
    size_t *indices = tare__alloc_zeroed(g->next_id + 1, sizeof *indices), at = 0;
    for (const node *n = g->first; indices != NULL && n != NULL; n = n->next) indices[n->id] = at++;
    return indices;
}

static tare_status compare(const subgraph_pattern *a, const subgraph_pattern *b, bool *out,
                           tare_error *err) {
    size_t *index_a = indices_of(a->graph), *index_b = indices_of(b->graph);
    const bool has_memory = index_a != NULL && index_b != NULL;
    *out = has_memory && a->graph->node_count == b->graph->node_count;
    const node *x = a->graph->first, *y = b->graph->first;
    for (; *out && x != NULL && y != NULL; x = x->next, y = y->next)
        *out = are_equal_nodes(x, y, index_a, index_b);
    *out = *out && have_equal_names(a, b, index_a, index_b);
    tare__free(index_a);
    tare__free(index_b);
    return has_memory ? TARE_OK : tare__out_of_memory(err);
}

// Takes ownership of the form; drops it if an equal one exists.
static tare_status add_form(subgraph_forms *f, subgraph_pattern *form, tare_error *err) {
    bool is_known = false;
    tare_status status = TARE_OK;
    for (size_t i = 0; i < f->count && status == TARE_OK && !is_known; i++)
        status = compare(f->items[i], form, &is_known, err);
    if (status == TARE_OK && !is_known &&
        !tare__grow((void **)&f->items, &f->capacity, f->count, sizeof(subgraph_pattern *)))
        status = tare__out_of_memory(err);
    if (status == TARE_OK && !is_known)
        f->items[f->count++] = form;
    else
        tare__subgraph_destroy(form);
    return status;
}

tare_status tare__subgraph_forms_add(subgraph_forms *f, const char *code, size_t size,
                                     const subgraph_options *options,
                                     const capture_example *examples, size_t example_count,
                                     tare_error *err) {
    for (size_t i = 0; i < example_count || i == 0; i++) {
        subgraph_options o = *options;
        subgraph_pattern *form = NULL;
        o.example = example_count > 0 ? &examples[i] : NULL;
        const tare_status status = tare__subgraph_parse(code, size, &o, &form, err);
        if (status != TARE_OK && example_count > 0) return tare__at(err, status, "example %zu", i);
        TARE_TRY(status);
        TARE_TRY(add_form(f, form, err));
    }
    return TARE_OK;
}

void tare__subgraph_forms_release(subgraph_forms *f) {
    for (size_t i = 0; i < f->count; i++) tare__subgraph_destroy(f->items[i]);
    tare__free(f->items);
    *f = (subgraph_forms){0};
}
