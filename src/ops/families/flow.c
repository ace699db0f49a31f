// SPDX-License-Identifier: Apache-2.0
// Control flow of exported programs: operators with graphs as arguments, which are modules read by
// get_attr. A graph runs like a model within the model, so that its observers record.
#include <string.h>

#include "ops/families/families.h"
#include "ops/flow_op.h"
#include "ops/interpret.h"
#include "ops/rules.h"

enum { MOST_ROUNDS = 1 << 18 };

// --- arguments of graphs ---

typedef struct row {
    value items[FLOW_MOST_VALUES];
    size_t count;
} row;

static tare_status add(op_call *call, row *r, const value *v) {
    if (r->count == FLOW_MOST_VALUES)
        return tare__call_fail(call, "more than %d values for a graph", FLOW_MOST_VALUES);
    r->items[r->count++] = *v;
    return TARE_OK;
}

// Adds the items of a list; an absent list has none.
static tare_status add_list(op_call *call, row *r, size_t param) {
    const value *v = param < call->param_count ? call->param[param] : NULL;
    if (v == NULL || v->kind == VALUE_NONE) return TARE_OK;
    if (!tare__value_is_list(v))
        return tare__call_fail(call, "expected a list of values for a graph");
    for (uint32_t i = 0; i < v->count; i++) TARE_TRY(add(call, r, &v->as.items[i]));
    return TARE_OK;
}

static size_t list_count(const op_call *call, size_t param) {
    const value *v = call->param[param];
    return v != NULL && tare__value_is_list(v) ? v->count : 0;
}

// --- graphs ---

static tare_status find_graph(op_call *call, size_t param, const module **out) {
    const value *v = param < call->param_count ? call->param[param] : NULL;
    if (v == NULL || v->kind != VALUE_MODULE || v->as.module->graph == NULL)
        return tare__call_fail(call, "expected a module with a graph as argument %zu", param);
    *out = v->as.module;
    return TARE_OK;
}

// A graph of the call, run `rounds` times.
typedef struct graph_run {
    size_t param;
    int64_t rounds;
    bool shapes_only;
} graph_run;

// The interpreter of such a graph. Observers inside may change, as in the model itself.
static interpreter inside(const op_call *call, const module *m, const graph_run *g) {
    interpreter it = call->it != NULL ? *call->it : (interpreter){.root = m};
    it.root = m;
    it.own = tare__call_own(call, m);
    it.linear_rule = call->linear_rule;
    it.conv_rule = call->conv_rule;
    it.thread_count = call->thread_count;
    it.kernels = call->kernels;
    it.memory_limit = tare__call_memory_left(call);
    it.shapes_only = g->shapes_only;
    it.rounds = it.rounds < 0 ? -1 : tare__size_product(it.rounds > 0 ? it.rounds : 1, g->rounds);
    if (it.rounds == 0) it.rounds = -1;
    it.passes_over = false;
    it.stand_in = NULL; // paths of another tree
    it.writes = NULL;
    if (!it.sees_inside) it.after = NULL;
    if (!it.sees_inside || !g->shapes_only) it.shaped = NULL;
    return it;
}

// Runs a graph. *out: its results as a sequence, even if there is one tensor only; the caller owns
// the references.
static tare_status run_rounds(op_call *call, const graph_run *g, const row *args, arena *memory,
                              value *out) {
    const module *m = NULL;
    value made;
    TARE_TRY(find_graph(call, g->param, &m));
    const interpreter it = inside(call, m, g);
    bool handled = false;
    if (it.run_graph != NULL && !g->shapes_only)
        TARE_TRY(
            it.run_graph(it.user, &it, args->items, args->count, memory, out, &handled, call->err));
    if (handled) return TARE_OK;
    TARE_TRY(tare__interpret(&it, args->items, args->count, memory, &made, call->err));
    if (tare__value_is_list(&made)) {
        *out = made;
        return TARE_OK;
    }
    *out = tare__value_sequence(memory, VALUE_TUPLE, 1);
    if (out->as.items == NULL) {
        tare__value_release_tensors(&made);
        return tare__out_of_memory(call->err);
    }
    out->as.items[0] = made;
    return TARE_OK;
}

static tare_status run_graph(op_call *call, size_t param, const row *args, bool shapes_only,
                             arena *memory, value *out) {
    const graph_run once = {param, 1, shapes_only};
    return run_rounds(call, &once, args, memory, out);
}

