// SPDX-License-Identifier: Apache-2.0
// Prepare: replaces operators that write a tensor in place, directly or through views, by those
// that return what is written, if the tensor is read later. The observer of a tensor stands behind
// the node that made it, where it would see the values before the write, and convert would quantize
// these (torch does so: a list of results that a loop fills was quantized as zeros).
#include <string.h>

#include "flow/export/steps.h"
#include "ops/op.h"

typedef struct tensor_state {
    node *base;     // the node whose tensor it shares; NULL: it made its own
    node *maker;    // the node that made the tensor; NULL: itself
    bool is_view;   // of the base's tensor; false: it holds the same
    size_t writes;  // for a node that made a tensor
    node *now;      // holds its values now; NULL: itself
    size_t seen;    // how many of the writes `now` has
    bool is_erased; // a write that was replaced
    bool varies;    // depends on an input of the model
    size_t order;   // in the graph
    size_t last;    // for a node that made a tensor: the order of the last node that reads it
} tensor_state;

// Views of before a write are made again for each read behind it. A file with many of both would
// take a graph beyond all measure.
enum { MOST_MADE = 1 << 18 };

typedef struct write_walk {
    pass *p;
    tensor_state *states; // by id
    size_t count;         // ids before the walk
    size_t made;          // nodes
} write_walk;

static node *maker_of(const write_walk *w, node *n) {
    return w->states[n->id].maker != NULL ? w->states[n->id].maker : n;
}

// Keeps the last reader of n, which is a reader of the tensor.
static void note_readers(write_walk *w, node *n) {
    tensor_state *made = &w->states[maker_of(w, n)->id];
    for (size_t i = 0; i < n->user_count; i++)
        if (n->users[i]->id < w->count && w->states[n->users[i]->id].order > made->last)
            made->last = w->states[n->users[i]->id].order;
}

// n has the tensor of `base`, or is a view of it.
static void share_tensor(write_walk *w, node *n, node *base) {
    w->states[n->id].base = base;
    w->states[n->id].maker = maker_of(w, base);
    note_readers(w, n);
}

// The row of the operator that puts a view back; NULL: n is no view.
static const op_info *put_back_of(const node *n) {
    const op_info *op = n->op == NODE_CALL_FUNCTION ? tare__function_row(n) : NULL;
    return op != NULL && op->put_back != NULL ? tare__op_by_id(op->put_back, 0) : NULL;
}

// --- present values ---

// view(base, ..), or with a part: put_back(base, part, ..).
static tare_status call_like(write_walk *w, const node *view, const char *target, node *base,
                             node *part, const node *like, node *before, node **out) {
    value *args = tare__arena_array(&w->p->scratch, view->arg_count + 1, sizeof *args);
    if (args == NULL) return tare__out_of_memory(w->p->err);
    if (++w->made > MOST_MADE)
        return tare__fail(w->p->err, TARE_UNSUPPORTED,
                          "node '%s': views of tensors that are written in place, made again "
                          "behind each write, are more than %d nodes",
                          before->name, MOST_MADE);
    size_t count = 0;
    args[count++] = tare__node_value(base);
    if (part != NULL) args[count++] = tare__node_value(part);
    for (size_t i = 1; i < view->arg_count; i++) args[count++] = view->args[i];
    const node_spec made = {.op = NODE_CALL_FUNCTION,
                            .target = target,
                            .args = args,
                            .arg_count = count,
                            .kwargs = view->kwargs,
                            .kwarg_count = view->kwarg_count,
                            .like = like};
    return tare__graph_insert(w->p->model->root->graph, &made, before, out, w->p->err);
}

