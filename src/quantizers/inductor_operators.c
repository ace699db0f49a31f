// SPDX-License-Identifier: Apache-2.0
// X86InductorQuantizer: products, and operators that are quantized if their input is.
#include <string.h>

#include "ops/op.h"
#include "quantizers/inductor.h"

// Operators that compute integers from integers.
static const op_overload hands_on[] = {
    OVERLOAD(MAX_POOL2D, "default"), OVERLOAD(CAT, "default"),
    OVERLOAD(AVG_POOL2D, "default"), OVERLOAD(ADAPTIVE_AVG_POOL2D, "default"),
    OVERLOAD(FLATTEN, "using_ints"), OVERLOADS_END};

// Skips nodes with integer operands, such as computed positions: torchao annotates them, and the
// observers fail.
static tare_status annotate_operands(const inductor_level *l, node *n) {
    tare_annotation *annotation = NULL;
    for (size_t i = 0; i < n->input_count; i++)
        if (!tare__can_be_observed(l->a, n->inputs[i])) return TARE_OK;
    TARE_TRY(tare__inductor_plain(l, n, true, &annotation));
    for (size_t i = 0; i < n->arg_count; i++) {
        const node *operand = tare__node_arg(n, i);
        if (operand != NULL)
            TARE_TRY(tare__annotate_edge(l->a, annotation, operand, l->specs.input));
    }
    return TARE_OK;
}

tare_status tare__inductor_matmul(const inductor_level *l) {
    for (node *n = l->a->g->first; n != NULL; n = n->next) {
        bool takes = false;
        if (!tare__calls_overload(n, TARE_OP_MATMUL, "default")) continue;
        TARE_TRY(tare__inductor_takes(l, &n, 1, &takes));
        if (!takes) continue;
        TARE_TRY(l->setting->is_none ? tare__inductor_leave_float(l, &n, 1)
                                     : annotate_operands(l, n));
    }
    return TARE_OK;
}

static bool have_one_shape(const annotating *a, const node *n) {
    const node *x = tare__node_arg(n, 0), *y = tare__node_arg(n, 1);
    const tare_value_info *p = x != NULL ? tare__node_tensor_info(&a->sources, x) : NULL;
    const tare_value_info *q = y != NULL ? tare__node_tensor_info(&a->sources, y) : NULL;
    if (n->arg_count != 2 || p == NULL || q == NULL || p->rank != q->rank) return false;
    return p->rank == 0 || memcmp(p->shape, q->shape, p->rank * sizeof *p->shape) == 0;
}

tare_status tare__inductor_mul(const inductor_level *l) {
    for (node *n = l->a->g->first; n != NULL; n = n->next) {
        bool takes = false;
        if (!tare__calls_overload(n, TARE_OP_MUL, "Tensor")) continue;
        TARE_TRY(tare__inductor_takes(l, &n, 1, &takes));
        if (!takes) continue;
        if (l->setting->is_none)
            TARE_TRY(tare__inductor_leave_float(l, &n, 1));
        else if (have_one_shape(l->a, n))
            TARE_TRY(annotate_operands(l, n));
    }
    return TARE_OK;
}

// --- propagation ---

static bool gives_quantized(const annotating *a, const node *n) {
    return n->id < a->sources.count && a->gives_quantized[n->id] && tare__is_marked(a, n);
}

// The first input gets the config's input spec; the other inputs share its observer.
static tare_status annotate_inputs(const inductor_level *l, node *n, size_t count) {
    tare_annotation *annotation = NULL;
    tare_qspec *shared = NULL;
    TARE_TRY(tare__inductor_plain(l, n, true, &annotation));
    TARE_TRY(tare__annotate_edge(l->a, annotation, n->inputs[0], l->specs.input));
    TARE_TRY(tare__share_with(l->a, n->inputs[0], n, &shared));
    tare_status status = TARE_OK;
    for (size_t i = 1; i < count && status == TARE_OK; i++)
        status = tare__annotate_edge(l->a, annotation, n->inputs[i], shared);
    tare_qspec_release(shared);
    return status;
}

// True for a flatten that no quantizable operator reads; quantizing it would not pay.
static bool leads_nowhere(const inductor_level *l, const node *n) {
    if (!tare__calls_overload(n, TARE_OP_FLATTEN, "using_ints") || n->user_count == 0) return false;
    for (size_t u = 0; u < n->user_count; u++)
        if (tare__calls(n->users[u], l->recipe->operators)) return false;
    return true;
}

static tare_status propagate_to(const inductor_level *l, node *n) {
    bool takes = false;
    TARE_TRY(tare__inductor_takes(l, &n, 1, &takes));
    if (!takes || n->input_count == 0) return TARE_OK;
    if (l->setting->is_none) return tare__inductor_leave_float(l, &n, 1);
    if (leads_nowhere(l, n) ||
        (!l->recipe->has_max_pool && tare__calls_overload(n, TARE_OP_MAX_POOL2D, "default")))
        return TARE_OK;
    const size_t count = tare__calls_overload(n, TARE_OP_CAT, "default") ? n->input_count : 1;
    for (size_t i = 0; i < count; i++)
        if (!gives_quantized(l->a, n->inputs[i])) return TARE_OK;
    return annotate_inputs(l, n, count);
}

tare_status tare__inductor_propagate(const inductor_level *l) {
    for (node *n = l->a->g->first; n != NULL; n = n->next)
        if (tare__calls_one_of(n, hands_on)) TARE_TRY(propagate_to(l, n));
    return TARE_OK;
}

tare_status tare__inductor_outputs(annotating *a, const inductor_recipe *recipe) {
    for (node *n = a->g->first; n != NULL; n = n->next) {
        if (!tare__calls_one_of(n, hands_on) || !gives_quantized(a, n)) continue;
        if (!recipe->has_max_pool && tare__calls_overload(n, TARE_OP_MAX_POOL2D, "default"))
            continue;
        tare_qspec *shared = NULL;
        TARE_TRY(tare__share_with(a, n->inputs[0], n, &shared));
        tare__annotation_set_output(tare__annotation_find(&a->model->annotations, n->name), shared);
        tare_qspec_release(shared);
    }
    return TARE_OK;
}
