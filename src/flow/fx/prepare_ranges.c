// SPDX-License-Identifier: Apache-2.0
// Prepare under tare's own mapping: leaves values float that one scale cannot represent. A norm
// divides each row by its own standard deviation, so that small rows of a quantized sum lose all
// precision; the -inf or -3.4e38 of a mask leaves no steps for the scores; a size that is rounded
// gives another shape; and the fixed range of tanh has few steps for small results, which only pays
// where integers read them. torch quantizes all of them.
#include <stdio.h>
#include <string.h>

#include "config/qconfig.h"
#include "flow/function_call.h"
#include "flow/fx/prepare.h"
#include "ops/op.h"

// Smaller numbers occur in masks, but not in networks' values.
static const double mask_limit = -1e4;

typedef struct range_walk {
    prepare_pass *pass;
    const node **norms; // by id: the norm that reads the value; NULL: none
    bool *is_mask;      // by id: contains numbers of a mask
    bool *is_of_sizes;  // by id: computed from sizes and integers alone
    bool *is_kept;      // by id: stays float because of a norm
    bool *is_result;    // by id: read by nothing but the graph's output
} range_walk;

static op_id op_of(const prepare_pass *p, const node *n) {
    return tare__op_id(tare__called_row(p->base->model, n));
}

static bool passes_on(const prepare_pass *p, const node *n) {
    return tare__passes_on(tare__called_row(p->base->model, n));
}

// --- what norms read ---

// Combines rows of different magnitudes; an average has a narrower range than its input.
static bool joins_rows(const prepare_pass *p, const node *n) {
    const op_id op = op_of(p, n);
    return op == TARE_OP_ADD || op == TARE_OP_CAT || tare__prepare_averages(p, n);
}

static const node *find_norm(const range_walk *w, const node *n) {
    const node *found = NULL;
    for (size_t i = 0; i < n->user_count && found == NULL; i++) {
        const node *user = n->users[i];
        if (tare__op_has(tare__called_row(w->pass->base->model, user), OP_NORMALIZES))
            found = user;
        else if (joins_rows(w->pass, user) || passes_on(w->pass, user))
            found = w->norms[user->id];
    }
    return found;
}

// --- masks ---

static bool is_mask_number(const value *v) {
    double number;
    return tare__value_number(v, &number) && number <= mask_limit;
}

static bool is_mask_tensor(const prepare_pass *p, const node *n) {
    const tare_tensor *t = tare__module_find_tensor(p->base->model->root, n->target);
    if (t == NULL || !tare__dtype(t->dtype)->is_float) return false;
    for (int64_t i = 0; i < t->count; i++)
        if (tare__tensor_get(t, i) <= mask_limit) return true;
    return false;
}

// Operators that write a mask's number, and those that pass masks on.
static bool makes_masks(op_id op) {
    return op == TARE_OP_MASKED_FILL || op == TARE_OP_WHERE || op == TARE_OP_MUL ||
           op == TARE_OP_FULL || op == TARE_OP_FULL_LIKE;
}

static bool keeps_masks(const range_walk *w, const node *n, op_id op) {
    return makes_masks(op) || op == TARE_OP_ADD || op == TARE_OP_SUB || op == TARE_OP_TO ||
           passes_on(w->pass, n);
}

static bool reads_mask(const range_walk *w, const node *n) {
    for (size_t i = 0; i < n->input_count; i++)
        if (w->is_mask[n->inputs[i]->id]) return true;
    return false;
}

static bool writes_mask_number(const node *n) {
    for (size_t i = 0; i < n->arg_count; i++)
        if (is_mask_number(&n->args[i])) return true;
    for (size_t i = 0; i < n->kwarg_count; i++)
        if (is_mask_number(&n->kwargs[i].value)) return true;
    return false;
}

static bool gives_mask(const range_walk *w, const node *n) {
    if (n->op == NODE_GET_ATTR) return is_mask_tensor(w->pass, n);
    const op_id op = op_of(w->pass, n);
    if (makes_masks(op) && writes_mask_number(n)) return true;
    return keeps_masks(w, n, op) && reads_mask(w, n);
}

// --- sizes ---

// Constant integers, sizes of tensors, and what is computed from nothing else: lengths, positions.
static bool is_of_sizes(const range_walk *w, const node *n) {
    const prepare_pass *p = w->pass;
    if (n->op == NODE_GET_ATTR) {
        const tare_tensor *t = tare__module_find_tensor(p->base->model->root, n->target);
        return t != NULL && !tare__dtype(t->dtype)->is_float;
    }
    if (n->op != NODE_CALL_FUNCTION && n->op != NODE_CALL_METHOD) return false;
    if (tare__op_has(tare__called_row(p->base->model, n), OP_NOT_ON_TENSORS) &&
        !tare__op_has(tare__called_row(p->base->model, n), OP_SHAPED_BY_DATA))
        return true;
    for (size_t i = 0; i < n->input_count; i++)
        if (!w->is_of_sizes[n->inputs[i]->id]) return false;
    return n->input_count > 0;
}

