// SPDX-License-Identifier: Apache-2.0
// A range that does not fit the data is passed on: what is computed from a tensor beyond its range,
// or far inside of it, is so, too. Then the first such tensor is the cause, even where a later one
// costs more.
#include "debug/analyze/causes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/pass.h"
#include "ops/op.h"

// How much of a tensor's misfit, in dB, another one must have to be its cause.
#define CAUSE_SHARE 0.5

const node *tare__cause_value(const probe *p, const node *quantize) {
    const node *n = tare__node_arg(quantize, 0);
    while (n != NULL) {
        const probe_kind kind = p->facts[n->id].kind;
        if (kind != PROBE_QUANTIZE && kind != PROBE_DEQUANTIZE &&
            !(tare__node_is_call(n) && tare__passes_on(tare__called_row(p->model, n))))
            break;
        n = tare__node_arg(n, 0);
    }
    return n;
}

// --- causes ---

typedef struct linking {
    finding_list *list;
    size_t *place; // by node id: its place in the graph
    bool *is_read; // by node id: what a value depends on
} linking;

static bool is_cost(double db) {
    return db < INFINITY; // false for NaN, too
}

// What the value of `n` is computed from, itself included.
static void mark_sources(const linking *l, const node *n) {
    const size_t count = l->list->probe->id_count;
    memset(l->is_read, 0, count * sizeof *l->is_read);
    l->is_read[n->id] = true;
    for (; n != NULL; n = n->prev)
        for (size_t i = 0; l->is_read[n->id] && i < n->input_count; i++)
            l->is_read[n->inputs[i]->id] = true;
}

static bool passes_to(finding_family cause, finding_family family) {
    if (cause == FAMILY_DATA) return family == FAMILY_NARROW || family == FAMILY_WIDE;
    return cause != FAMILY_NONE && cause == family;
}

// Does the layer compute what n returns, with nothing behind it but what keeps channels?
static bool keeps_channels(const linking *l, const node *layer, const node *n) {
    const probe *p = l->list->probe;
    while (n != NULL && n != layer) {
        const probe_kind kind = p->facts[n->id].kind;
        const bool is_one_to_one = tare__node_is_call(n) && n->input_count == 1 &&
                                   tare__op_has(tare__called_row(p->model, n), OP_ELEMENTWISE);
        if (kind != PROBE_QUANTIZE && kind != PROBE_DEQUANTIZE && !is_one_to_one) return false;
        n = tare__node_arg(n, 0);
    }
    return n != NULL;
}

static bool explains(const linking *l, const noted_finding *cause, const noted_finding *f) {
    if (cause->value == NULL || !passes_to(cause->family, f->family)) return false;
    if (!l->is_read[cause->value->id]) return false;
    const bool is_same = cause->value == f->value;
    if (is_same && cause->family == f->family && !cause->is_weight && cause >= f) return false;
    if (cause->family == FAMILY_CHANNEL && (!cause->is_weight || cause->channel != f->channel ||
                                            !keeps_channels(l, cause->value, f->value)))
        return false;
    return cause->family == FAMILY_DATA || cause->family == FAMILY_UNSEEN ||
           log(cause->stretch) >= CAUSE_SHARE * log(f->stretch);
}

static bool comes_first(const linking *l, const noted_finding *a, const noted_finding *b) {
    if ((a->family == FAMILY_DATA) != (b->family == FAMILY_DATA)) return a->family == FAMILY_DATA;
    return l->place[a->value->id] < l->place[b->value->id];
}

static void link(const linking *l, size_t index) {
    finding_list *list = l->list;
    noted_finding *f = &list->items[index];
    if (f->value == NULL || f->is_weight) return;
    if (f->family == FAMILY_NONE || f->family == FAMILY_DATA) return;
    mark_sources(l, f->value);
    for (size_t i = 0; i < list->count; i++) {
        const noted_finding *other = &list->items[i];
        if (i == index || !explains(l, other, f)) continue;
        if (f->cause == NO_CAUSE || comes_first(l, other, &list->items[f->cause])) f->cause = i;
    }
}

// A cause is in front of what follows from it, so that this ends.
static size_t root_of(const finding_list *f, size_t index) {
    while (f->items[index].cause != NO_CAUSE) index = f->items[index].cause;
    return index;
}

static tare_status tell(finding_list *list, noted_finding *f, const noted_finding *root) {
    const node *from = root->value;
    const char *origin = tare_model_float_node(list->probe->model, from->name);
    const bool is_input = from->op == NODE_PLACEHOLDER;
    f->shown.cause = tare__arena_printf(list->memory, "%s; this follows from %s'%s'",
                                        f->shown.cause, is_input ? "the model's input " : "",
                                        origin != NULL ? origin : from->name);
    if (!root->has_local_remedy) {
        f->shown.remedy = root->shown.remedy;
        f->shown.step = root->shown.step;
    }
    return f->shown.cause != NULL ? TARE_OK : tare__out_of_memory(list->err);
}

static tare_status link_all(const linking *l) {
    finding_list *list = l->list;
    for (size_t i = 0; i < list->count; i++) link(l, i);
    for (size_t i = 0; i < list->count; i++) {
        noted_finding *f = &list->items[i];
        if (f->cause == NO_CAUSE) continue;
        noted_finding *root = &list->items[root_of(list, i)];
        if (is_cost(f->shown.db) && !(root->rank <= f->shown.db)) root->rank = f->shown.db;
        if (root->value != f->value) TARE_TRY(tell(list, f, root));
    }
    return TARE_OK;
}

// --- order ---

enum { COSTLY, CONSEQUENCE, CHEAP, FREE };

static int class_of(const noted_finding *f) {
    if (!is_cost(f->rank)) return FREE;
    if (f->cause != NO_CAUSE) return CONSEQUENCE;
    return f->rank <= GOOD_DB ? COSTLY : CHEAP;
}

static int by_cost(const void *a, const void *b) {
    const noted_finding *x = a, *y = b;
    const int p = class_of(x), q = class_of(y);
    if (p != q) return p - q;
    if (p < FREE && x->rank != y->rank) return (x->rank > y->rank) - (x->rank < y->rank);
    if (p == FREE && x->note != y->note) return (int)x->note - (int)y->note;
    if (x->place != y->place) return (x->place > y->place) - (x->place < y->place);
    return strcmp(x->shown.kind, y->shown.kind);
}

tare_status tare__causes_sort(finding_list *f) {
    const probe *p = f->probe;
    linking l = {.list = f,
                 .place = tare__arena_array(f->memory, p->id_count + 1, sizeof *l.place),
                 .is_read = tare__arena_array(f->memory, p->id_count + 1, sizeof *l.is_read)};
    size_t place = 0;
    if (l.place == NULL || l.is_read == NULL) return tare__out_of_memory(f->err);
    for (const node *n = p->g->first; n != NULL; n = n->next) l.place[n->id] = place++;
    TARE_TRY(link_all(&l));
    for (size_t i = 0; i < f->count; i++) f->items[i].place = l.place[f->items[i].at->id];
    if (f->count > 0) qsort(f->items, f->count, sizeof *f->items, by_cost);
    return TARE_OK;
}
