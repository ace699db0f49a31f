// SPDX-License-Identifier: Apache-2.0
// A depth-first search from each node in the file's order, with an explicit stack: the depth of a
// recursion would be up to the file to choose.
#include "io/onnx/read/order.h"

#include <stdio.h>
#include <string.h>

#include "core/text/text.h"

typedef struct step {
    size_t *needs; // indices of the nodes that must precede it
    size_t count, capacity;
    size_t next; // the first of `needs` that was not visited
    enum { NEW, BEGUN, DONE } state;
} step;

typedef struct sorter {
    const Onnx__GraphProto *g;
    const map *outer;
    map makers;  // value -> index of its node + 1; 0: an input or initializer
    step *steps; // per node
    size_t *stack, depth;
    const Onnx__NodeProto **sorted;
    size_t sorted_count;
    arena *memory;
    tare_error *err;
} sorter;

void tare__onnx_describe_node(const Onnx__NodeProto *n, char *out, size_t size) {
    const char *name = n->name != NULL ? n->name : "";
    const char *op = n->op_type != NULL ? n->op_type : "";
    if (*name == '\0' && n->n_output > 0) name = n->output[0];
    snprintf(out, size, "node '%.200s' (%.60s)", name, op);
}

static tare_status fail_at(const sorter *s, const Onnx__NodeProto *n, const char *message,
                           const char *name) {
    char where[300];
    tare__onnx_describe_node(n, where, sizeof where);
    tare__fail(s->err, TARE_MALFORMED_FILE, message, name);
    return tare__at(s->err, TARE_MALFORMED_FILE, "%s", where);
}

// --- who makes what ---

static tare_status add_source(sorter *s, const char *name) {
    if (name == NULL || *name == '\0')
        return tare__fail(s->err, TARE_MALFORMED_FILE, "an input or initializer has no name");
    return tare__map_set(&s->makers, name, NULL) ? TARE_OK : tare__out_of_memory(s->err);
}

static tare_status add_outputs(sorter *s, size_t index) {
    const Onnx__NodeProto *n = s->g->node[index];
    for (size_t i = 0; i < n->n_output; i++) {
        const char *name = n->output[i];
        if (*name == '\0') continue;
        if (tare__map_has(&s->makers, name) || (s->outer != NULL && tare__map_has(s->outer, name)))
            return fail_at(s, n, "the value '%s' is produced twice", name);
        if (!tare__map_set(&s->makers, name, tare__map_int(index + 1)))
            return tare__out_of_memory(s->err);
    }
    return TARE_OK;
}

static tare_status find_makers(sorter *s) {
    const Onnx__GraphProto *g = s->g;
    for (size_t i = 0; i < g->n_initializer; i++) {
        const char *name = g->initializer[i]->name;
        if (name != NULL && tare__map_has(&s->makers, name))
            return tare__fail(s->err, TARE_MALFORMED_FILE, "duplicate initializer '%s'", name);
        TARE_TRY(add_source(s, name));
    }
    for (size_t i = 0; i < g->n_input; i++) TARE_TRY(add_source(s, g->input[i]->name));
    for (size_t i = 0; i < g->n_node; i++) TARE_TRY(add_outputs(s, i));
    return TARE_OK;
}

// --- who needs what ---

static tare_status add_need(sorter *s, step *at, size_t maker) {
    if (at->count == at->capacity) {
        const size_t wanted = at->capacity > 0 ? 2 * at->capacity : 4;
        size_t *grown = tare__arena_array(s->memory, wanted, sizeof *grown);
        if (grown == NULL) return tare__out_of_memory(s->err);
        if (at->count > 0) memcpy(grown, at->needs, at->count * sizeof *grown);
        at->needs = grown;
        at->capacity = wanted;
    }
    at->needs[at->count++] = maker;
    return TARE_OK;
}

