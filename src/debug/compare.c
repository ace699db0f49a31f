// SPDX-License-Identifier: Apache-2.0
// Compares two models value by value and accumulates the differences.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/memory/map.h"
#include "core/struct_size.h"
#include "debug/compare_ranges.h"
#include "model/coverage.h"
#include "model/nested/nested.h"
#include "model/pass.h"
#include "ops/quantized/decomposed.h"
#include "runtime/session/session.h"
#include "tare/debug.h"
#include "tare/record.h"
#include "tare/session.h"

// A node, of the model's graph or of one inside, which is called PATH/NODE (model/nested/nested.h).
typedef struct named_node {
    const node *node;
    const char *name;
    bool is_inner;
} named_node;

// A value of the reference that some row compares.
typedef struct kept_value {
    const char *name;
    tare_tensor **tensors; // float32, of the present run: one, or one for each round of a loop
    size_t count, capacity;
} kept_value;

typedef struct compared_row {
    int64_t handle;
    named_node reference, node;
    size_t kept;  // index of the reference's value
    size_t round; // that the model computes next
    int64_t element_count;
    double signal, reference_signal, noise, max_abs_error;
} compared_row;

struct tare_debug_comparison {
    const tare_model *reference, *model;
    tare_session *reference_session, *session;
    arena names; // of nodes inside
    bool by_handles, has_ranges;
    compared_ranges ranges;
    const tare_tensor *const *inputs; // of the present run
    size_t input_count;
    compared_row *rows;
    size_t row_count, row_capacity;
    kept_value *kept;
    size_t kept_count, kept_capacity;
    map kept_names, row_names; // node name -> index + 1
    map input_numbers;         // placeholder of the model -> index + 1
    map rescaled;              // nodes of the model whose values are multiples of the reference's
};

// --- nodes ---

typedef struct node_list {
    named_node *items;
    size_t count, capacity;
    map indices;  // name -> index + 1
    arena *names; // lent
} node_list;

static void release_list(node_list *l) {
    tare__free(l->items);
    tare__map_release(&l->indices);
}

static tare_status add_graph(node_list *l, const graph *g, const char *prefix, tare_error *err) {
    for (const node *n = g->first; n != NULL; n = n->next) {
        const bool is_inner = *prefix != '\0';
        const char *name =
            is_inner ? tare__arena_printf(l->names, "%s%s", prefix, n->name) : n->name;
        if (name == NULL ||
            !tare__grow((void **)&l->items, &l->capacity, l->count, sizeof *l->items) ||
            !tare__map_set(&l->indices, name, tare__map_int(l->count + 1)))
            return tare__out_of_memory(err);
        l->items[l->count++] = (named_node){n, name, is_inner};
    }
    return TARE_OK;
}

static tare_status add_inner(void *user, const tare_model *inner, const char *prefix,
                             tare_error *err) {
    return add_graph(user, inner->root->graph, prefix, err);
}

// Of the model's graph in order, then of the graphs inside.
static tare_status list_nodes(const tare_model *model, arena *names, node_list *out,
                              tare_error *err) {
    *out = (node_list){.names = names};
    TARE_TRY(add_graph(out, model->root->graph, "", err));
    return tare__nested_visit(model, add_inner, out, err);
}

static const named_node *find_node(const node_list *l, const char *name) {
    const size_t index = (size_t)tare__map_get(&l->indices, name);
    return index > 0 ? &l->items[index - 1] : NULL;
}

// --- what belongs together ---

static size_t index_of(const map *names, const char *name) {
    return (size_t)tare__map_get(names, name);
}

// The name of another node of the same graph.
static const char *name_beside(tare_debug_comparison *c, const named_node *n, const node *other) {
    const size_t prefix = strlen(n->name) - strlen(n->node->name);
    if (!n->is_inner) return other->name;
    return tare__arena_printf(&c->names, "%.*s%s", (int)prefix, n->name, other->name);
}

static tare_status keep_reference(tare_debug_comparison *c, const char *name, size_t *out,
                                  tare_error *err) {
    if (name == NULL) return tare__out_of_memory(err);
    *out = index_of(&c->kept_names, name);
    if (*out != 0) return TARE_OK;
    if (!tare__grow((void **)&c->kept, &c->kept_capacity, c->kept_count, sizeof *c->kept) ||
        !tare__map_set(&c->kept_names, name, tare__map_int(c->kept_count + 1)))
        return tare__out_of_memory(err);
    c->kept[c->kept_count++] = (kept_value){.name = name};
    *out = c->kept_count;
    return TARE_OK;
}

