// SPDX-License-Identifier: Apache-2.0
// XNNPACKQuantizer: operators without weights, and operators that share their input's observer.
#include <string.h>

#include "core/tensor/tensor.h"
#include "quantizers/xnnpack.h"

const op_overload tare__add_calls[] = {OVERLOAD(ADD, "Tensor"), IN_PLACE_OVERLOAD(ADD, "Tensor"),
                                       OVERLOADS_END};
const op_overload tare__mul_calls[] = {OVERLOAD(MUL, "Tensor"), IN_PLACE_OVERLOAD(MUL, "Tensor"),
                                       OVERLOADS_END};
const op_overload tare__pool_calls[] = {OVERLOAD(ADAPTIVE_AVG_POOL2D, "default"), OVERLOADS_END};
const op_overload tare__cat_calls[] = {OVERLOAD(CAT, "default"), OVERLOADS_END};

// --- add and mul ---

static bool is_observable(const annotating *a, const node *n) {
    const tare_value_info *info = tare__node_tensor_info(&a->sources, n);
    return info != NULL && info->dtype == TARE_FLOAT32 && !tare__is_large_scalar(a, n);
}

static tare_status annotate_binary(const xnnpack_level *l, node *binary, node *last) {
    node *const nodes[] = {binary, last};
    tare_annotation *annotation = NULL;
    if (!tare__xnnpack_is_free(l, nodes, 2)) return TARE_OK;
    for (size_t i = 0; i < 2; i++) {
        const node *operand = tare__node_arg(binary, i);
        if (operand != NULL && !is_observable(l->a, operand)) return TARE_OK;
    }
    TARE_TRY(tare__annotate_anew(l->a, binary, &annotation));
    for (size_t i = 0; i < 2; i++) {
        const node *operand = tare__node_arg(binary, i);
        if (operand != NULL)
            TARE_TRY(tare__annotate_edge(l->a, annotation, operand, l->specs.input));
    }
    if (last != binary) TARE_TRY(tare__annotate_anew(l->a, last, &annotation));
    tare__annotation_set_output(annotation, l->specs.output);
    return TARE_OK;
}

tare_status tare__xnnpack_binary(const xnnpack_level *l, const xnnpack_annotator *row) {
    return tare__xnnpack_each(l, row, annotate_binary);
}

// --- operators found by their source ---

typedef tare_status (*partition_visitor)(const xnnpack_level *l, const partition *p);

static tare_status each_partition(const xnnpack_level *l, const char *const *wanted, size_t count,
                                  partition_visitor visit) {
    partition_list list;
    TARE_TRY(tare__source_partitions(l->a->g, &l->a->sources, wanted, count, &l->filter,
                                     &l->a->memory, &list, l->a->err));
    for (size_t i = 0; i < list.count; i++)
        if (list.items[i].outputs.count > 0) TARE_TRY(visit(l, &list.items[i]));
    return TARE_OK;
}

// Sets a shared spec for the edge from `input` (unless NULL), and for the output if is_output_too.
static tare_status set_shared(const xnnpack_level *l, tare_annotation *annotation,
                              const node *input, const node *from, const node *n,
                              bool is_output_too) {
    tare_qspec *shared = NULL;
    TARE_TRY(tare__share_with(l->a, from, n, &shared));
    tare_status status = TARE_OK;
    if (input != NULL) status = tare__annotate_edge(l->a, annotation, input, shared);
    if (is_output_too) tare__annotation_set_output(annotation, shared);
    tare_qspec_release(shared);
    return status;
}

static tare_status annotate_pool(const xnnpack_level *l, const partition *p) {
    const node *pool = p->outputs.items[0];
    const node *input = tare__node_arg(pool, 0);
    if (!tare__calls_one_of(pool, tare__pool_calls) || input == NULL)
        return tare__fail(l->a->err, TARE_INVALID_ARGUMENT,
                          "%s is not an aten adaptive_avg_pool2d operator", pool->name);
    if (tare__is_marked(l->a, pool)) return TARE_OK;
    const tare_annotation *before = tare__annotation_find(&l->a->model->annotations, input->name);
    const bool is_observed = before != NULL && before->is_marked && before->output != NULL;
    tare_annotation *annotation = NULL;
    TARE_TRY(tare__annotate_anew(l->a, pool, &annotation));
    if (is_observed)
        TARE_TRY(set_shared(l, annotation, input, NULL, input, false));
    else
        TARE_TRY(tare__annotate_edge(l->a, annotation, input, l->specs.input));
    return set_shared(l, annotation, NULL, input, pool, true);
}

tare_status tare__xnnpack_adaptive_avg_pool2d(const xnnpack_level *l,
                                              const xnnpack_annotator *row) {
    (void)row;
    const op_name function = tare__op_function_name(tare__op_row(TARE_OP_ADAPTIVE_AVG_POOL2D));
    const char *const wanted[] = {"torch.nn.AdaptiveAvgPool2d", function.text};
    return each_partition(l, wanted, 2, annotate_pool);
}

