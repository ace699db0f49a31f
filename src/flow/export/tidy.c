// SPDX-License-Identifier: Apache-2.0
// Cleans up after convert: one dequantize per reader, quantized weights as constants, no unused
// nodes.
#include <string.h>

#include "flow/export/convert.h"
#include "ops/op.h"

// Parameters are literals, numbers computed by nodes, or tensors with one element per channel.
static bool is_pair_call(const node *n, op_id per_tensor, op_id per_channel) {
    return tare__calls_overload(n, per_tensor, "default") ||
           tare__calls_overload(n, per_tensor, "tensor") ||
           tare__calls_overload(n, per_channel, "default");
}

bool tare__is_quantize_call(const node *n) {
    return is_pair_call(n, TARE_OP_DECOMPOSED_QUANTIZE_PER_TENSOR,
                        TARE_OP_DECOMPOSED_QUANTIZE_PER_CHANNEL);
}

bool tare__is_dequantize_call(const node *n) {
    return is_pair_call(n, TARE_OP_DECOMPOSED_DEQUANTIZE_PER_TENSOR,
                        TARE_OP_DECOMPOSED_DEQUANTIZE_PER_CHANNEL);
}

// --- duplicates ---

// Its quantize takes the parameters that choose_qparams computed.
static bool is_dynamic(const node *dequantize) {
    const node *quantize = tare__node_arg(dequantize, 0);
    const node *item = quantize != NULL ? tare__node_arg(quantize, 1) : NULL;
    return tare__function_op(item) == TARE_OP_GETITEM &&
           OP_IS_ANY(tare__function_op(tare__node_arg(item, 0)), TARE_OP_DECOMPOSED_CHOOSE_QPARAMS,
                     TARE_OP_DECOMPOSED_CHOOSE_QPARAMS_SYMMETRIC);
}

static bool reads_size(const node *n) {
    return tare__function_op(n) == TARE_OP_SIZE;
}

static tare_status copy_for(pass *p, node *dequantize, node *user) {
    const node_spec spec = {.op = dequantize->op,
                            .target = dequantize->target,
                            .candidate = dequantize->name,
                            .args = dequantize->args,
                            .arg_count = dequantize->arg_count,
                            .kwargs = dequantize->kwargs,
                            .kwarg_count = dequantize->kwarg_count,
                            .like = dequantize};
    node *copy = NULL;
    TARE_TRY(tare__graph_insert(p->model->root->graph, &spec, dequantize->next, &copy, p->err));
    return tare__node_replace_input(user, dequantize, copy, p->err);
}

static tare_status duplicate(pass *p, node *dequantize) {
    size_t count = 0;
    node **users = tare__arena_array(&p->scratch, dequantize->user_count + 1, sizeof *users);
    if (users == NULL) return tare__out_of_memory(p->err);
    for (size_t i = 0; i < dequantize->user_count; i++)
        if (!reads_size(dequantize->users[i])) users[count++] = dequantize->users[i];
    if (count < 2) return TARE_OK;
    for (size_t i = 0; i < count; i++)
        if (tare_annotation_is_valid(tare__annotation_find(&p->model->annotations, users[i]->name)))
            TARE_TRY(copy_for(p, dequantize, users[i]));
    return TARE_OK;
}

tare_status tare__pt2e_duplicate_dequantize(pass *p) {
    const graph *g = p->model->root->graph;
    for (node *n = g->first, *next; n != NULL; n = next) {
        next = n->next;
        if (tare__is_dequantize_call(n) && !is_dynamic(n)) TARE_TRY(duplicate(p, n));
    }
    return tare__pt2e_eliminate_dead(p);
}

// --- constants ---

// Folding stops at conversions whose rounding must stay visible, at operators that create tensors
// or random numbers, and at tensors that are written later.
static bool stops_folding(const node *n) {
    const bool is_function = n->op == NODE_CALL_FUNCTION;
    if (n->op == NODE_PLACEHOLDER || tare__is_dequantize_call(n)) return true;
    if (tare__function_op(n) == TARE_OP_DECOMPOSED_CONVERT_ELEMENT_TYPE ||
        tare__calls_overload(n, TARE_OP_DROPOUT, "default"))
        return true;
    if (is_function && n->input_count == 0) return true;
    for (size_t i = 0; i < n->user_count; i++)
        if (tare__writes_first_argument(n->users[i]) && tare__node_arg(n->users[i], 0) == n)
            return true;
    return false;
}