// *out: the node that has n's values in front of a node: views of before a write are made again,
// from the first that is not up to date.
static tare_status find_present(write_walk *w, node *n, node *before, node **out) {
    *out = n;
    if (n->id >= w->count) return TARE_OK;
    const size_t writes = w->states[maker_of(w, n)->id].writes;
    size_t depth = 0;
    for (const node *v = n; w->states[v->id].seen != writes; v = w->states[v->id].base) depth++;
    if (depth == 0 && w->states[n->id].now == NULL) return TARE_OK;
    node **views = tare__arena_array(&w->p->scratch, depth + 1, sizeof(node *));
    if (views == NULL) return tare__out_of_memory(w->p->err);
    for (size_t i = depth + 1; i-- > 0; n = w->states[n->id].base) views[i] = n;
    node *now = w->states[views[0]->id].now != NULL ? w->states[views[0]->id].now : views[0];
    for (size_t i = 1; i <= depth; i++) {
        tensor_state *s = &w->states[views[i]->id];
        if (s->is_view)
            TARE_TRY(call_like(w, views[i], views[i]->target, now, NULL, views[i], before, &now));
        s->now = now;
        s->seen = writes;
    }
    *out = now;
    return TARE_OK;
}

static node *now_of(void *user, node *n) {
    const write_walk *w = user;
    return n->id < w->count && w->states[n->id].now != NULL ? w->states[n->id].now : n;
}

// Makes n read what its inputs are now.
static tare_status redirect(write_walk *w, node *n) {
    arena *scratch = &w->p->scratch;
    bool is_changed = false;
    for (size_t i = 0; i < n->input_count; i++) {
        node *now;
        TARE_TRY(find_present(w, n->inputs[i], n, &now));
        is_changed |= now != n->inputs[i];
    }
    if (!is_changed) return TARE_OK;
    value *args = tare__arena_array(scratch, n->arg_count + 1, sizeof *args);
    keyword *kwargs = tare__arena_array(scratch, n->kwarg_count + 1, sizeof *kwargs);
    if (args == NULL || kwargs == NULL) return tare__out_of_memory(w->p->err);
    for (size_t i = 0; i < n->arg_count; i++)
        TARE_TRY(tare__value_copy(scratch, &n->args[i], now_of, w, &args[i], w->p->err));
    for (size_t i = 0; i < n->kwarg_count; i++) {
        kwargs[i].name = n->kwargs[i].name;
        TARE_TRY(
            tare__value_copy(scratch, &n->kwargs[i].value, now_of, w, &kwargs[i].value, w->p->err));
    }
    return tare__node_set_args(n, args, n->arg_count, kwargs, n->kwarg_count, w->p->err);
}

// --- writes ---

// *out: "torch.ops.aten.add.Tensor" for "..add_.Tensor"; NULL: there is none, or it changes the
// shape.
static tare_status find_plain_name(const write_walk *w, const node *n, const char **out) {
    char *name = tare__arena_strdup(&w->p->scratch, n->target);
    if (name == NULL) return tare__out_of_memory(w->p->err);
    char *overload = strrchr(name, '.'); // behind an underscore: n writes in place
    memmove(overload - 1, overload, strlen(overload) + 1);
    const op_info *op = tare__op_function(name);
    const bool turns =
        op != NULL && (op->put_back != NULL ||
                       OP_IS_ANY(tare__op_id(op), TARE_OP_TRANSPOSE, TARE_OP_SWAPAXES, TARE_OP_T));
    *out = op != NULL && !turns ? name : NULL;
    return TARE_OK;
}

// Puts what was written to a view into the tensor that it is a view of, and so on to the first.
// *made: in, what was written; out, the whole tensor.
static tare_status put_back(write_walk *w, node *view, node *before, node **made) {
    for (node *n = view; w->states[n->id].base != NULL; n = w->states[n->id].base) {
        node *base = w->states[n->id].base, *whole;
        if (!w->states[n->id].is_view) continue;
        TARE_TRY(find_present(w, base, before, &whole));
        const op_info *row = put_back_of(n);
        if (row->functions != NULL) {
            const op_name name = tare__op_function_name(row);
            TARE_TRY(call_like(w, n, name.text, whole, *made, base, before, made));
        } else { // a view in another shape
            const op_name name = tare__op_function_name(tare__op_row(TARE_OP_VIEW_AS));
            const node plain = {.arg_count = 0};
            TARE_TRY(call_like(w, &plain, name.text, *made, whole, base, before, made));
        }
    }
    return TARE_OK;
}