static const node *converting_reader(const node *n) {
    for (size_t i = 0; i < n->user_count; i++)
        if (tare__coverage_is_conversion(n->users[i])) return n->users[i];
    return NULL;
}

static bool is_only_quantized(const node *n) {
    for (size_t i = 0; i < n->user_count; i++)
        if (!tare__coverage_is_quantize(n->users[i])) return false;
    return n->user_count > 0;
}

// The node with n's value, if the reference quantizes the result of `reference`: an integer layer
// has quantized results, and includes clamps.
static const node *value_node(const node *reference, const node *n) {
    const node *reader = converting_reader(n);
    const bool is_quantized_later = reader != NULL && tare__coverage_is_quantize(reader);
    if (!is_only_quantized(reference) || is_quantized_later) return reference;
    const node *quantize = reference->users[0];
    if (!tare__gives_bare_integers(quantize)) return quantize;
    const node *dequantize = converting_reader(quantize);
    return dequantize != NULL ? dequantize : reference;
}

static tare_status add_row(tare_debug_comparison *c, int64_t handle, const named_node *reference,
                           const named_node *n, tare_error *err) {
    size_t kept = 0;
    if (tare__map_get(&c->rescaled, n->name) != NULL) return TARE_OK;
    const node *made = value_node(reference->node, n->node);
    TARE_TRY(keep_reference(c, name_beside(c, reference, made), &kept, err));
    if (!tare__grow((void **)&c->rows, &c->row_capacity, c->row_count, sizeof *c->rows) ||
        !tare__map_set(&c->row_names, n->name, tare__map_int(c->row_count + 1)))
        return tare__out_of_memory(err);
    c->rows[c->row_count++] =
        (compared_row){.handle = handle, .reference = *reference, .node = *n, .kept = kept - 1};
    return TARE_OK;
}

// The last node of a model with a handle.
typedef struct handled_node {
    int64_t handle;
    size_t position; // in the list
    const named_node *node;
} handled_node;

static int by_handle(const void *a, const void *b) {
    const handled_node *x = a, *y = b;
    if (x->handle != y->handle) return (x->handle > y->handle) - (x->handle < y->handle);
    return (x->position > y->position) - (x->position < y->position);
}

static int by_position(const void *a, const void *b) {
    const handled_node *x = a, *y = b;
    return (x->position > y->position) - (x->position < y->position);
}

static int compare_handles(const void *a, const void *b) {
    const handled_node *x = a, *y = b;
    return (x->handle > y->handle) - (x->handle < y->handle);
}

// By handle. The caller frees *out.
static tare_status list_handled(const node_list *nodes, handled_node **out, size_t *count,
                                tare_error *err) {
    size_t all = 0;
    handled_node *list = tare__alloc_zeroed(nodes->count + 1, sizeof *list);
    if (list == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < nodes->count; i++) {
        const node *n = nodes->items[i].node;
        if (n->debug_handle != 0 && !tare__gives_bare_integers(n))
            list[all++] = (handled_node){n->debug_handle, i, &nodes->items[i]};
    }
    qsort(list, all, sizeof *list, by_handle);
    *count = 0;
    for (size_t i = 0; i < all; i++)
        if (i + 1 == all || list[i + 1].handle != list[i].handle) list[(*count)++] = list[i];
    *out = list;
    return TARE_OK;
}

static tare_status match_nodes(tare_debug_comparison *c, const handled_node *references,
                               size_t reference_count, const handled_node *nodes, size_t count,
                               tare_error *err) {
    for (size_t i = 0; i < count; i++) {
        const handled_node *reference =
            bsearch(&nodes[i], references, reference_count, sizeof *references, compare_handles);
        if (reference != NULL)
            TARE_TRY(add_row(c, nodes[i].handle, reference->node, nodes[i].node, err));
    }
    return TARE_OK;
}

// Rows are in the order of the model's nodes.
static tare_status match_by_handles(tare_debug_comparison *c, const node_list *of_reference,
                                    const node_list *of_model, tare_error *err) {
    handled_node *references = NULL, *nodes = NULL;
    size_t reference_count = 0, count = 0;
    tare_status status = list_handled(of_reference, &references, &reference_count, err);
    if (status == TARE_OK) status = list_handled(of_model, &nodes, &count, err);
    if (status == TARE_OK) {
        qsort(nodes, count, sizeof *nodes, by_position);
        status = match_nodes(c, references, reference_count, nodes, count, err);
    }
    tare__free(references);
    tare__free(nodes);
    return status;
}