// --- results ---

// Its value leaves the graph, possibly through operators that return it unchanged, and nothing else
// reads it.
static bool is_result(const range_walk *w, const node *n) {
    for (size_t i = 0; i < n->user_count; i++) {
        const node *user = n->users[i];
        if (user->op != NODE_OUTPUT && !(passes_on(w->pass, user) && w->is_result[user->id]))
            return false;
    }
    return n->user_count > 0 && w->pass->custom->output_quantized.count == 0;
}

// A result whose qconfig fixes its range is as exact as the operator's input if it stays float.
static tare_status is_fixed_result(const range_walk *w, const node *n, bool *out) {
    const prepare_node *entry = tare__prepare_node(w->pass, n);
    tare_observer_info info;
    *out = false;
    if (!w->is_result[n->id] || entry->match->nodes.count != 1) return TARE_OK;
    TARE_TRY(tare__pass_spec_info(w->pass->base, entry->qconfig.qconfig->activation, &info));
    *out = info.has_fixed_qparams;
    return TARE_OK;
}

// --- what stays float ---

// A selector that the user wrote takes precedence.
static bool is_by_default(const prepare_node *entry) {
    const char *section = entry->qconfig.section;
    return entry->match != NULL && entry->match->config != NULL && entry->qconfig.qconfig != NULL &&
           section != NULL &&
           (strcmp(section, "global") == 0 || strcmp(section, "object_type") == 0);
}

static tare_status keep_float(prepare_pass *p, const node *n, const char *rule, const char *format,
                              const char *name) {
    prepare_node *entry = tare__prepare_node(p, n);
    entry->qconfig.qconfig = NULL;
    entry->stays_float = rule;
    char reason[256];
    (void)snprintf(reason, sizeof reason, format, name);
    return TARE_DECIDE(p->base, n, "left float", rule, "%s", reason);
}

static tare_status keep_node(const range_walk *w, const node *n) {
    prepare_pass *p = w->pass;
    if (!tare__node_is_call(n) || !is_by_default(tare__prepare_node(p, n))) return TARE_OK;
    if (w->is_mask[n->id] || reads_mask(w, n))
        return keep_float(
            p, n, "masks",
            "%s the numbers of a mask, whose range makes the scale too large for other values",
            w->is_mask[n->id] ? "it holds" : "it reads");
    if (w->is_of_sizes[n->id])
        return keep_float(p, n, "sizes", "%s",
                          "it is computed from sizes and integers, and has to be exact");
    bool is_fixed = false;
    TARE_TRY(is_fixed_result(w, n, &is_fixed));
    if (is_fixed)
        return keep_float(p, n, "results", "%s",
                          "its result is the model's: the fixed range of a quantized one would "
                          "only make it less exact");
    const node *norm = w->norms[n->id];
    const node *input = tare__node_arg(n, 0);
    const bool follows = passes_on(p, n) && input != NULL && w->is_kept[input->id];
    if (norm == NULL || (!joins_rows(p, n) && !follows)) return TARE_OK;
    w->is_kept[n->id] = true;
    return keep_float(p, n, "norms",
                      "'%s' normalizes each row, and a single scale cannot represent small rows "
                      "beside large ones",
                      norm->name);
}

tare_status tare__prepare_keep_ranges(prepare_pass *p) {
    const graph *g = p->base->model->root->graph;
    range_walk w = {.pass = p};
    if (!tare__qconfig_mapping_is_own(p->mapping)) return TARE_OK;
    w.norms = tare__arena_array(&p->base->scratch, g->next_id + 1, sizeof *w.norms);
    w.is_mask = tare__arena_array(&p->base->scratch, g->next_id + 1, sizeof *w.is_mask);
    w.is_kept = tare__arena_array(&p->base->scratch, g->next_id + 1, sizeof *w.is_kept);
    w.is_of_sizes = tare__arena_array(&p->base->scratch, g->next_id + 1, sizeof *w.is_of_sizes);
    w.is_result = tare__arena_array(&p->base->scratch, g->next_id + 1, sizeof *w.is_result);
    if (w.norms == NULL || w.is_mask == NULL || w.is_kept == NULL || w.is_of_sizes == NULL ||
        w.is_result == NULL)
        return tare__out_of_memory(p->base->err);
    for (const node *n = g->last; n != NULL; n = n->prev) {
        w.norms[n->id] = find_norm(&w, n);
        w.is_result[n->id] = is_result(&w, n);
    }
    for (const node *n = g->first; n != NULL; n = n->next) w.is_mask[n->id] = gives_mask(&w, n);
    for (const node *n = g->first; n != NULL; n = n->next)
        w.is_of_sizes[n->id] = is_of_sizes(&w, n);
    tare_status status = TARE_OK;
    for (const node *n = g->first; n != NULL && status == TARE_OK; n = n->next)
        status = keep_node(&w, n);
    return status;
}
