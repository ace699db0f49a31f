// SPDX-License-Identifier: Apache-2.0
// The reference interpreter: runs the nodes in order and keeps results until their last use.
#include "ops/interpret.h"

#include <assert.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/text/text.h"
#include "ops/classes/module_call.h"
#include "ops/live_bytes.h"
#include "ops/memory_order.h"
#include "ops/op.h"
#include "ops/refused.h"

typedef struct run {
    const interpreter *it;
    const graph *g;
    const value *inputs;
    size_t input_count, next_input;
    arena *memory;
    value *results;       // by node id; each owns references on its tensors
    size_t *uses_left;    // by node id
    bool *is_unknown;     // by node id: skipped; NULL: no node is
    const value *mode;    // see EXPORTED_TRAINING; NULL: none
    memory_budget budget; // of results; `used` ignores releases since the last recount
    tare_error *err;
} run;

// --- arguments ---

// Copies v with nodes replaced by their results, without new references.
static tare_status resolve(run *r, const value *v, value *out) {
    *out = *v;
    if (v->kind == VALUE_NODE) {
        *out = r->results[v->as.node->id];
        // Recorded calls outlive the results, whose items are released after the last use.
        return r->it->shaped != NULL ? tare__value_copy(r->memory, out, NULL, NULL, out, r->err)
                                     : TARE_OK;
    }
    if (!tare__value_has_items(v)) return TARE_OK;
    *out = tare__value_sequence(r->memory, v->kind, v->count);
    if (out->as.items == NULL) return tare__out_of_memory(r->err);
    for (uint32_t i = 0; i < v->count; i++)
        TARE_TRY(resolve(r, &v->as.items[i], &out->as.items[i]));
    return TARE_OK;
}

static tare_status resolve_arguments(run *r, const node *n, op_call *call) {
    value *args = tare__arena_array(r->memory, n->arg_count + 1, sizeof *args);
    keyword *kwargs = tare__arena_array(r->memory, n->kwarg_count + 1, sizeof *kwargs);
    if (args == NULL || kwargs == NULL) return tare__out_of_memory(r->err);
    for (size_t i = 0; i < n->arg_count; i++) TARE_TRY(resolve(r, &n->args[i], &args[i]));
    for (size_t i = 0; i < n->kwarg_count; i++) {
        kwargs[i].name = n->kwargs[i].name;
        TARE_TRY(resolve(r, &n->kwargs[i].value, &kwargs[i].value));
    }
    call->args = args;
    call->arg_count = n->arg_count;
    call->kwargs = kwargs;
    call->kwarg_count = n->kwarg_count;
    return TARE_OK;
}

// --- kinds of nodes ---

static tare_status run_placeholder(run *r, const node *n, value *out) {
    if (!tare__node_is_input(n)) return resolve(r, &n->args[0], out);
    const size_t i = r->next_input++;
    if (i < r->input_count) return tare__value_share(r->memory, &r->inputs[i], out, r->err);
    if (n->arg_count > 0) return resolve(r, &n->args[0], out);
    return tare__fail(r->err, TARE_INVALID_ARGUMENT,
                      "input '%s' is missing: the model takes it as input %zu, found %zu inputs",
                      n->target, i + 1, r->input_count);
}

static tare_status get_module(run *r, const node *n, value *out) {
    const module *m = tare__module_find(r->it->root, n->target);
    // Packed weights, or the graph of a branch.
    if (m == NULL || (m->class->role != ROLE_PACKED && m->graph == NULL))
        return tare__fail(r->err, TARE_INVALID_ARGUMENT, "node '%s': the model has no tensor '%s'",
                          n->name, n->target);
    *out = (value){.kind = VALUE_MODULE, .as.module = m};
    return TARE_OK;
}

static tare_status run_get_attr(run *r, const node *n, value *out) {
    tare_tensor *t = r->it->stand_in != NULL ? r->it->stand_in(r->it->user, n->target) : NULL;
    if (t == NULL) t = tare__module_find_tensor(r->it->root, n->target);
    if (t == NULL) return get_module(r, n, out);
    *out = (value){.kind = VALUE_TENSOR, .as.tensor = tare_tensor_retain(t)};
    return TARE_OK;
}

