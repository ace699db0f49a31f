// SPDX-License-Identifier: Apache-2.0
// Replaces calls of modules and methods by calls of functions, which all other steps handle.
// Quantized models may contain them; exported programs do not.
#include <string.h>

#include "flow/lower/export/lower.h"
#include "flow/lower/groups.h"
#include "ops/classes/classes.h"
#include "ops/classes/module_call.h"
#include "ops/classes/reference.h"

// A call of a module with one input, its arguments bound to the parameters of the operator's row.
typedef struct module_call {
    lowering *l;
    node *n;
    const module *m;
    op_call bound;
} module_call;

static bool has_integer_weight(const module *reference) {
    const value *dtype = tare__module_config(reference, "weight_dtype");
    return dtype != NULL && dtype->kind == VALUE_DTYPE &&
           (dtype->as.dtype == TARE_QINT8 || dtype->as.dtype == TARE_QUINT8);
}

// True for a layer with a quantized weight, or an operator without such a weight.
static bool has_function(const module *m, const op_info *op) {
    if (op == NULL || op->functions == NULL || m->class->fused != FUSED_NONE) return false;
    const bool is_weighted = tare__op_has(tare__op_form(op, FORM_QUANTIZED), OP_WEIGHTED);
    if (m->class->role == ROLE_REFERENCE) return is_weighted && has_integer_weight(m);
    return m->class->role == ROLE_FLOAT && !is_weighted;
}

static bool bind(lowering *l, node *n, module_call *out) {
    const module *m = n->op == NODE_CALL_MODULE ? tare__called_module(l->p->model, n) : NULL;
    if (m == NULL || n->arg_count != 1 || n->kwarg_count > 0 ||
        !has_function(m, tare__class_row(m->class)))
        return false;
    *out = (module_call){l, n, m, {.module = m, .node_name = n->name, .memory = &l->p->scratch}};
    out->bound.args = n->args;
    out->bound.arg_count = n->arg_count;
    return tare__operator_module_bind(&out->bound) == TARE_OK;
}

// --- arguments ---

static tare_status read_tensor(const module_call *c, const char *target, node **out) {
    const node_spec spec = {.op = NODE_GET_ATTR, .target = target};
    return tare__graph_insert(c->n->owner, &spec, c->n, out, c->l->p->err);
}

static tare_status read_weight(const module_call *c, const char *name, node **out) {
    tare_tensor *weight = NULL;
    const char *target = NULL;
    TARE_TRY(tare__reference_quantized(c->m, name, &weight, c->l->p->err));
    const tare_status status = tare__own_buffer(c->l, "_quantized_weight_", weight, &target);
    tare_tensor_release(weight);
    TARE_TRY(status);
    TARE_TRY(read_tensor(c, target, out));
    return tare__insert_dequantize(c->l->p, *out, c->n, out);
}

// Reads a tensor of the module as a node.
static tare_status read_own(const module_call *c, const named_tensor *t, value *out) {
    node *made = NULL;
    const bool is_weight = c->m->class->role == ROLE_REFERENCE && strcmp(t->name, "weight") == 0;
    const char *path = tare__arena_printf(&c->n->owner->memory, "%s.%s", c->n->target, t->name);
    if (path == NULL) return tare__out_of_memory(c->l->p->err);
    TARE_TRY(is_weight ? read_weight(c, t->name, &made) : read_tensor(c, path, &made));
    *out = tare__node_value(made);
    return TARE_OK;
}

static tare_status argument(const module_call *c, size_t i, value *out) {
    *out = *c->bound.param[i];
    if (out->kind != VALUE_TENSOR) return TARE_OK;
    for (size_t k = 0; k < c->m->tensor_count; k++)
        if (c->m->tensors[k].tensor == out->as.tensor &&
            tare__op_param_is(c->bound.op, i, c->m->tensors[k].name))
            return read_own(c, &c->m->tensors[k], out);
    return tare__fail(c->l->p->err, TARE_INTERNAL, "node '%s': a tensor of no module", c->n->name);
}