static tare_status match_by_origin(tare_debug_comparison *c, const node_list *of_reference,
                                   const node_list *of_model, tare_error *err) {
    for (size_t i = 0; i < of_model->count; i++) {
        const named_node *n = &of_model->items[i];
        const char *origin = tare__float_node_of(c->model, n->node);
        if (origin == n->node->name) origin = n->name;
        const named_node *reference = origin != NULL ? find_node(of_reference, origin) : NULL;
        if (reference != NULL) TARE_TRY(add_row(c, 0, reference, n, err));
    }
    return TARE_OK;
}

// True if the operator is in the reference, or in the model that the reference was made from. The
// name of one inside has its graph's path, which says more than a name.
static bool is_in_reference(const tare_model *reference, const node_list *nodes,
                            const traced_op *op) {
    const traced_op *known = tare__traced_op(reference, op->name);
    if (known != NULL) return strcmp(known->subject, op->subject) == 0;
    const named_node *n = find_node(nodes, op->name);
    return n != NULL &&
           (n->is_inner || strcmp(tare__node_subject(reference, n->node), op->subject) == 0);
}

// A model records the operators that it was made from. Names alone prove little: every network has
// a "linear", and handles are numbers.
static tare_status check_related(const tare_debug_comparison *c, const node_list *nodes,
                                 tare_error *err) {
    const tare_model *m = c->model;
    size_t found = 0;
    for (size_t i = 0; i < m->op_count; i++)
        found += is_in_reference(c->reference, nodes, &m->ops[i]);
    if (c->row_count > 0 && 2 * found >= m->op_count) return TARE_OK;
    const tare_status status = tare__fail(err, TARE_INVALID_ARGUMENT,
                                          "the models are not related: of the %zu operators that "
                                          "the second was made from, the first has %zu",
                                          m->op_count, found);
    return tare__hint(err, status, "pass the model first, then the model that was made from it");
}

static tare_status match(tare_debug_comparison *c, const node_list *of_reference,
                         const node_list *of_model, tare_error *err) {
    TARE_TRY(c->by_handles ? match_by_handles(c, of_reference, of_model, err)
                           : match_by_origin(c, of_reference, of_model, err));
    return check_related(c, of_reference, err);
}

static tare_status match_models(tare_debug_comparison *c, tare_error *err) {
    node_list of_reference, of_model = {0};
    tare_status status = list_nodes(c->reference, &c->names, &of_reference, err);
    if (status == TARE_OK) status = list_nodes(c->model, &c->names, &of_model, err);
    if (status == TARE_OK) status = match(c, &of_reference, &of_model, err);
    release_list(&of_reference);
    release_list(&of_model);
    return status;
}

// --- running ---

static tare_status keep_value(void *user, const char *name, const tare_tensor *result,
                              tare_error *err) {
    tare_debug_comparison *c = user;
    const size_t index = index_of(&c->kept_names, name);
    if (index == 0 || result == NULL) return TARE_OK;
    kept_value *kept = &c->kept[index - 1];
    tare_tensor *made = NULL;
    if (!tare__grow((void **)&kept->tensors, &kept->capacity, kept->count, sizeof(tare_tensor *)))
        return tare__out_of_memory(err);
    TARE_TRY(tare_tensor_to_float(result, &made, err));
    kept->tensors[kept->count++] = made;
    return TARE_OK;
}

// The reference's value of a round; NULL: it has not computed one.
static const tare_tensor *value_of(const tare_debug_comparison *c, const compared_row *row,
                                   size_t round) {
    const kept_value *kept = &c->kept[row->kept];
    return round < kept->count ? kept->tensors[round] : NULL;
}

static void add(compared_row *row, const tare_tensor *reference, const tare_tensor *actual) {
    const float *y = reference->data, *x = actual->data;
    for (int64_t i = 0; i < actual->count; i++) {
        const double error = (double)x[i] - (double)y[i];
        row->signal += (double)x[i] * (double)x[i];
        row->reference_signal += (double)y[i] * (double)y[i];
        row->noise += error * error;
        if (fabs(error) > row->max_abs_error) row->max_abs_error = fabs(error);
    }
    row->element_count += actual->count;
}