typedef struct search {
    bool *seen; // by id
    bool stops;
} search;

static void look(void *user, node *n) {
    search *s = user;
    if (s->seen[n->id] || s->stops) return;
    s->seen[n->id] = true;
    s->stops = stops_folding(n);
    if (!s->stops) tare__node_each_input(n, look, s);
}

static tare_status is_constant(pass *p, const node *n, bool *out) {
    search s = {0};
    s.seen = tare__arena_array(&p->scratch, p->model->root->graph->next_id + 1, sizeof *s.seen);
    if (s.seen == NULL) return tare__out_of_memory(p->err);
    tare__node_each_input(n, look, &s);
    *out = !s.stops;
    return TARE_OK;
}

// Adds a get_attr node with the name of the quantize node, which reads a buffer of the quantized
// values.
static tare_status freeze(pass *p, node *n, tare_tensor *quantized, size_t *number) {
    module *root = p->model->root;
    const char *path = tare__module_free_name(root, &root->graph->memory, "_frozen_param", number);
    if (path == NULL) return tare__out_of_memory(p->err);
    TARE_TRY(tare__module_set_tensor(root, path, quantized, false, p->err));
    TARE_TRY(TARE_DECIDE(p, n, "folded", "constant",
                         "its integers are computed once and stored as '%s'", path));
    TARE_TRY(tare__node_set_args(n, NULL, 0, NULL, 0, p->err));
    n->op = NODE_GET_ATTR;
    n->target = path;
    return TARE_OK;
}

static tare_status fold_one(pass *p, node *n, size_t *number) {
    bool is_const = false;
    TARE_TRY(is_constant(p, n, &is_const));
    if (!is_const) return TARE_OK;
    const value wanted = tare__node_value(n);
    tare_tensor *quantized = NULL;
    TARE_TRY(tare__pass_fold_tensors(p, &wanted, 1, n->next, &quantized));
    const tare_status status = quantized != NULL ? freeze(p, n, quantized, number) : TARE_OK;
    tare_tensor_release(quantized);
    return status;
}

static tare_status remove_unread(pass *p) {
    graph *g = p->model->root->graph;
    for (node *n = g->last, *prev; n != NULL; n = prev) {
        prev = n->prev;
        if (n->op != NODE_GET_ATTR || n->user_count > 0) continue;
        const char *target = n->target;
        TARE_TRY(tare__graph_erase(g, n, p->err));
        bool is_read = strchr(target, '.') != NULL;
        for (const node *m = g->first; m != NULL && !is_read; m = m->next)
            is_read = m->op == NODE_GET_ATTR && strcmp(m->target, target) == 0;
        if (!is_read) tare__module_remove_tensor(p->model->root, target);
    }
    return TARE_OK;
}

tare_status tare__pt2e_fold_quantize(pass *p) {
    size_t number = 0;
    for (node *n = p->model->root->graph->first; n != NULL; n = n->next)
        if (tare__is_quantize_call(n)) TARE_TRY(fold_one(p, n, &number));
    TARE_TRY(tare__pt2e_eliminate_dead(p));
    return remove_unread(p);
}

// --- modules ---

static tare_status remove_unused(pass *p, module *m, const char *path) {
    const module *root = p->model->root;
    for (size_t i = m->child_count; i-- > 0;) {
        const named_module *child = &m->children[i];
        const char *name = path[0] == '\0'
                               ? child->name
                               : tare__arena_printf(&p->scratch, "%s.%s", path, child->name);
        if (name == NULL) return tare__out_of_memory(p->err);
        if (!tare__graph_reads_path(root->graph, name))
            tare__module_remove_child(m, child->name);
        else if (child->module->class->role == ROLE_CONTAINER && child->module->graph == NULL)
            TARE_TRY(remove_unused(p, child->module, name));
    }
    return TARE_OK;
}

tare_status tare__remove_unused_modules(pass *p) {
    return remove_unused(p, p->model->root, "");
}
