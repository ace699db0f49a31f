// SPDX-License-Identifier: Apache-2.0
// Converts calls with the table of ops/export_rows.h: finds the entry for a call, and orders its
// arguments as in aten.
#include <string.h>

#include "core/text/text.h"
#include "ops/export_rows.h"
#include "quantizers/patterns/capture_state.h"

tare_status tare__capture_parameter(capture *c, value *out) {
    node *made = NULL;
    const node_spec spec = {.op = NODE_PLACEHOLDER, .target = "size", .candidate = "size"};
    TARE_TRY(tare__graph_insert(c->g, &spec, c->g->first, &made, c->err));
    *out = tare__node_value(made);
    return TARE_OK;
}

// --- binding ---

typedef struct bound_call {
    export_call call;
    value given[MOST_ARGUMENTS]; // by the parameters in Python
    bool has[MOST_ARGUMENTS];
} bound_call;

static bool take_rest(capture *c, const node *n, size_t first, value *out) {
    if (n->arg_count == first + 1 &&
        (n->args[first].kind == VALUE_LIST || n->args[first].kind == VALUE_TUPLE)) {
        *out = n->args[first];
        return true;
    }
    *out = tare__value_sequence(&c->scratch, VALUE_LIST, (uint32_t)(n->arg_count - first));
    if (out->as.items == NULL) return false;
    for (size_t i = first; i < n->arg_count; i++) out->as.items[i - first] = n->args[i];
    return true;
}

static bool bind(capture *c, const node *n, bound_call *b) {
    export_param p;
    for (size_t i = 0; i < n->arg_count; i++) {
        if (i >= MOST_ARGUMENTS || !tare__export_param(&b->call, i, &p) || p.is_keyword_only)
            return false;
        b->given[i] = n->args[i];
        b->has[i] = true;
        if (p.takes_rest) return n->kwarg_count == 0 && take_rest(c, n, i, &b->given[i]);
    }
    for (size_t i = 0; i < n->kwarg_count; i++) {
        size_t index;
        if (!tare__export_param_named(&b->call, n->kwargs[i].name, &index) ||
            index >= MOST_ARGUMENTS)
            return false;
        b->given[index] = n->kwargs[i].value;
        b->has[index] = true;
    }
    return true;
}

static bool is_string(const value *v, export_word word) {
    return v->kind == VALUE_STRING && strlen(v->as.text) == word.length &&
           memcmp(v->as.text, word.chars, word.length) == 0;
}

static bool meets(const export_param *p, bool has, const value *v) {
    const bool is_given = has && v->kind != VALUE_NONE;
    if (p->string.length > 0 && is_given) return is_string(v, p->string);
    switch (p->mark) {
    case '!':
        return is_given;
    case '&':
        return is_given && v->kind == VALUE_NODE;
    case '#':
        return is_given && v->kind != VALUE_NODE;
    case '\'':
        return is_given && v->kind == VALUE_STRING;
    case '^':
        return !has;
    default:
        return true;
    }
}

static bool fits(capture *c, const node *n, bound_call *b) {
    export_param p;
    if (!bind(c, n, b)) return false;
    for (size_t i = 0; tare__export_param(&b->call, i, &p); i++)
        if (!meets(&p, b->has[i], &b->given[i])) return false;
    return true;
}

static int rank_of(const capture *c, const node *n) {
    if (n == NULL || !c->has_facts || n->id >= c->facts.count || !c->facts.is_known[n->id])
        return 0;
    const value *fact = &c->facts.by_id[n->id];
    return fact->kind == VALUE_TENSOR ? (int)fact->count : 0;
}

static bool is_parameter(const node *n, const char *name) {
    const export_row *row = NULL;
    export_call call;
    size_t ignored;
    for (size_t i = 0; (row = tare__export_row_at(i)) != NULL; i++)
        if (tare__export_call_of(row, n, &call) && tare__export_param_named(&call, name, &ignored))
            return true;
    return false;
}

static tare_status check_keywords(const capture *c, const node *n) {
    for (size_t i = 0; i < n->kwarg_count; i++)
        if (!is_parameter(n, n->kwargs[i].name))
            return tare__fail(c->err, TARE_INVALID_ARGUMENT,
                              "node '%s': %s has no argument '%s' in a pattern", n->name, n->target,
                              n->kwargs[i].name);
    return TARE_OK;
}

// *is_there false: not a call of a torch function.
static tare_status find_row(capture *c, const node *n, bound_call *b, bool *is_there) {
    const int rank = rank_of(c, tare__node_arg(n, 0));
    bool is_known = false, lacks_rank = false;
    const export_row *row = NULL;
    *is_there = false;
    for (size_t i = 0; (row = tare__export_row_at(i)) != NULL; i++) {
        *b = (bound_call){.has = {false}};
        if (!tare__export_call_of(row, n, &b->call)) continue;
        is_known = true;
        if (!fits(c, n, b)) continue;
        lacks_rank = lacks_rank || (row->rank > 0 && rank == 0);
        if (row->rank > 0 && row->rank != rank) continue;
        *is_there = true;
        return TARE_OK;
    }
    if (lacks_rank)
        return tare__hint(c->err,
                          tare__fail(c->err, TARE_INVALID_ARGUMENT,
                                     "node '%s': the operator for %s depends on its input's rank",
                                     n->name, n->target),
                          "capture the pattern with an example");
    const bool is_torchs =
        n->op == NODE_CALL_METHOD || tare__function_op(n) == TARE_OP_GETATTR ||
        tare__starts_with(n->target, "torch.nn.") ||
        (tare__starts_with(n->target, "torch.") && !tare__is_overload(n->target));
    if (!is_known && !is_torchs) return TARE_OK;
    if (is_known) TARE_TRY(check_keywords(c, n));
    return tare__hint(c->err,
                      tare__fail(c->err, TARE_INVALID_ARGUMENT,
                                 is_known ? "node '%s': a pattern cannot give %s these arguments"
                                          : "node '%s': a pattern cannot call %s",
                                 n->name, n->target),
                      "write the operator that torch.export makes of it: %s..",
                      tare__export_target("", false).text);
}