static tare_status differ_in_shape(const compared_row *row, const tare_tensor *reference,
                                   const tare_tensor *actual, tare_error *err) {
    char expected[256], found[256], key[32] = "";
    tare__shape_text(reference->ndim, reference->shape, expected, sizeof expected);
    tare__shape_text(actual->ndim, actual->shape, found, sizeof found);
    if (row->handle != 0) snprintf(key, sizeof key, "%" PRId64, row->handle);
    return tare__fail(
        err, TARE_INVALID_ARGUMENT,
        "For debug_info=%s from ref node %s and actual node %s: Cannot compare tensors "
        "with different shapes: ref=%s vs actual=%s",
        row->handle != 0 ? key : row->reference.name, row->reference.name, row->node.name, expected,
        found);
}

static tare_status number_inputs(tare_debug_comparison *c, tare_error *err) {
    size_t index = 0;
    for (const node *n = c->model->root->graph->first; n != NULL; n = n->next)
        if (n->op == NODE_PLACEHOLDER &&
            !tare__map_set(&c->input_numbers, n->name, tare__map_int(++index)))
            return tare__out_of_memory(err);
    return TARE_OK;
}

static const tare_tensor *input_of_run(const tare_debug_comparison *c, const node *input) {
    const size_t number = index_of(&c->input_numbers, input->name);
    const tare_tensor *x = number <= c->input_count ? c->inputs[number - 1] : NULL;
    return x != NULL && x->dtype == TARE_FLOAT32 ? x : NULL;
}

// A node that quantizes an input, or a float value that has a row, has no row of its own.
static tare_status keep_quantized_range(tare_debug_comparison *c, const char *name,
                                        const tare_tensor *result, tare_error *err) {
    const node *n = c->has_ranges ? tare__graph_find(c->model->root->graph, name) : NULL;
    const node *read = n != NULL && tare__coverage_is_quantize(n) ? tare__node_arg(n, 0) : NULL;
    if (read == NULL) return TARE_OK;
    const size_t index = index_of(&c->row_names, read->name);
    const compared_row *row = index > 0 ? &c->rows[index - 1] : NULL;
    const tare_tensor *x = row != NULL                    ? value_of(c, row, 0)
                           : read->op == NODE_PLACEHOLDER ? input_of_run(c, read)
                                                          : NULL;
    return x != NULL ? tare__compared_ranges_add(
                           &c->ranges, n, row != NULL ? row->reference.name : "", x, result, err)
                     : TARE_OK;
}

static tare_status compare_value(void *user, const char *name, const tare_tensor *result,
                                 tare_error *err) {
    tare_debug_comparison *c = user;
    const size_t index = index_of(&c->row_names, name);
    if (result == NULL) return TARE_OK;
    if (index == 0) return keep_quantized_range(c, name, result, err);
    compared_row *row = &c->rows[index - 1];
    const tare_tensor *reference = value_of(c, row, row->round++);
    if (reference == NULL) return TARE_OK;
    if (!tare__same_shape(reference, result)) return differ_in_shape(row, reference, result, err);
    tare_tensor *plain = NULL;
    if (c->has_ranges && !row->node.is_inner)
        TARE_TRY(tare__compared_ranges_add(&c->ranges, row->node.node, row->reference.name,
                                           reference, result, err));
    TARE_TRY(tare_tensor_to_float(result, &plain, err));
    add(row, reference, plain);
    tare_tensor_release(plain);
    return TARE_OK;
}

static void forget(tare_debug_comparison *c) {
    for (size_t i = 0; i < c->kept_count; i++)
        while (c->kept[i].count > 0) tare_tensor_release(c->kept[i].tensors[--c->kept[i].count]);
    for (size_t i = 0; i < c->row_count; i++) c->rows[i].round = 0;
}

static tare_status run(tare_session *session, const tare_tensor *const *inputs, size_t input_count,
                       tare_debug_outputs *out, tare_error *err) {
    enum { MOST = 64 };
    tare_tensor *dropped[MOST] = {NULL};
    tare_debug_outputs own = {dropped, MOST, 0};
    tare_debug_outputs *to = out != NULL ? out : &own;
    TARE_TRY(
        tare_session_run(session, inputs, input_count, to->tensors, to->capacity, &to->count, err));
    for (size_t i = 0; i < own.count; i++) tare_tensor_release(dropped[i]);
    return TARE_OK;
}