// Whether someone looks at the shapes inside graphs.
static bool is_looked_into(const op_call *call) {
    return call->it != NULL && call->it->sees_inside && call->it->shaped != NULL;
}

// Runs a graph for who looks inside at shapes alone.
static tare_status look_into(op_call *call, size_t param, const row *args) {
    value made;
    TARE_TRY(run_graph(call, param, args, true, call->memory, &made));
    tare__value_release_tensors(&made);
    return TARE_OK;
}

// --- results ---

// A new meta tensor of v's shape, with a first dimension of size `lead` added; -1: none is added.
static tare_status like(op_call *call, const value *v, int64_t lead, value *out) {
    int64_t shape[TARE_MAX_DIMS];
    int ndim = 0;
    if (v->kind != VALUE_TENSOR)
        return tare__call_fail(call, "a graph gives something else than tensors");
    if (lead >= 0) shape[ndim++] = lead;
    if (ndim + v->as.tensor->ndim > TARE_MAX_DIMS)
        return tare__call_fail(call, "more than %d dimensions", TARE_MAX_DIMS);
    for (int d = 0; d < v->as.tensor->ndim; d++) shape[ndim++] = v->as.tensor->shape[d];
    TARE_TRY(tare__tensor_meta(v->as.tensor->dtype, ndim, shape, NULL, &out->as.tensor, call->err));
    out->kind = VALUE_TENSOR;
    return TARE_OK;
}

// Sets the result to tensors like `made`; those after the first `plain` get a first dimension of
// size `lead`.
static tare_status result_like(op_call *call, const value *made, size_t plain, int64_t lead) {
    TARE_TRY(tare__call_result_tuple(call, made->count));
    for (uint32_t i = 0; i < made->count; i++)
        TARE_TRY(like(call, &made->as.items[i], i < plain ? -1 : lead, &call->result.as.items[i]));
    return TARE_OK;
}

// Copies a value to slice `at` of `slice_count` equal ones of a result.
static tare_status copy_slice(op_call *call, const value *from, int64_t at, int64_t slice_count,
                              value *to) {
    const tare_tensor *t = from->kind == VALUE_TENSOR ? from->as.tensor : NULL;
    tare_tensor *y = to->as.tensor;
    if (t == NULL || t->dtype != y->dtype || t->q != NULL || t->count != y->count / slice_count)
        return tare__call_fail(call, "a graph gives another shape or dtype than it did at first");
    const size_t size = tare__tensor_bytes(t);
    if (size > 0) memcpy((char *)y->data + (size_t)at * size, t->data, size);
    return TARE_OK;
}

static tare_status copy_whole(op_call *call, const value *from, value *to) {
    return copy_slice(call, from, 0, 1, to);
}

// Copies items that share storage with a result written before them: a graph may return its inputs
// in another order.
static tare_status detach(op_call *call, value *made) {
    for (uint32_t i = 0; i < made->count; i++) {
        value *v = &made->as.items[i];
        for (uint32_t k = 0; k < i && v->kind == VALUE_TENSOR; k++) {
            tare_tensor *copy = NULL;
            if (v->as.tensor->store != call->result.as.items[k].as.tensor->store) continue;
            TARE_TRY(tare__tensor_copy(v->as.tensor, &copy, call->err));
            tare_tensor_release(v->as.tensor);
            v->as.tensor = copy;
        }
    }
    return TARE_OK;
}

// --- cond(pred, true_fn, false_fn, operands) ---

enum { PREDICATE, TRUE_GRAPH, FALSE_GRAPH, OPERANDS };

static tare_status cond_shape(op_call *call) {
    row args = {.count = 0};
    value made;
    TARE_TRY(add_list(call, &args, OPERANDS));
    TARE_TRY(run_graph(call, TRUE_GRAPH, &args, true, call->memory, &made));
    const tare_status status = result_like(call, &made, made.count, -1);
    tare__value_release_tensors(&made);
    // Both give the same shapes; the other one runs for who looks inside at shapes alone. (With
    // data the graph that is taken is seen when it runs.)
    const module *taken = NULL, *other = NULL;
    if (status != TARE_OK || !is_looked_into(call)) return status;
    TARE_TRY(find_graph(call, TRUE_GRAPH, &taken));
    TARE_TRY(find_graph(call, FALSE_GRAPH, &other));
    return taken == other ? TARE_OK : look_into(call, FALSE_GRAPH, &args);
}

