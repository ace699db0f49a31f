// SPDX-License-Identifier: Apache-2.0
// Removes reshapes and permutes that cancel each other. ONNX's recurrent operators order their
// outputs differently from torch's, so exporters undo what the import adds.
#include <string.h>

#include "io/onnx/raise/raise.h"

static const tare_tensor *tensor_of(const value *meta) {
    return meta->kind == VALUE_TENSOR ? meta->as.tensor : NULL;
}

// Reads the permutation of dimensions that n applies; false if it does something else.
static bool read_order(onnx_import *in, const node *n, int *ndim, int *order) {
    const tare_tensor *y = tensor_of(&tare__onnx_info(in, n)->meta);
    const bool swaps = tare__raise_is(n, "transpose"), permutes = tare__raise_is(n, "permute");
    if (y == NULL || n->kwarg_count > 0 || (!swaps && !permutes)) return false;
    *ndim = y->ndim;
    if (n->arg_count != (swaps ? 3 : (size_t)y->ndim + 1)) return false;
    for (int d = 0; d < y->ndim; d++) order[d] = d;
    for (size_t i = 1; i < n->arg_count; i++) {
        const value *v = &n->args[i];
        const int64_t at = v->as.integer < 0 ? v->as.integer + y->ndim : v->as.integer;
        if (v->kind != VALUE_INT || at < 0 || at >= y->ndim) return false;
        if (permutes) order[i - 1] = (int)at;
        if (swaps && i == 1) order[0] = (int)at; // set when the other one is known
        if (swaps && i == 2) {
            const int first = order[0];
            order[0] = 0;
            order[first] = (int)at;
            order[at] = first;
        }
    }
    return true;
}

// True if n keeps the order of elements. Dimensions of size 1 may move.
static bool keeps_order(onnx_import *in, const node *n) {
    static const char *const views[] = {"view", "reshape", "squeeze", "unsqueeze", "flatten"};
    int ndim, order[TARE_MAX_DIMS], last = -1;
    for (size_t i = 0; i < sizeof views / sizeof *views; i++)
        if (tare__raise_is(n, views[i])) return true;
    if (!read_order(in, n, &ndim, order)) return false;
    const tare_tensor *y = tensor_of(&tare__onnx_info(in, n)->meta);
    for (int d = 0; d < ndim; d++) {
        if (y->shape[d] == 1) continue;
        if (order[d] < last) return false;
        last = order[d];
    }
    return true;
}

static bool same_shape(const value *a, const value *b) {
    const tare_tensor *s = tensor_of(a), *t = tensor_of(b);
    return s != NULL && t != NULL && tare__same_shape(s, t);
}

// Compares the results for both batch sizes.
static bool same_results(onnx_import *in, const node *a, const node *b) {
    const draft_info *s = tare__onnx_info(in, a), *t = tare__onnx_info(in, b);
    return same_shape(&s->meta, &t->meta) && same_shape(&s->other, &t->other);
}

// Views within one module were written by an exporter; elsewhere the user wrote them.
static bool in_one_module(onnx_import *in, const node *a, const node *b) {
    const onnx_scope *s = tare__onnx_info(in, a)->scope, *t = tare__onnx_info(in, b)->scope;
    if (s == NULL || t == NULL) return s == t;
    if (!s->is_known || !t->is_known) return s->is_known == t->is_known;
    return *s->raw != '\0' && strcmp(s->raw, t->raw) == 0;
}

// The first node of a chain of views whose last result has the shape of the first one's input.
static node *begins_alike(onnx_import *in, node *n) {
    node *found = NULL, *at = n;
    for (int length = 0; in_one_module(in, n, at) && keeps_order(in, at); length++) {
        at = tare__node_arg(at, 0);
        if (at == NULL) break;
        if (length > 0 && same_results(in, n, at)) found = at;
    }
    return found;
}

static node *turned_twice(onnx_import *in, node *n) {
    int ndim, inner_ndim, outer[TARE_MAX_DIMS], inner[TARE_MAX_DIMS];
    node *m = tare__node_arg(n, 0);
    if (m == NULL || !in_one_module(in, n, m) || !read_order(in, n, &ndim, outer) ||
        !read_order(in, m, &inner_ndim, inner) || ndim != inner_ndim)
        return NULL;
    for (int d = 0; d < ndim; d++)
        if (inner[outer[d]] != d) return NULL;
    return tare__node_arg(m, 0);
}

tare_status tare__raise_views(onnx_import *in) {
    for (node *n = in->draft->first; n != NULL; n = n->next) {
        if (n->op != NODE_CALL_FUNCTION && n->op != NODE_CALL_METHOD) continue;
        node *source = turned_twice(in, n);
        if (source == NULL) source = begins_alike(in, n);
        if (source != NULL) TARE_TRY(tare__node_replace_uses(n, source, NULL, in->err));
    }
    return TARE_OK;
}