// A module with a graph of its own (a standalone module) runs as a model within the model.
static tare_status run_submodel(run *r, const op_call *call, value *out) {
    interpreter inner = *r->it;
    if (call->kwarg_count > 0)
        return tare__fail(r->err, TARE_INVALID_ARGUMENT,
                          "a module with a graph takes no keyword arguments, found '%s'",
                          call->kwargs[0].name);
    inner.root = call->module;
    inner.own = tare__call_own(call, call->module);
    inner.after = NULL;
    inner.stand_in = NULL; // paths of another tree
    inner.memory_limit = tare__call_memory_left(call);
    value made;
    TARE_TRY(tare__interpret(&inner, call->args, call->arg_count, r->memory, &made, r->err));
    *out = made;
    return TARE_OK;
}

typedef struct step {
    tare_status (*shape)(op_call *call);
    op_compute compute;
} step;

// The row of a function or method. For a module: the row that its last run found, or NULL.
static const op_info *row_of(run *r, const node *n) {
    const op_info **kept = r->it->remember != NULL ? r->it->remember(r->it->user, n) : NULL;
    if (kept != NULL && *kept != NULL) return *kept;
    if (n->op == NODE_CALL_MODULE) return NULL;
    const op_info *op =
        n->op == NODE_CALL_METHOD ? tare__op_method(n->target) : tare__op_function(n->target);
    if (kept != NULL) *kept = op;
    return op;
}

static void keep_row(run *r, const node *n, const op_call *call) {
    const op_info **kept = r->it->remember != NULL ? r->it->remember(r->it->user, n) : NULL;
    if (kept != NULL) *kept = call->op;
}

static void apply_mode(const run *r, const node *n, op_call *call) {
    if (r->mode == NULL || strcmp(call->op->id, "batch_norm") != 0) return;
    if (n->op == NODE_CALL_FUNCTION && tare__aten_name(n->target) != NULL)
        call->param[tare__op_param_index(call->op, "training")] = r->mode;
}

static tare_status refuse(run *r, const node *n) {
    const bool is_method = n->op == NODE_CALL_METHOD;
    const char *why = is_method ? NULL : tare__why_refused(n->target);
    if (why != NULL)
        return tare__fail(r->err, TARE_UNSUPPORTED, "node '%s': function '%s': %s", n->name,
                          n->target, why);
    return tare__fail(r->err, TARE_UNSUPPORTED, "node '%s': %s '%s' is not known", n->name,
                      is_method ? "method" : "function", n->target);
}

// Chooses the functions of the call. A function or method is bound to its row, whose functions *s
// has already; a module uses those of its class.
static tare_status choose_step(run *r, const node *n, op_call *call, step *s) {
    if (n->op == NODE_CALL_MODULE) {
        const module_class *class = call->module->class;
        if (class->shape == NULL || class->forward == NULL)
            return tare__fail(r->err, TARE_UNSUPPORTED, "node '%s': a %s cannot be run", n->name,
                              class->name);
        *s = (step){class->shape, class->forward};
        call->op = row_of(r, n);
        return TARE_OK;
    }
    const op_info *op = row_of(r, n);
    if (op == NULL) return refuse(r, n);
    TARE_TRY(tare__call_bind(call, op));
    apply_mode(r, n, call);
    return TARE_OK;
}

static tare_status compute(run *r, const node *n, op_call *call, const step *s) {
    bool handled = false;
    TARE_TRY(tare__call_allocate(call));
    const bool is_empty = tare__value_is_empty(&call->result);
    if (r->it->execute != NULL && !is_empty)
        TARE_TRY(r->it->execute(r->it->user, n, call, &handled));
    return handled ? TARE_OK : s->compute(call);
}

static tare_status finish_step(run *r, const node *n, op_call *call, const step *s) {
    tare_status status = s->shape(call);
    if (status == TARE_OK) tare__note_memory_order(call);
    if (status == TARE_OK && n->op == NODE_CALL_MODULE) keep_row(r, n, call);
    if (status == TARE_OK && r->it->shaped != NULL)
        status = r->it->shaped(r->it->user, n, call, s->compute);
    if (status == TARE_OK && !r->it->shapes_only && !tare__call_is_done(call))
        status = compute(r, n, call, s);
    if (status != TARE_OK) tare__value_release_tensors(&call->result);
    return status;
}

