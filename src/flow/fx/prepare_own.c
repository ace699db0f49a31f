// SPDX-License-Identifier: Apache-2.0
// Prepare under tare's own mapping: observes outputs for which torch uses the observer of their
// input although the range differs. torch gives relu6 the scale of the preceding layer, which
// wastes steps on values that are clipped, and an average the scale of its input, which is several
// times too wide.
#include "config/qconfig.h"
#include "flow/function_call.h"
#include "flow/fx/prepare.h"
#include "ops/op.h"

enum { MANY_VALUES = 16 }; // in a window, above which an average has its own range

// --- bounds ---

// True if it will share the observer of its only input.
static bool is_sharing(const prepare_pass *p, const node *n) {
    const prepare_node *entry = tare__prepare_node(p, n);
    return entry != NULL && entry->match != NULL && entry->match->root == n &&
           entry->match->last == n && entry->info.shares && entry->stays_float == NULL &&
           entry->qconfig.qconfig != NULL && n->input_count == 1;
}

// The bound behind operators that return n's value unchanged, each with a single user.
static const node *find_bound(const prepare_pass *p, const node *n) {
    while (n->user_count == 1) {
        n = n->users[0];
        if (!is_sharing(p, n)) return NULL;
        if (tare__op_has(tare__called_row(p->base->model, n), OP_BOUNDS)) return n;
        if (!tare__passes_on(tare__called_row(p->base->model, n))) return NULL;
    }
    return NULL;
}

// True if its output will have an observer of its own.
static bool observes_itself(const prepare_pass *p, const node *n) {
    const prepare_node *entry = tare__prepare_node(p, n);
    return entry != NULL && entry->is_observed && entry->match != NULL && entry->match->last == n &&
           entry->match->standalone == NULL && !entry->info.shares && !entry->info.reuses_input;
}

const node *tare__prepare_bound_of(const prepare_pass *p, const node *n) {
    if (!tare__qconfig_mapping_is_own(p->mapping) || n == NULL) return NULL;
    const node *source = n;
    while (source != NULL && is_sharing(p, source) &&
           tare__passes_on(tare__called_row(p->base->model, source)))
        source = tare__node_arg(source, 0);
    return source != NULL && observes_itself(p, source) && find_bound(p, source) != NULL
               ? find_bound(p, n)
               : NULL;
}

// --- averages ---

// The number of values in a window given as an int or list; 0: it is computed.
static int64_t count_window(const value *size, int dims) {
    if (size == NULL) return 0;
    int64_t count = 1;
    const bool is_list = tare__value_has_items(size);
    for (int d = 0; d < dims; d++) {
        const value *v = !is_list ? size : (uint32_t)d < size->count ? &size->as.items[d] : NULL;
        if (v == NULL || v->kind != VALUE_INT || v->as.integer < 1 || v->as.integer > INT16_MAX)
            return 0;
        count *= v->as.integer;
    }
    return count;
}

static const value *kernel_size_of(const prepare_pass *p, const node *n) {
    const module *m = tare__called_module(p->base->model, n);
    if (m != NULL) return tare__module_config(m, "kernel_size");
    const value *given = tare__node_kwarg(n, "kernel_size");
    return given != NULL ? given : n->arg_count > 1 ? &n->args[1] : NULL;
}

bool tare__prepare_averages(const prepare_pass *p, const node *n) {
    if (!tare__qconfig_mapping_is_own(p->mapping)) return false;
    const op_id id = tare__op_id(tare__called_row(p->base->model, n));
    if (OP_IS_ANY(id, TARE_OP_MEAN, TARE_OP_ADAPTIVE_AVG_POOL1D, TARE_OP_ADAPTIVE_AVG_POOL2D,
                  TARE_OP_ADAPTIVE_AVG_POOL3D))
        return true;
    const int dims = id == TARE_OP_AVG_POOL1D   ? 1
                     : id == TARE_OP_AVG_POOL2D ? 2
                     : id == TARE_OP_AVG_POOL3D ? 3
                                                : 0;
    return dims > 0 && count_window(kernel_size_of(p, n), dims) >= MANY_VALUES;
}
