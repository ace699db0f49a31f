// SPDX-License-Identifier: Apache-2.0
// Calls by the rows of capture_rows.c: which row a call fits, and its arguments in aten's order.
#include <string.h>

#include "core/text/text.h"
#include "ops/op.h"
#include "quantizers/patterns/capture_rows.h"
#include "quantizers/patterns/capture_state.h"

tare_status tare__capture_parameter(capture *c, value *out) {
    node *made = NULL;
    const node_spec spec = {.op = NODE_PLACEHOLDER, .target = "size", .candidate = "size"};
    TARE_TRY(tare__graph_insert(c->g, &spec, c->g->first, &made, c->err));
    *out = tare__node_value(made);
    return TARE_OK;
}

// --- rows ---

/// One of "a|*b|c*2=1": where its name is, and what follows it.
typedef struct row_item {
    const char *name, *rest;
    size_t length, rest_length;
    bool is_rest, is_keyword; // "*a", "@a"
} row_item;

static bool item_at(const char *list, size_t index, row_item *out) {
    for (; index > 0 && *list != '\0'; index--) {
        list += strcspn(list, "|");
        if (*list == '|') list++;
    }
    if (*list == '\0') return false;
    const size_t whole = strcspn(list, "|");
    *out = (row_item){.is_rest = *list == '*', .is_keyword = *list == '@'};
    out->name = list + (out->is_rest || out->is_keyword);
    out->length = strcspn(out->name, "|*=:!&#'");
    if (out->length > whole) out->length = whole;
    out->rest = out->name + out->length;
    out->rest_length = (size_t)(list + whole - out->rest);
    return true;
}

static bool item_is(const row_item *item, const char *name, size_t length) {
    return item->length == length && memcmp(item->name, name, length) == 0;
}

static bool find_item(const char *list, const char *name, size_t length, size_t *index) {
    row_item item;
    for (*index = 0; item_at(list, *index, &item); (*index)++)
        if (item_is(&item, name, length)) return true;
    return false;
}

// A name of the row's, by any name that the function has.
static bool names_call(const capture_row *row, const node *n) {
    const char *target =
        n->op == NODE_CALL_FUNCTION ? tare__function_canonical(n->target) : n->target;
    for (const char *at = row->names; *at != '\0';) {
        const size_t length = strcspn(at, "|");
        const bool is_method = *at == '.';
        char name[96] = "";
        if (length < sizeof name) memcpy(name, at + is_method, length - is_method);
        if (is_method == (n->op == NODE_CALL_METHOD) &&
            strcmp(is_method ? name : tare__function_canonical(name), target) == 0)
            return true;
        at += length + (at[length] == '|');
    }
    return false;
}

// --- constants ---

static bool starts(const char *chars, size_t length, const char *word) {
    return length == strlen(word) && memcmp(chars, word, length) == 0;
}

static bool read_literal(capture *c, const char *chars, size_t length, value *out) {
    static const char dtype[] = "torch.";
    double number = 0;
    *out = tare__none();
    if (starts(chars, length, "None")) return true;
    if (starts(chars, length, "[]")) {
        *out = (value){.kind = VALUE_LIST};
    } else if (starts(chars, length, "True") || starts(chars, length, "False")) {
        *out = tare__bool(*chars == 'T');
    } else if (length > 2 && *chars == '\'') {
        const char *inner = tare__arena_strndup(&c->g->memory, chars + 1, length - 2);
        if (inner == NULL) return false;
        *out = tare__string(inner);
    } else if (length > strlen(dtype) && memcmp(chars, dtype, strlen(dtype)) == 0) {
        *out = tare__dtype_value(TARE_FLOAT32);
    } else if (tare__parse_double(chars, length, &number)) {
        const bool is_int =
            memchr(chars, '.', length) == NULL && memchr(chars, 'e', length) == NULL;
        *out = is_int ? tare__int((int64_t)number) : tare__float(number);
    } else {
        return false;
    }
    return true;
}

// --- binding ---