static tare_status run_step(run *r, const node *n, op_call *call) {
    step s = {tare__op_shape, tare__op_compute};
    TARE_TRY(choose_step(r, n, call, &s));
    return finish_step(r, n, call, &s);
}

// --- overwriting tensors of the model ---

// The node whose result is this argument of the call.
static node *argument_node(const node *n, const op_call *call, const value *argument) {
    for (size_t i = 0; i < n->arg_count; i++)
        if (&call->args[i] == argument && n->args[i].kind == VALUE_NODE) return n->args[i].as.node;
    return NULL;
}

// The tensor is replaced, not written, because other models may share it.
static tare_status overwrite(run *r, const node *n, tare_tensor *now) {
    module *root = r->it->own;
    if (root == NULL || r->it->shapes_only) return TARE_OK;
    return tare__module_replace_tensor(root, n->target, now, r->err);
}

typedef struct write_request {
    run *r;
    const node *n;
    const op_call *call;
} write_request;

static tare_status write_argument(void *writer, const value *argument, tare_tensor *now) {
    const write_request *w = writer;
    const node *from = argument_node(w->n, w->call, argument);
    return from != NULL && from->op == NODE_GET_ATTR ? overwrite(w->r, from, now) : TARE_OK;
}

// True if the graph uses only item 0 of n.
static bool reads_only_first(const node *n) {
    for (size_t i = 0; i < n->user_count; i++) {
        const node *user = n->users[i];
        if (user->op != NODE_CALL_FUNCTION || strcmp(user->target, "operator.getitem") != 0 ||
            user->arg_count != 2 || user->args[1].kind != VALUE_INT ||
            user->args[1].as.integer != 0)
            return false;
    }
    return n->user_count > 0;
}

static tare_status make_call(run *r, const node *n, op_call *out) {
    *out = (op_call){.node_name = n->name,
                     .only_first = reads_only_first(n),
                     .function = n->op == NODE_CALL_FUNCTION ? n->target : NULL,
                     .memory = r->memory,
                     .linear_rule = r->it->linear_rule,
                     .conv_rule = r->it->conv_rule,
                     .thread_count = r->it->thread_count,
                     .kernels = r->it->kernels,
                     // Recorded calls outlive the run and its budget.
                     .it = r->it->shaped == NULL || r->it->sees_inside ? r->it : NULL,
                     .budget = r->it->shaped == NULL ? &r->budget : NULL,
                     .own = r->it->own,
                     .err = r->err};
    if (n->op == NODE_CALL_MODULE) {
        out->module = tare__module_find(r->it->root, n->target);
        if (out->module == NULL)
            return tare__fail(r->err, TARE_INVALID_ARGUMENT,
                              "node '%s': the model has no module '%s'", n->name, n->target);
    }
    return resolve_arguments(r, n, out);
}

static tare_status run_call(run *r, const node *n, value *out) {
    op_call call;
    TARE_TRY(make_call(r, n, &call));
    assert(n->op != NODE_CALL_MODULE || call.module != NULL);
    if (call.module != NULL && call.module->graph != NULL)
        return tare__at(r->err, run_submodel(r, &call, out), "node '%s'", n->name);
    write_request writer = {r, n, &call};
    if (!r->it->shapes_only) {
        call.write = write_argument;
        call.writer = &writer;
    }
    TARE_TRY(run_step(r, n, &call));
    *out = call.result;
    return TARE_OK;
}

// --- writing in place ---

static bool is_true(const value *v) {
    return v != NULL && v->kind == VALUE_BOOL && v->as.boolean;
}

// True for relu_, torch.ops.aten.relu_.default and so on, but not for names like __add__, nor for
// operator.and_, whose underscore tells it from a keyword of Python.
static bool has_mark(const char *name) {
    const char *end = name + strlen(name);
    if (tare__starts_with(name, "operator.")) return false;
    if (tare__starts_with(name, "torch.ops.")) end = strrchr(name, '.'); // before the overload
    return end - name > 1 && end[-1] == '_' && end[-2] != '_';
}

bool tare__node_writes_in_place(const module *root, const node *n) {
    if (n->op == NODE_CALL_MODULE) {
        const module *m = tare__module_find(root, n->target);
        return m != NULL && m->class->role == ROLE_FLOAT &&
               is_true(tare__module_config(m, "inplace"));
    }
    const bool is_call = n->op == NODE_CALL_FUNCTION || n->op == NODE_CALL_METHOD;
    return is_call && (has_mark(n->target) || is_true(tare__node_kwarg(n, "inplace")));
}