tare_status tare_debug_compare(tare_debug_comparison *c, const tare_tensor *const *inputs,
                               size_t input_count, tare_debug_outputs *reference_outputs,
                               tare_debug_outputs *outputs, tare_error *err) {
    c->inputs = inputs;
    c->input_count = input_count;
    tare_status status = run(c->reference_session, inputs, input_count, reference_outputs, err);
    if (status == TARE_OK) {
        status = run(c->session, inputs, input_count, outputs, err);
        for (size_t i = 0;
             status != TARE_OK && reference_outputs != NULL && i < reference_outputs->count; i++)
            tare_tensor_release(reference_outputs->tensors[i]);
        if (status != TARE_OK && reference_outputs != NULL) reference_outputs->count = 0;
    }
    forget(c);
    return status;
}

// --- comparisons ---

static tare_status open_sessions(tare_debug_comparison *c, int thread_count, tare_error *err) {
    const tare_session_options options = {.thread_count = thread_count};
    TARE_TRY(tare_session_create(c->reference, &options, &c->reference_session, err));
    TARE_TRY(tare_session_create(c->model, &options, &c->session, err));
    tare__session_see_inside(c->reference_session);
    tare__session_see_inside(c->session);
    tare_session_watch(c->reference_session, keep_value, c);
    tare_session_watch(c->session, compare_value, c);
    return TARE_OK;
}

tare_status tare_debug_comparison_create(const tare_model *reference, const tare_model *model,
                                         const tare_debug_options *options,
                                         tare_debug_comparison **out, tare_error *err) {
    tare_debug_options o = {0};
    if (reference == NULL || model == NULL || out == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "a comparison needs two models");
    if (options != NULL) tare__struct_copy(&o, sizeof o, options);
    tare_debug_comparison *c = tare__alloc_zeroed(1, sizeof *c);
    if (c == NULL) return tare__out_of_memory(err);
    c->reference = reference;
    c->model = model;
    c->has_ranges = o.has_ranges;
    c->by_handles = !o.by_origin && tare_model_has_debug_handles(reference) &&
                    tare_model_has_debug_handles(model);
    tare_status status = tare__record_decided(&model->decisions, "rescaled", &c->rescaled, err);
    if (status == TARE_OK) status = match_models(c, err);
    if (status == TARE_OK && c->has_ranges) status = number_inputs(c, err);
    if (status == TARE_OK) status = open_sessions(c, o.thread_count, err);
    if (status == TARE_OK)
        *out = c;
    else
        tare_debug_comparison_destroy(c);
    return status;
}

void tare_debug_comparison_destroy(tare_debug_comparison *c) {
    if (c == NULL) return;
    forget(c);
    for (size_t i = 0; i < c->kept_count; i++) tare__free(c->kept[i].tensors);
    tare_session_destroy(c->reference_session);
    tare_session_destroy(c->session);
    tare__map_release(&c->kept_names);
    tare__map_release(&c->row_names);
    tare__map_release(&c->input_numbers);
    tare__map_release(&c->rescaled);
    tare__compared_ranges_end(&c->ranges);
    tare__free(c->kept);
    tare__free(c->rows);
    tare__arena_release(&c->names);
    tare__free(c);
}

bool tare_debug_comparison_row(const tare_debug_comparison *c, size_t index, tare_debug_row *out) {
    if (index >= c->row_count) return false;
    const compared_row *row = &c->rows[index];
    *out = (tare_debug_row){
        .struct_size = sizeof *out,
        .handle = row->handle,
        .reference_node = row->reference.name,
        .node = row->node.name,
        .target = row->reference.node->target,
        .element_count = row->element_count,
        .signal = row->signal,
        .reference = row->reference_signal,
        .noise = row->noise,
        .max_abs_error = row->max_abs_error,
        .mse = row->element_count > 0 ? row->noise / (double)row->element_count : 0,
        .sqnr_db = row->noise > 0 ? 10 * log10(row->signal / row->noise) : (double)INFINITY};
    return true;
}

bool tare_debug_comparison_get_range(const tare_debug_comparison *c, size_t index,
                                     tare_tensor_range *out) {
    if (index >= c->ranges.count) return false;
    tare__range_show(&c->ranges.items[index], out);
    return true;
}

size_t tare_debug_comparison_row_count(const tare_debug_comparison *c) {
    return c->row_count;
}

bool tare_debug_comparison_by_handles(const tare_debug_comparison *c) {
    return c->by_handles;
}