typedef struct bound_call {
    value given[MOST_ARGUMENTS]; // by the row's parameters
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

static bool bind(capture *c, const node *n, const capture_row *row, bound_call *b) {
    row_item item;
    *b = (bound_call){.has = {false}};
    for (size_t i = 0; i < n->arg_count; i++) {
        if (i >= MOST_ARGUMENTS || !item_at(row->params, i, &item)) return false;
        b->given[i] = n->args[i];
        b->has[i] = true;
        if (item.is_rest) return n->kwarg_count == 0 && take_rest(c, n, i, &b->given[i]);
    }
    for (size_t i = 0; i < n->kwarg_count; i++) {
        const char *name = n->kwargs[i].name;
        size_t index = 0;
        if (!find_item(row->params, name, strlen(name), &index) || index >= MOST_ARGUMENTS)
            return false;
        b->given[index] = n->kwargs[i].value;
        b->has[index] = true;
    }
    return true;
}

// "!" given, "&" a tensor, "#" a constant, "'" a string, "=text" that string or nothing, "!=text".
static bool meets(const row_item *item, bool has, const value *v) {
    const bool is_given = has && v->kind != VALUE_NONE;
    if (item->rest_length == 0) return true;
    const char *equals = memchr(item->rest, '=', item->rest_length);
    if (equals != NULL) {
        const size_t length = (size_t)(item->rest + item->rest_length - equals - 1);
        if (!is_given) return *item->rest != '!';
        return v->kind == VALUE_STRING && starts(equals + 1, length, v->as.text);
    }
    switch (*item->rest) {
    case '&':
        return is_given && v->kind == VALUE_NODE;
    case '#':
        return is_given && v->kind != VALUE_NODE;
    case '\'':
        return is_given && v->kind == VALUE_STRING;
    default:
        return is_given;
    }
}

static bool fits(capture *c, const node *n, const capture_row *row, bound_call *b) {
    row_item item;
    if (!names_call(row, n) || !bind(c, n, row, b)) return false;
    for (size_t i = 0; item_at(row->params, i, &item); i++)
        if (!meets(&item, b->has[i], &b->given[i])) return false;
    return true;
}

static int rank_of(const capture *c, const node *n) {
    if (n == NULL || !c->has_facts || n->id >= c->facts.count || !c->facts.is_known[n->id])
        return 0;
    const value *fact = &c->facts.by_id[n->id];
    return fact->kind == VALUE_TENSOR ? (int)fact->count : 0;
}

static bool is_parameter(const node *n, const char *name) {
    const capture_row *row = NULL;
    size_t ignored = 0;
    for (size_t i = 0; (row = tare__capture_row_at(i)) != NULL; i++)
        if (names_call(row, n) && find_item(row->params, name, strlen(name), &ignored)) return true;
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

// *out: NULL for what is no call of torch's.
static tare_status find_row(capture *c, const node *n, const capture_row **out, bound_call *b) {
    const int rank = rank_of(c, tare__node_arg(n, 0));
    bool is_known = false, lacks_rank = false;
    const capture_row *row = NULL;
    for (size_t i = 0; (row = tare__capture_row_at(i)) != NULL; i++) {
        is_known = is_known || names_call(row, n);
        if (!fits(c, n, row, b)) continue;
        lacks_rank = lacks_rank || (row->rank > 0 && rank == 0);
        if (row->rank > 0 && row->rank != rank) continue;
        *out = row;
        return TARE_OK;
    }
    *out = NULL;
    if (lacks_rank)
        return tare__hint(c->err,
                          tare__fail(c->err, TARE_INVALID_ARGUMENT,
                                     "node '%s': what %s becomes depends on its input's rank",
                                     n->name, n->target),
                          "capture the pattern under an example");
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
                      "write the operator that torch.export makes of it: torch.ops.aten...");
}

// --- the call of aten ---

// "a*2": a number for each of two dimensions. Lists of aten's are lists.
static bool spread(capture *c, const row_item *item, value *v) {
    if (v->kind == VALUE_TUPLE) v->kind = VALUE_LIST;
    if (item->rest_length < 2 || *item->rest != '*') return true;
    if (v->kind == VALUE_LIST || v->kind == VALUE_NONE) return true;
    const value list =
        tare__value_sequence(&c->scratch, VALUE_LIST, (uint32_t)(item->rest[1] - '0'));
    if (list.as.items == NULL) return false;
    for (uint32_t i = 0; i < list.count; i++) list.as.items[i] = *v;
    *v = list;
    return true;
}

typedef enum argument_state { IS_THERE, IS_LEFT_OUT, IS_FILLER, IS_OUT_OF_MEMORY } argument_state;

static argument_state read_argument(capture *c, const capture_row *row, const bound_call *b,
                                    const row_item *item, value *out) {
    size_t at = 0;
    if (item->length == 1 && *item->name == '?')
        return tare__capture_parameter(c, out) == TARE_OK ? IS_THERE : IS_OUT_OF_MEMORY;
    if (!find_item(row->params, item->name, item->length, &at))
        return read_literal(c, item->name, item->length + item->rest_length, out)
                   ? IS_THERE
                   : IS_OUT_OF_MEMORY;
    if (b->has[at]) {
        *out = b->given[at];
        return spread(c, item, out) ? IS_THERE : IS_OUT_OF_MEMORY;
    }
    const char *mark = item->rest;
    while (mark < item->rest + item->rest_length && *mark != '=' && *mark != ':') mark++;
    if (mark == item->rest + item->rest_length) return IS_LEFT_OUT;
    const size_t length = (size_t)(item->rest + item->rest_length - mark - 1);
    if (!read_literal(c, mark + 1, length, out)) return IS_OUT_OF_MEMORY;
    if (!spread(c, item, out)) return IS_OUT_OF_MEMORY;
    return *mark == '=' ? IS_THERE : IS_FILLER;
}

// What is left out stays so as long as nothing follows it.
static tare_status order_arguments(capture *c, const node *n, const capture_row *row,
                                   const bound_call *b, aten_call *out) {
    row_item item;
    size_t written = 0;
    bool has_gap = false;
    *out = (aten_call){.arg_count = 0};
    for (size_t i = 0; item_at(row->args != NULL ? row->args : row->params, i, &item); i++) {
        value v;
        const argument_state state = read_argument(c, row, b, &item, &v);
        if (state == IS_OUT_OF_MEMORY) return tare__out_of_memory(c->err);
        if (item.is_keyword) {
            const char *name = tare__arena_strndup(&c->scratch, item.name, item.length);
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
                              n->name, n->target, (int)item.length, item.name);
        out->args[written++] = v;
        if (state == IS_THERE) out->arg_count = written;
    }
    return TARE_OK;
}

static bool wants_in_place(const capture_row *row, const bound_call *b) {
    size_t index = 0;
    return row->in_place != NULL && find_item(row->params, "inplace", strlen("inplace"), &index) &&
           b->has[index] && b->given[index].kind == VALUE_BOOL && b->given[index].as.boolean;
}

tare_status tare__capture_become(capture *c, node *n, const char *aten, const aten_call *call) {
    n->target = tare__arena_printf(&c->g->memory, ATEN "%s", aten);
    if (n->target == NULL) return tare__out_of_memory(c->err);
    n->op = NODE_CALL_FUNCTION;
    return tare__node_set_args(n, call->args, call->arg_count, call->kwargs, call->kwarg_count,
                               c->err);
}

tare_status tare__capture_insert(capture *c, node *before, const char *aten, const value *args,
                                 size_t count, value *out) {
    node *made = NULL;
    const char *target = tare__arena_printf(&c->scratch, ATEN "%s", aten);
    if (target == NULL) return tare__out_of_memory(c->err);
    const node_spec spec = {
        .op = NODE_CALL_FUNCTION, .target = target, .args = args, .arg_count = count};
    TARE_TRY(tare__graph_insert(c->g, &spec, before, &made, c->err));
    *out = tare__node_value(made);
    return TARE_OK;
}

tare_status tare__capture_bind(capture *c, node *n) {
    const capture_row *row = NULL;
    bound_call b;
    aten_call call;
    TARE_TRY(find_row(c, n, &row, &b));
    if (row == NULL) return TARE_OK;
    TARE_TRY(order_arguments(c, n, row, &b, &call));
    if (row->before != NULL)
        TARE_TRY(tare__capture_insert(c, n, row->before, call.args, 1, &call.args[0]));
    return tare__capture_become(c, n, wants_in_place(row, &b) ? row->in_place : row->aten, &call);
}