// A branch may use values of the enclosing graphs; the values that it computes itself are skipped.
static tare_status add_branch_needs(sorter *s, step *at, const Onnx__GraphProto *branch) {
    for (size_t i = 0; i < branch->n_node; i++) {
        const Onnx__NodeProto *n = branch->node[i];
        for (size_t k = 0; k < n->n_input; k++) {
            const size_t maker = (size_t)tare__map_get(&s->makers, n->input[k]);
            if (maker > 0) TARE_TRY(add_need(s, at, maker - 1));
        }
        for (size_t k = 0; k < n->n_attribute; k++)
            if (n->attribute[k]->g != NULL) TARE_TRY(add_branch_needs(s, at, n->attribute[k]->g));
    }
    for (size_t i = 0; i < branch->n_output; i++) {
        const char *name = branch->output[i]->name;
        const size_t maker = name != NULL ? (size_t)tare__map_get(&s->makers, name) : 0;
        if (maker > 0) TARE_TRY(add_need(s, at, maker - 1));
    }
    return TARE_OK;
}

static tare_status find_needs(sorter *s, size_t index) {
    const Onnx__NodeProto *n = s->g->node[index];
    step *at = &s->steps[index];
    for (size_t i = 0; i < n->n_input; i++) {
        const char *name = n->input[i];
        if (*name == '\0') continue;
        const bool is_known =
            tare__map_has(&s->makers, name) || (s->outer != NULL && tare__map_has(s->outer, name));
        if (!is_known)
            return fail_at(
                s, n,
                "its input '%s' is neither an output of a node nor an initializer nor an input",
                name);
        const size_t maker = (size_t)tare__map_get(&s->makers, name);
        if (maker > 0) TARE_TRY(add_need(s, at, maker - 1));
    }
    for (size_t i = 0; i < n->n_attribute; i++)
        if (n->attribute[i]->g != NULL) TARE_TRY(add_branch_needs(s, at, n->attribute[i]->g));
    return TARE_OK;
}

// --- the order ---

// The nodes on the stack from the first occurrence of `index` on form the cycle.
static tare_status report_circle(const sorter *s, size_t index) {
    enum { MOST_NAMES = 8 };
    text names = {0};
    size_t from = s->depth;
    while (from > 0 && s->stack[from - 1] != index) from--;
    for (size_t i = from == 0 ? 0 : from - 1; i < s->depth && i < from + MOST_NAMES; i++) {
        char where[300];
        tare__onnx_describe_node(s->g->node[s->stack[i]], where, sizeof where);
        tare__text_printf(&names, "%s%s", names.length > 0 ? " needs " : "", where);
    }
    const tare_status status =
        names.failed ? tare__out_of_memory(s->err)
                     : tare__fail(s->err, TARE_MALFORMED_FILE,
                                  "the graph has a cycle: %s needs the first one again",
                                  tare__text_chars(&names));
    tare__text_release(&names);
    return tare__hint(s->err, status, "no exporter writes such a file: export the model again");
}

static tare_status visit(sorter *s, size_t index) {
    if (s->steps[index].state == DONE) return TARE_OK;
    s->stack[s->depth++] = index;
    s->steps[index].state = BEGUN;
    while (s->depth > 0) {
        step *at = &s->steps[s->stack[s->depth - 1]];
        if (at->next == at->count) {
            at->state = DONE;
            s->sorted[s->sorted_count++] = s->g->node[s->stack[--s->depth]];
            continue;
        }
        const size_t need = at->needs[at->next++];
        if (s->steps[need].state == DONE) continue;
        if (s->steps[need].state == BEGUN) return report_circle(s, need);
        s->steps[need].state = BEGUN;
        s->stack[s->depth++] = need;
    }
    return TARE_OK;
}

static tare_status sort(sorter *s) {
    const size_t count = s->g->n_node;
    s->steps = tare__arena_array(s->memory, count + 1, sizeof *s->steps);
    s->stack = tare__arena_array(s->memory, count + 1, sizeof *s->stack);
    s->sorted = tare__arena_array(s->memory, count + 1, sizeof *s->sorted);
    if (s->steps == NULL || s->stack == NULL || s->sorted == NULL)
        return tare__out_of_memory(s->err);
    TARE_TRY(find_makers(s));
    for (size_t i = 0; i < count; i++) TARE_TRY(find_needs(s, i));
    for (size_t i = 0; i < count; i++) TARE_TRY(visit(s, i));
    return TARE_OK;
}

tare_status tare__onnx_order(const Onnx__GraphProto *g, const map *outer, arena *memory,
                             const Onnx__NodeProto ***out, tare_error *err) {
    sorter s = {.g = g, .outer = outer, .memory = memory, .err = err};
    const tare_status status = sort(&s);
    tare__map_release(&s.makers);
    if (status == TARE_OK) *out = s.sorted;
    return status;
}