static tare_status annotate_cat(const xnnpack_level *l, const partition *p) {
    const node *cat = p->outputs.items[0];
    if (tare__is_marked(l->a, cat)) return TARE_OK;
    if (!tare__calls_one_of(cat, tare__cat_calls) || cat->input_count == 0)
        return tare__fail(l->a->err, TARE_INVALID_ARGUMENT,
                          "Expected cat node: %s, but found %s please "
                          "check if you are calling the correct capture API",
                          tare__overload_name(tare__cat_calls[0]).text, cat->target);
    for (size_t i = 0; i < cat->input_count; i++)
        if (!tare__can_be_observed(l->a, cat->inputs[i])) return TARE_OK;
    tare_annotation *annotation = NULL;
    TARE_TRY(tare__annotate_anew(l->a, cat, &annotation));
    TARE_TRY(tare__annotate_edge(l->a, annotation, cat->inputs[0], l->specs.input));
    for (size_t i = 1; i < cat->input_count; i++)
        TARE_TRY(set_shared(l, annotation, cat->inputs[i], cat->inputs[0], cat, false));
    return set_shared(l, annotation, NULL, cat->inputs[0], cat, true);
}

tare_status tare__xnnpack_cat(const xnnpack_level *l, const xnnpack_annotator *row) {
    (void)row;
    const op_name function = tare__op_function_name(tare__op_row(TARE_OP_CAT));
    const char *const wanted[] = {function.text};
    return each_partition(l, wanted, 1, annotate_cat);
}

static tare_status annotate_first_reader(const xnnpack_level *l, const node *input) {
    tare_annotation *annotation = NULL;
    const node *reader = input->users[0];
    TARE_TRY(tare__annotate_anew(l->a, reader, &annotation));
    return tare__annotate_edge(l->a, annotation, input, l->specs.input);
}

// Annotates only inputs and outputs of a GRU. If the GRU is one node, both inputs have the same
// first user, and the second annotation replaces the first, as in torchao. A zero initial state is
// not an input, and an unused state not an output.
static tare_status annotate_gru(const xnnpack_level *l, const partition *p) {
    enum { MOST = 2 }; // the sequence, and the state
    if (tare__is_any_marked(l->a, p->inputs.items, p->inputs.count) ||
        tare__is_any_marked(l->a, p->outputs.items, p->outputs.count))
        return TARE_OK;
    for (size_t i = 0; i < p->inputs.count && i < MOST; i++)
        TARE_TRY(annotate_first_reader(l, p->inputs.items[i]));
    for (size_t i = 0; i < p->outputs.count && i < MOST; i++) {
        tare_annotation *annotation = NULL;
        TARE_TRY(tare__annotate_anew(l->a, p->outputs.items[i], &annotation));
        tare__annotation_set_output(annotation, l->specs.output);
    }
    for (size_t i = 0; i < p->nodes.count; i++) TARE_TRY(tare__mark(l->a, p->nodes.items[i]));
    return TARE_OK;
}

tare_status tare__xnnpack_gru_io_only(const xnnpack_level *l, const xnnpack_annotator *row) {
    (void)row;
    static const char *const wanted[] = {"torch.nn.GRU"};
    return each_partition(l, wanted, 1, annotate_gru);
}

// --- propagation ---

static const op_overload keeps_observer[] = {OVERLOAD(RELU, "default"),
                                             OVERLOAD(HARDTANH, "default"),
                                             IN_PLACE_OVERLOAD(HARDTANH, "default"),
                                             OVERLOAD(MAX_POOL2D, "default"),
                                             OVERLOAD(MEAN, "default"),
                                             OVERLOAD(MEAN, "dim"),
                                             OVERLOAD(PERMUTE, "default"),
                                             OVERLOAD(SQUEEZE, "dim"),
                                             OVERLOAD(ADAPTIVE_AVG_POOL2D, "default"),
                                             OVERLOAD(VIEW, "default"),
                                             OVERLOAD(FLATTEN, "using_ints"),
                                             OVERLOADS_END};
// True for functionalized views, which are not in the operator table.
static bool is_copy_of_view(const node *n) {
    static const char *const names[] = {"permute_copy.default", "squeeze_copy.dim",
                                        "view_copy.default", "slice_copy.Tensor"};
    const char *name = n->op == NODE_CALL_FUNCTION ? tare__aten_name(n->target) : NULL;
    for (size_t i = 0; name != NULL && i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

static tare_status propagate_to(annotating *a, const node *n) {
    const node *input = tare__node_arg(n, 0);
    const tare_annotation *before =
        input != NULL ? tare__annotation_find(&a->model->annotations, input->name) : NULL;
    if (before == NULL || before->output == NULL || tare__is_marked(a, n)) return TARE_OK;
    tare_annotation *annotation = NULL;
    const xnnpack_level l = {.a = a};
    TARE_TRY(tare__annotate_anew(a, n, &annotation));
    return set_shared(&l, annotation, input, NULL, input, true);
}

tare_status tare__xnnpack_propagate(annotating *a) {
    for (const node *n = a->g->first; n != NULL; n = n->next)
        if (tare__calls_one_of(n, keeps_observer) || is_copy_of_view(n))
            TARE_TRY(propagate_to(a, n));
    return TARE_OK;
}