// True if n's values depend on an input: zeros_like takes the shape of its first argument alone.
static bool varies(const write_walk *w, const node *n) {
    const bool is_blind =
        n->op == NODE_CALL_FUNCTION && tare__op_has(tare__function_row(n), OP_BLIND_TO_FIRST);
    for (size_t i = 0; i < n->input_count; i++)
        if (!(is_blind && n->inputs[i] == tare__node_arg(n, 0)) &&
            w->states[n->inputs[i]->id].varies)
            return true;
    return n->op == NODE_PLACEHOLDER;
}

// n writes `written`. A write of a parameter or buffer stays, for it is the model's state, and so
// does one of constants, which nothing has to observe, or of what nothing reads later, apart from
// what the write itself returns.
static tare_status replace_write(write_walk *w, node *n, node *written) {
    node *maker = maker_of(w, written);
    const char *name = NULL;
    if (maker->op != NODE_GET_ATTR) TARE_TRY(find_plain_name(w, n, &name));
    const tensor_state *made = &w->states[maker->id];
    if (name == NULL || !made->varies || made->last <= w->states[n->id].order) return TARE_OK;
    const node_spec spec = {.op = NODE_CALL_FUNCTION,
                            .target = name,
                            .args = n->args,
                            .arg_count = n->arg_count,
                            .kwargs = n->kwargs,
                            .kwarg_count = n->kwarg_count,
                            .like = n};
    node *part, *whole;
    TARE_TRY(tare__graph_insert(w->p->model->root->graph, &spec, n, &part, w->p->err));
    part->debug_handle = n->debug_handle;
    whole = part;
    TARE_TRY(put_back(w, written, n, &whole));
    tensor_state *first = &w->states[maker->id];
    first->seen = ++first->writes;
    first->now = whole;
    share_tensor(w, n, written);
    w->states[n->id].is_erased = true;
    for (const node *same = n; same != NULL && same != maker; same = w->states[same->id].base) {
        w->states[same->id].now = part;
        w->states[same->id].seen = first->writes;
        if (w->states[same->id].is_view) break;
    }
    return TARE_OK;
}

// --- the walk ---

static tare_status visit(write_walk *w, node *n) {
    node *first = tare__node_arg(n, 0);
    tensor_state *s = &w->states[n->id];
    if (first != NULL && put_back_of(n) != NULL && !tare__writes_first_argument(n)) {
        share_tensor(w, n, first);
        s->is_view = true;
        s->seen = w->states[maker_of(w, n)->id].writes;
    }
    if (s->base == NULL) note_readers(w, n);
    s->varies = varies(w, n);
    if (first != NULL && s->varies && tare__writes_first_argument(n))
        w->states[maker_of(w, first)->id].varies = true;
    TARE_TRY(redirect(w, n));
    return first != NULL && tare__writes_first_argument(n) ? replace_write(w, n, first) : TARE_OK;
}

static bool has_write(const graph *g) {
    for (const node *n = g->first; n != NULL; n = n->next)
        if (tare__writes_first_argument(n)) return true;
    return false;
}

tare_status tare__pt2e_replace_writes(pass *p) {
    graph *g = p->model->root->graph;
    write_walk w = {.p = p, .count = g->next_id};
    size_t order = 0;
    if (!has_write(g)) return TARE_OK;
    w.states = tare__arena_array(&p->scratch, w.count + 1, sizeof *w.states);
    if (w.states == NULL) return tare__out_of_memory(p->err);
    for (const node *n = g->first; n != NULL; n = n->next) w.states[n->id].order = order++;
    for (node *n = g->first, *next; n != NULL; n = next) {
        next = n->next;
        TARE_TRY(visit(&w, n));
    }
    for (node *n = g->last, *prev; n != NULL; n = prev) {
        prev = n->prev;
        if (n->id < w.count && w.states[n->id].is_erased) TARE_TRY(tare__graph_erase(g, n, p->err));
    }
    return TARE_OK;
}