static const tare_tensor *tensor_of(const run *r, const node *n) {
    const value *v = n != NULL ? &r->results[n->id] : NULL;
    return v != NULL && v->kind == VALUE_TENSOR ? v->as.tensor : NULL;
}

// torch overwrites the first input, so later uses of it see the result. tare does not overwrite
// tensors: the result becomes the value of the input's node, and of the nodes before it that have
// the same tensor as value (an observer returns its input). *last: the first of these nodes, which
// created the tensor.
static tare_status replace_names(run *r, const node *input, const value *result,
                                 const node **last) {
    const tare_tensor *written = tensor_of(r, input);
    for (; written != NULL && tensor_of(r, input) == written; input = tare__node_arg(input, 0)) {
        if (input->op == NODE_GET_ATTR) TARE_TRY(overwrite(r, input, result->as.tensor));
        tare__value_release_tensors(&r->results[input->id]);
        TARE_TRY(tare__value_share(r->memory, result, &r->results[input->id], r->err));
        *last = input;
    }
    return TARE_OK;
}

static const op_info *put_back_of(run *r, const node *view) {
    const bool is_call = view->op == NODE_CALL_FUNCTION || view->op == NODE_CALL_METHOD;
    const op_info *op = is_call ? row_of(r, view) : NULL;
    return op != NULL && op->put_back != NULL ? tare__op_by_id(op->put_back, 0) : NULL;
}

// Computes the value of a view again that was released after its last use; reads a tensor of the
// model again.
static tare_status revive(run *r, const node *view) {
    const node *base = tare__node_arg(view, 0);
    if (tensor_of(r, view) == NULL && view->op == NODE_GET_ATTR)
        return run_get_attr(r, view, &r->results[view->id]);
    if (tensor_of(r, view) != NULL || base == NULL || put_back_of(r, view) == NULL) return TARE_OK;
    TARE_TRY(revive(r, base));
    return tensor_of(r, base) != NULL ? run_call(r, view, &r->results[view->id]) : TARE_OK;
}

// Calls put_back(base, src, the view's other arguments).
static tare_status put_back(run *r, const op_info *op, const node *view, const value *src,
                            value *out) {
    op_call given = {0}, call = {.node_name = view->name,
                                 .memory = r->memory,
                                 .thread_count = r->it->thread_count,
                                 .kernels = r->it->kernels,
                                 .err = r->err};
    TARE_TRY(resolve_arguments(r, view, &given));
    value *args = tare__arena_array(r->memory, given.arg_count + 1, sizeof *args);
    if (args == NULL) return tare__out_of_memory(r->err);
    args[0] = given.args[0];
    args[1] = *src;
    for (size_t i = 1; i < given.arg_count; i++) args[i + 1] = given.args[i];
    call.args = args;
    call.arg_count = given.arg_count + 1;
    call.kwargs = given.kwargs;
    call.kwarg_count = given.kwarg_count;
    TARE_TRY(tare__call_bind(&call, op));
    const step s = {tare__op_shape, tare__op_compute};
    TARE_TRY(finish_step(r, view, &call, &s));
    *out = call.result;
    return TARE_OK;
}

// transpose_, unsqueeze_: they write no values, so that what the tensor is a view of stays as it
// is.
static bool turns_in_place(run *r, const node *n) {
    const op_info *op = n->op == NODE_CALL_MODULE ? NULL : row_of(r, n);
    return op != NULL && (op->put_back != NULL || OP_IS_ANY(tare__op_id(op), TARE_OP_TRANSPOSE,
                                                            TARE_OP_SWAPAXES, TARE_OP_T));
}

// last: the node that created the overwritten tensor.
static tare_status tell_write(run *r, const node *last, const value *now) {
    if (r->it->writes == NULL || last == NULL || last->op != NODE_GET_ATTR) return TARE_OK;
    return r->it->writes(r->it->user, last, now->as.tensor, r->err);
}