// Arguments are positional as far as possible, then by name.
static tare_status call_function(const module_call *c) {
    value args[OP_MAX_PARAMS];
    keyword kwargs[OP_MAX_PARAMS];
    size_t arg_count = 0, kwarg_count = 0;
    char name[64];
    node *n = c->n;
    tare_error *err = c->l->p->err;
    for (size_t i = 0; i < c->bound.param_count; i++) {
        value v;
        if (c->bound.param[i] == NULL) continue;
        TARE_TRY(argument(c, i, &v));
        if (i == arg_count) {
            args[arg_count++] = v;
            continue;
        }
        tare__op_param_name(c->bound.op, i, name, sizeof name);
        const char *copy = tare__arena_strdup(&c->l->p->scratch, name);
        if (copy == NULL) return tare__out_of_memory(err);
        kwargs[kwarg_count++] = (keyword){copy, v};
    }
    const char *target =
        tare__arena_strdup(&n->owner->memory, tare__op_function_name(c->bound.op).text);
    if (target == NULL) return tare__out_of_memory(err);
    TARE_TRY(tare__node_set_args(n, args, arg_count, kwargs, kwarg_count, err));
    n->op = NODE_CALL_FUNCTION;
    n->target = target;
    return TARE_OK;
}

// --- methods ---

// The function with the arguments of a method; NULL: there is none. In-place methods stay methods.
static const op_info *function_of(const node *n) {
    const op_info *op = n->op == NODE_CALL_METHOD ? tare__node_row(n) : NULL;
    if (op == NULL || op->functions == NULL || tare__op_id(op) == TARE_OP_DEQUANTIZE ||
        tare__op_has(op, OP_NOT_ON_TENSORS) || tare__ends_with(n->target, "_"))
        return NULL;
    return tare__op_overload(op, tare__op_function_name(op).text) == NULL ? op : NULL;
}

// x.reshape(2, 3) is torch.reshape(x, (2, 3)).
static tare_status gather_rest(lowering *l, node *n, const op_info *op) {
    const size_t last = tare__op_param_count(op) - 1;
    const char *bar = strrchr(op->params, '|');
    const bool is_rest = bar != NULL && bar[1] == '*' && n->arg_count > last;
    const bool is_list = is_rest && n->arg_count == last + 1 &&
                         (n->args[last].kind == VALUE_LIST || n->args[last].kind == VALUE_TUPLE);
    if (!is_rest || is_list) return TARE_OK;
    value args[OP_MAX_PARAMS];
    const size_t count = n->arg_count - last;
    memcpy(args, n->args, last * sizeof *args);
    args[last] = tare__value_sequence(&l->p->scratch, VALUE_TUPLE, (uint32_t)count);
    if (args[last].as.items == NULL) return tare__out_of_memory(l->p->err);
    memcpy(args[last].as.items, n->args + last, count * sizeof *args);
    return tare__node_set_args(n, args, last + 1, n->kwargs, n->kwarg_count, l->p->err);
}

static tare_status leave_method(lowering *l, node *n) {
    const op_info *op = function_of(n);
    if (op == NULL) return TARE_OK;
    const char *target = tare__arena_strdup(&n->owner->memory, tare__op_function_name(op).text);
    if (target == NULL) return tare__out_of_memory(l->p->err);
    TARE_TRY(gather_rest(l, n, op));
    n->op = NODE_CALL_FUNCTION;
    n->target = target;
    return TARE_OK;
}

tare_status tare__pt2e_lower_modules(lowering *l) {
    for (node *n = l->p->model->root->graph->first; n != NULL; n = n->next) {
        module_call c;
        if (n->op == NODE_CALL_MODULE) TARE_TRY(tare__lower_groups(l->p, n));
        if (bind(l, n, &c)) TARE_TRY(call_function(&c));
        TARE_TRY(leave_method(l, n));
    }
    return TARE_OK;
}