static tare_status copy_results(op_call *call, value *made) {
    if (made->count != call->result.count)
        return tare__call_fail(call, "a graph gives %u results, expected %u", made->count,
                               call->result.count);
    TARE_TRY(detach(call, made));
    for (uint32_t i = 0; i < made->count; i++)
        TARE_TRY(copy_whole(call, &made->as.items[i], &call->result.as.items[i]));
    return TARE_OK;
}

static tare_status cond_reference(op_call *call) {
    row args = {.count = 0};
    value made;
    double holds;
    if (call->param[PREDICATE] == NULL || !tare__call_number(call->param[PREDICATE], &holds))
        return tare__call_fail(call, "expected one bool as predicate");
    TARE_TRY(add_list(call, &args, OPERANDS));
    TARE_TRY(
        run_graph(call, holds != 0 ? TRUE_GRAPH : FALSE_GRAPH, &args, false, call->memory, &made));
    const tare_status status = copy_results(call, &made);
    tare__value_release_tensors(&made);
    return status;
}

// --- while_loop(cond_fn, body_fn, carried, additional) ---

enum { LOOP_CONDITION, LOOP_BODY, CARRIED, LOOP_ADDITIONAL };

static tare_status while_loop_shape(op_call *call) {
    row carried = {.count = 0};
    TARE_TRY(add_list(call, &carried, CARRIED));
    const value made = {
        .kind = VALUE_TUPLE, .count = (uint32_t)carried.count, .as.items = carried.items};
    TARE_TRY(result_like(call, &made, carried.count, -1));
    if (!is_looked_into(call)) return TARE_OK;
    TARE_TRY(add_list(call, &carried, LOOP_ADDITIONAL));
    TARE_TRY(look_into(call, LOOP_CONDITION, &carried));
    return look_into(call, LOOP_BODY, &carried);
}

static tare_status loop_goes_on(op_call *call, const row *args, arena *memory, bool *out) {
    value made;
    double holds = 0;
    TARE_TRY(run_graph(call, LOOP_CONDITION, args, false, memory, &made));
    const bool is_number = made.count == 1 && tare__call_number(&made.as.items[0], &holds);
    tare__value_release_tensors(&made);
    if (!is_number) return tare__call_fail(call, "the condition gives something else than a bool");
    *out = holds != 0;
    return TARE_OK;
}

// One iteration. The carried values are stored in the result, which the graph reads and its results
// overwrite.
static tare_status run_round(op_call *call, const row *args, arena *memory) {
    value made;
    TARE_TRY(run_graph(call, LOOP_BODY, args, false, memory, &made));
    const tare_status status = copy_results(call, &made);
    tare__value_release_tensors(&made);
    return status;
}

static tare_status while_loop_reference(op_call *call) {
    row args = {.count = 0};
    TARE_TRY(add_list(call, &args, CARRIED));
    for (size_t i = 0; i < args.count; i++) {
        TARE_TRY(copy_whole(call, &args.items[i], &call->result.as.items[i]));
        args.items[i] = call->result.as.items[i];
    }
    TARE_TRY(add_list(call, &args, LOOP_ADDITIONAL));
    for (int64_t round = 0; round < MOST_ROUNDS; round++) {
        arena memory = {0};
        bool goes_on = false;
        tare_status status = loop_goes_on(call, &args, &memory, &goes_on);
        if (status == TARE_OK && goes_on) status = run_round(call, &args, &memory);
        tare__arena_release(&memory);
        if (status != TARE_OK || !goes_on) return status;
    }
    return tare__call_fail(call, "the loop does not end within %d rounds", MOST_ROUNDS);
}

// --- scan(combine_fn, init, xs, additional) and map_impl(f, xs, additional) ---

// The lists after the graph: carried values (scan only), tensors that are sliced along the first
// dimension, and values that are the same in all iterations.
typedef struct cutting {
    size_t carried, cut, additional; // indices of parameters; carried 0: there are none
    size_t carried_count, cut_count;
    int64_t rounds;
} cutting;