static tare_status replace_input(run *r, const node *n, const value *result) {
    const node *last = NULL, *base;
    const op_info *op;
    value now;
    if (result->kind != VALUE_TENSOR || !tare__node_writes_in_place(r->it->root, n) ||
        tare__node_arg(n, 0) == NULL)
        return TARE_OK;
    // The input itself: detach_, or dropout in evaluation. transpose_ returns another tensor.
    if (tensor_of(r, tare__node_arg(n, 0)) == result->as.tensor) return TARE_OK;
    TARE_TRY(replace_names(r, tare__node_arg(n, 0), result, &last));
    TARE_TRY(tell_write(r, last, result));
    if (turns_in_place(r, n)) return TARE_OK;
    TARE_TRY(tare__value_share(r->memory, result, &now, r->err));
    tare_status status = TARE_OK;
    // The written tensor may be a view of another one, and that of a third.
    while (status == TARE_OK && last != NULL && (op = put_back_of(r, last)) != NULL &&
           (base = tare__node_arg(last, 0)) != NULL) {
        value whole = tare__none();
        status = revive(r, base);
        if (status != TARE_OK || tensor_of(r, base) == NULL) break;
        status = put_back(r, op, last, &now, &whole);
        if (status != TARE_OK) break;
        tare__value_release_tensors(&now);
        now = whole;
        last = NULL;
        status = replace_names(r, base, &now, &last);
        if (status == TARE_OK) status = tell_write(r, last, &now);
    }
    tare__value_release_tensors(&now);
    return status;
}

static tare_status run_node(run *r, const node *n, value *out) {
    value output = tare__none();
    switch (n->op) {
    case NODE_PLACEHOLDER:
        return run_placeholder(r, n, out);
    case NODE_GET_ATTR:
        return run_get_attr(r, n, out);
    case NODE_OUTPUT:
        if (n->arg_count == 0) return TARE_OK;
        TARE_TRY(resolve(r, &n->args[0], &output));
        return tare__value_share(r->memory, &output, out, r->err);
    case NODE_CALL_MODULE:
    case NODE_CALL_FUNCTION:
    case NODE_CALL_METHOD:
        return run_call(r, n, out);
    }
    return TARE_OK;
}

// --- lifetimes ---

static void use_once(void *user, node *input) {
    run *r = user;
    if (r->uses_left[input->id] > 0 && --r->uses_left[input->id] == 0)
        tare__value_release_tensors(&r->results[input->id]);
}

typedef struct unknown_search {
    const run *r;
    bool is_found;
} unknown_search;

static void look_at(void *user, node *input) {
    unknown_search *s = user;
    s->is_found |= s->r->is_unknown[input->id];
}

// Runs n. If nodes may be skipped, skips it when an input was skipped or it fails.
static tare_status run_known(run *r, const node *n, value *result, bool *is_known) {
    unknown_search search = {r, false};
    if (r->is_unknown != NULL) tare__node_each_input(n, look_at, &search);
    tare_status status = search.is_found ? TARE_UNSUPPORTED : run_node(r, n, result);
    *is_known = status == TARE_OK;
    if (*is_known || r->is_unknown == NULL || status == TARE_OUT_OF_MEMORY) return status;
    r->is_unknown[n->id] = true;
    *result = tare__none();
    return TARE_OK;
}

static tare_status run_and_release(run *r, const node *n, value *out) {
    value *result = &r->results[n->id];
    bool is_known;
    TARE_TRY(run_known(r, n, result, &is_known));
    if (!is_known) {
        tare__node_each_input(n, use_once, r);
        return TARE_OK;
    }
    if (r->it->after != NULL) TARE_TRY(r->it->after(r->it->user, n, result, r->err));
    TARE_TRY(replace_input(r, n, result));
    tare__node_each_input(n, use_once, r);
    if (n->op == NODE_OUTPUT) {
        *out = *result; // the references move to the caller
        *result = tare__none();
    } else if (n->user_count == 0) {
        tare__value_release_tensors(result);
    }
    return TARE_OK;
}

static tare_status run_nodes(run *r, value *out) {
    for (const node *n = r->g->first; n != NULL; n = n->next) TARE_TRY(run_and_release(r, n, out));
    if (r->next_input >= r->input_count) return TARE_OK;
    tare__value_release_tensors(out);
    return tare__fail(r->err, TARE_INVALID_ARGUMENT, "the model takes %zu inputs, found %zu",
                      r->next_input, r->input_count);
}

// --- runs ---