// --- calls of aten ---

// Repeats a number for each dimension, whose count comes from the signature or the entry's rank,
// because aten expects a list.
static bool spread(capture *c, const bound_call *b, const signature_param *p, value *v) {
    const int rank = b->call.row->rank, count = rank > 0 ? rank - 2 : p->list_size;
    if (v->kind == VALUE_TUPLE) v->kind = VALUE_LIST;
    if (p->list_of == 0 || count == 0) return true;
    if (v->kind == VALUE_LIST || v->kind == VALUE_NONE) return true;
    const value list = tare__value_sequence(&c->scratch, VALUE_LIST, (uint32_t)count);
    if (list.as.items == NULL) return false;
    for (uint32_t i = 0; i < list.count; i++) list.as.items[i] = *v;
    *v = list;
    return true;
}

typedef enum argument_state { IS_THERE, IS_LEFT_OUT, IS_FILLER, IS_OUT_OF_MEMORY } argument_state;

// True for the flag that enables cuDNN, which matches any value because it depends on the exporting
// machine.
static bool is_any(const signature_param *p) {
    static const char cudnn[] = "cudnn_enable";
    return p->length >= strlen(cudnn) && memcmp(p->name, cudnn, strlen(cudnn)) == 0;
}

static argument_state read_argument(capture *c, const bound_call *b, const signature_param *p,
                                    value *out) {
    size_t at = 0;
    export_param given;
    argument_state state = IS_FILLER;
    if (is_any(p)) return tare__capture_parameter(c, out) == TARE_OK ? IS_THERE : IS_OUT_OF_MEMORY;
    const bool is_pythons = tare__export_param_of(&b->call, p, &at);
    if (is_pythons && b->has[at]) {
        *out = b->given[at];
        state = IS_THERE;
    } else if (is_pythons && tare__export_param(&b->call, at, &given) &&
               given.fallback.length > 0) {
        (void)tare__signature_literal(given.fallback.chars, given.fallback.length, out);
        state = IS_THERE;
    } else if (!tare__signature_default(p, out)) {
        return IS_LEFT_OUT;
    }
    return spread(c, b, p, out) ? state : IS_OUT_OF_MEMORY;
}

// Omits default arguments, unless others follow.
static tare_status order_arguments(capture *c, const node *n, const bound_call *b, aten_call *out) {
    signature_param p;
    size_t written = 0;
    bool has_gap = false;
    *out = (aten_call){.arg_count = 0};
    for (size_t i = 0; tare__signature_param(&b->call.signature, i, &p); i++) {
        value v;
        const argument_state state = read_argument(c, b, &p, &v);
        if (state == IS_OUT_OF_MEMORY) return tare__out_of_memory(c->err);
        if (p.is_keyword_only) {
            const char *name = tare__arena_strndup(&c->scratch, p.name, p.length);
            if (name == NULL) return tare__out_of_memory(c->err);
            if (state == IS_THERE)
                out->kwargs[out->kwarg_count++] = (keyword){.name = name, .value = v};
            continue;
        }
        has_gap = has_gap || state == IS_LEFT_OUT;
        if (state == IS_LEFT_OUT) continue;
        if (state == IS_THERE && has_gap)
            return tare__fail(c->err, TARE_INVALID_ARGUMENT,
                              "node '%s': in a pattern %s needs the arguments before '%.*s'",
                              n->name, n->target, (int)p.length, p.name);
        out->args[written++] = v;
        if (state == IS_THERE) out->arg_count = written;
    }
    return TARE_OK;
}

static bool wants_in_place(const bound_call *b) {
    size_t index = 0;
    return tare__export_param_named(&b->call, "inplace", &index) && b->has[index] &&
           b->given[index].kind == VALUE_BOOL && b->given[index].as.boolean;
}

tare_status tare__capture_become(capture *c, node *n, const char *target, const aten_call *call) {
    n->target = tare__arena_strdup(&c->g->memory, target);
    if (n->target == NULL) return tare__out_of_memory(c->err);
    n->op = NODE_CALL_FUNCTION;
    return tare__node_set_args(n, call->args, call->arg_count, call->kwargs, call->kwarg_count,
                               c->err);
}

tare_status tare__capture_insert(capture *c, node *before, const char *target, const value *args,
                                 size_t count, value *out) {
    node *made = NULL;
    const node_spec spec = {
        .op = NODE_CALL_FUNCTION, .target = target, .args = args, .arg_count = count};
    TARE_TRY(tare__graph_insert(c->g, &spec, before, &made, c->err));
    *out = tare__node_value(made);
    return TARE_OK;
}

tare_status tare__capture_bind(capture *c, node *n) {
    bound_call b;
    aten_call call;
    bool is_there;
    TARE_TRY(find_row(c, n, &b, &is_there));
    if (!is_there) return TARE_OK;
    const export_row *row = b.call.row;
    TARE_TRY(order_arguments(c, n, &b, &call));
    if (row->before != NULL) {
        const op_name before = tare__export_target(row->before, false);
        TARE_TRY(tare__capture_insert(c, n, before.text, call.args, 1, &call.args[0]));
    }
    if (wants_in_place(&b)) b.call.target = tare__export_target(row->overload, true);
    return tare__capture_become(c, n, b.call.target.text, &call);
}