static tare_status plan_cutting(op_call *call, bool is_scan, cutting *out) {
    *out = is_scan ? (cutting){.carried = 1, .cut = 2, .additional = 3}
                   : (cutting){.cut = 1, .additional = 2};
    out->carried_count = is_scan ? list_count(call, out->carried) : 0;
    out->cut_count = list_count(call, out->cut);
    out->rounds = -1;
    for (size_t i = 0; i < out->cut_count; i++) {
        const value *v = &call->param[out->cut]->as.items[i];
        if (v->kind != VALUE_TENSOR || v->as.tensor->ndim == 0 || v->as.tensor->q != NULL)
            return tare__call_fail(call, "expected tensors with a first dimension to go along");
        if (out->rounds >= 0 && v->as.tensor->shape[0] != out->rounds)
            return tare__call_fail(call, "the tensors' first dimensions differ");
        out->rounds = v->as.tensor->shape[0];
    }
    if (out->rounds < 0) return tare__call_fail(call, "there is nothing to go along");
    if (out->rounds > MOST_ROUNDS) return tare__call_fail(call, "more than %d rounds", MOST_ROUNDS);
    return TARE_OK;
}

// Adds slice `at` of every sliced tensor to args; for -1 meta tensors.
static tare_status add_cuts(op_call *call, const cutting *c, int64_t at, row *args) {
    for (size_t i = 0; i < c->cut_count; i++) {
        const tare_tensor *x = call->param[c->cut]->as.items[i].as.tensor;
        value cut = {.kind = VALUE_TENSOR};
        TARE_TRY(tare__tensor_meta(x->dtype, x->ndim - 1, x->shape + 1, NULL, &cut.as.tensor,
                                   call->err));
        const tare_status status = add(call, args, &cut);
        if (status != TARE_OK) {
            tare_tensor_release(cut.as.tensor);
            return status;
        }
        if (at < 0) continue;
        TARE_TRY(tare__tensor_allocate(cut.as.tensor, call->err));
        const size_t size = tare__tensor_bytes(cut.as.tensor);
        if (size > 0) memcpy(cut.as.tensor->data, (const char *)x->data + (size_t)at * size, size);
    }
    return TARE_OK;
}

static void release_cuts(const cutting *c, row *args) {
    for (size_t i = c->carried_count; i < args->count && i < c->carried_count + c->cut_count; i++)
        tare_tensor_release(args->items[i].as.tensor);
}

static tare_status run_cut(op_call *call, const cutting *c, int64_t at, row *args, arena *memory,
                           value *made) {
    tare_status status = add_cuts(call, c, at, args);
    row all = *args;
    if (status == TARE_OK) status = add_list(call, &all, c->additional);
    const graph_run g = {.param = 0, .rounds = c->rounds, .shapes_only = at < 0};
    if (status == TARE_OK) status = run_rounds(call, &g, &all, memory, made);
    release_cuts(c, args);
    args->count = c->carried_count;
    return status;
}

static tare_status along_shape(op_call *call, bool is_scan) {
    cutting c;
    row args = {.count = 0};
    value made;
    TARE_TRY(plan_cutting(call, is_scan, &c));
    if (is_scan) TARE_TRY(add_list(call, &args, c.carried));
    TARE_TRY(run_cut(call, &c, -1, &args, call->memory, &made));
    const tare_status status =
        made.count >= c.carried_count
            ? result_like(call, &made, c.carried_count, c.rounds)
            : tare__call_fail(call, "the graph gives fewer values than it carries");
    tare__value_release_tensors(&made);
    return status;
}

static tare_status keep_round(op_call *call, const cutting *c, int64_t at, value *made) {
    if (made->count != call->result.count)
        return tare__call_fail(call, "a graph gives %u results, expected %u", made->count,
                               call->result.count);
    TARE_TRY(detach(call, made));
    for (uint32_t i = 0; i < made->count; i++) {
        const bool is_carried = i < c->carried_count;
        TARE_TRY(copy_slice(call, &made->as.items[i], is_carried ? 0 : at,
                            is_carried ? 1 : c->rounds, &call->result.as.items[i]));
    }
    return TARE_OK;
}