static tare_status recount(void *user, uint64_t *used, tare_error *err) {
    const run *r = user;
    return tare__live_bytes(r->g, r->results, r->inputs, r->input_count, used, err);
}

static tare_status begin(run *r, const interpreter *it, const value *inputs, size_t input_count,
                         arena *memory, tare_error *err) {
    const graph *g = it->root->graph;
    *r = (run){.err = err};
    if (g == NULL) return tare__fail(err, TARE_INVALID_ARGUMENT, "the module has no graph to run");
    *r = (run){.it = it,
               .g = g,
               .inputs = inputs,
               .input_count = input_count,
               .memory = memory,
               .results = tare__alloc_zeroed(g->next_id + 1, sizeof(value)),
               .uses_left = tare__alloc_zeroed(g->next_id + 1, sizeof(size_t)),
               .is_unknown = it->passes_over ? tare__alloc_zeroed(g->next_id + 1, 1) : NULL,
               .mode = tare__module_config(it->root, EXPORTED_TRAINING),
               .err = it->passes_over ? NULL : err}; // the run continues, so this is no error
    r->budget = tare__run_budget(it->memory_limit);
    r->budget.recount = recount;
    r->budget.user = r;
    if (r->results == NULL || r->uses_left == NULL || (it->passes_over && r->is_unknown == NULL))
        return tare__out_of_memory(err);
    for (const node *n = g->first; n != NULL; n = n->next) r->uses_left[n->id] = n->user_count;
    return TARE_OK;
}

static void end(const run *r) {
    for (size_t id = 0; r->results != NULL && id < r->g->next_id; id++)
        tare__value_release_tensors(&r->results[id]);
    tare__free(r->results);
    tare__free(r->uses_left);
    tare__free(r->is_unknown);
}

tare_status tare__interpret(const interpreter *it, const value *inputs, size_t input_count,
                            arena *memory, value *out, tare_error *err) {
    run r;
    value made = tare__none();
    tare_status status = begin(&r, it, inputs, input_count, memory, err);
    if (status == TARE_OK) status = run_nodes(&r, &made);
    end(&r);
    if (status == TARE_OK) *out = made;
    return status;
}

// --- runs that can be stopped ---

struct interpretation {
    interpreter it;
    run r;
    const node *next; // to run; NULL: all have run
};

tare_status tare__interpretation_create(const interpreter *it, const value *inputs,
                                        size_t input_count, arena *memory, interpretation **out,
                                        tare_error *err) {
    interpretation *x = tare__alloc_zeroed(1, sizeof *x);
    if (x == NULL) return tare__out_of_memory(err);
    x->it = *it;
    const tare_status status = begin(&x->r, &x->it, inputs, input_count, memory, err);
    if (status != TARE_OK) {
        tare__interpretation_destroy(x);
        return status;
    }
    x->next = x->r.g->first;
    *out = x;
    return TARE_OK;
}

void tare__interpretation_destroy(interpretation *x) {
    if (x == NULL) return;
    end(&x->r);
    tare__free(x);
}

// Each call may come from another thread, with its own kernels and error.
static void hand_over(interpretation *x, struct float_kernels *kernels, tare_error *err) {
    x->it.kernels = kernels;
    x->r.err = err;
}

tare_status tare__interpretation_advance(interpretation *x, const node *stop,
                                         struct float_kernels *kernels, tare_error *err) {
    value result = tare__none(); // stays None: set by the output node only
    hand_over(x, kernels, err);
    for (; x->next != stop && x->next->op != NODE_OUTPUT; x->next = x->next->next)
        TARE_TRY(run_and_release(&x->r, x->next, &result));
    return TARE_OK;
}

tare_status tare__interpretation_look(interpretation *x, struct float_kernels *kernels, value *out,
                                      tare_error *err) {
    run *r = &x->r;
    op_call call;
    hand_over(x, kernels, err);
    const module *m =
        x->next->op == NODE_CALL_MODULE ? tare__module_find(r->it->root, x->next->target) : NULL;
    if (m == NULL || m->class->role != ROLE_FUSED || m->child_count == 0)
        return run_node(r, x->next, out);
    TARE_TRY(make_call(r, x->next, &call));
    if (call.arg_count == 0)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "node '%s': takes an argument",
                          x->next->name);
    return tare__module_run_on(&call, m->children[0].module, &call.args[0], false, out);
}