static tare_status along_reference(op_call *call, bool is_scan) {
    cutting c;
    row args = {.count = 0};
    TARE_TRY(plan_cutting(call, is_scan, &c));
    if (is_scan) TARE_TRY(add_list(call, &args, c.carried));
    for (size_t i = 0; i < c.carried_count; i++) {
        TARE_TRY(copy_whole(call, &args.items[i], &call->result.as.items[i]));
        args.items[i] = call->result.as.items[i];
    }
    for (int64_t at = 0; at < c.rounds; at++) {
        arena memory = {0};
        value made;
        tare_status status = run_cut(call, &c, at, &args, &memory, &made);
        if (status == TARE_OK) {
            status = keep_round(call, &c, at, &made);
            tare__value_release_tensors(&made);
        }
        tare__arena_release(&memory);
        TARE_TRY(status);
    }
    return TARE_OK;
}

static tare_status scan_shape(op_call *call) {
    return along_shape(call, true);
}
static tare_status scan_reference(op_call *call) {
    return along_reference(call, true);
}
static tare_status map_shape(op_call *call) {
    return along_shape(call, false);
}
static tare_status map_reference(op_call *call) {
    return along_reference(call, false);
}

// --- wrap_with_set_grad_enabled(enabled, graph, *args) and wrap_with_autocast(device_type, dtype,
// enabled, cache_enabled, graph, *args), which stand for Python's with statements ---

// Runs the graph on all arguments after it.
static tare_status run_wrapped(op_call *call, size_t at, bool shapes_only, value *made) {
    row args = {.count = 0};
    for (size_t i = at + 1; i < call->arg_count; i++) TARE_TRY(add(call, &args, &call->args[i]));
    return run_graph(call, at, &args, shapes_only, call->memory, made);
}

static tare_status wrapped_shape(op_call *call, size_t at) {
    value made;
    TARE_TRY(run_wrapped(call, at, true, &made));
    const tare_status status = result_like(call, &made, made.count, -1);
    tare__value_release_tensors(&made);
    return status;
}

static tare_status wrapped_reference(op_call *call, size_t at) {
    value made;
    TARE_TRY(run_wrapped(call, at, false, &made));
    const tare_status status = copy_results(call, &made);
    tare__value_release_tensors(&made);
    return status;
}

enum { GRAD_GRAPH = 1, CAST_DEVICE = 0, CAST_ENABLED = 2, CAST_GRAPH = 4 };

static tare_status set_grad_shape(op_call *call) {
    return wrapped_shape(call, GRAD_GRAPH);
}
static tare_status set_grad_reference(op_call *call) {
    return wrapped_reference(call, GRAD_GRAPH);
}

// tare does not reproduce another device's dtypes under autocast.
static tare_status autocast_shape(op_call *call) {
    const char *device;
    bool enabled;
    TARE_TRY(tare__call_text(call, CAST_DEVICE, "cpu", &device));
    TARE_TRY(tare__call_bool(call, CAST_ENABLED, true, &enabled));
    if (enabled && strcmp(device, "cpu") == 0)
        return tare__call_fail(call, "autocast is not supported: export the model without it");
    return wrapped_shape(call, CAST_GRAPH);
}
static tare_status autocast_reference(op_call *call) {
    return wrapped_reference(call, CAST_GRAPH);
}

// The interpreter runs these rows, because branches and numbers of iterations depend on data.
#define FLOW(name, parameters, shape_rule, compute)                                                \
    {                                                                                              \
        .id = "higher_order." name, .functions = "torch.ops.higher_order." name,                   \
        .params = parameters, .traits = OP_ANY_DTYPE | OP_SHAPED_BY_DATA, .shape = shape_rule,     \
        .reference = compute                                                                       \
    }

static const op_info rows[] = {
    FLOW("cond", "pred|true_fn|false_fn|operands", cond_shape, cond_reference),
    FLOW("while_loop", "cond_fn|body_fn|carried_inputs|additional_inputs", while_loop_shape,
         while_loop_reference),
    FLOW("scan", "combine_fn|init|xs|additional_inputs", scan_shape, scan_reference),
    FLOW("map_impl", "f|xs|pos_args", map_shape, map_reference),
    FLOW("wrap_with_set_grad_enabled", "enabled|wrapped_func|*inputs", set_grad_shape,
         set_grad_reference),
    FLOW("wrap_with_autocast", "device_type|dtype|enabled|cache_enabled|wrapped_func|*inputs",
         autocast_shape, autocast_reference),
};

const op_table tare__flow_ops = OP_TABLE(rows);
