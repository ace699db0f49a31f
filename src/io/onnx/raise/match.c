// SPDX-License-Identifier: Apache-2.0
// Matches patterns of calls in a draft and replaces them.
#include "io/onnx/raise/match.h"

#include <math.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/text/text.h"
#include "io/onnx/families/families.h"
#include "ops/text/print.h"

// --- reading ---

// Parses "a = f(x); g(a)" as a function.
static tare_status parse(const char *parameters, const char *body, graph **out, tare_error *err) {
    text code = {0};
    tare__text_printf(&code, "def forward(self, %s):\n", parameters);
    for (const char *end; (end = strstr(body, "; ")) != NULL; body = end + 2)
        tare__text_printf(&code, "    %.*s\n", (int)(end - body), body);
    tare__text_printf(&code, "    result = %s\n    return result\n", body);
    tare_status status = tare__text_status(&code, err);
    if (status == TARE_OK)
        status = tare__parse_code(tare__text_chars(&code), code.length, NULL, out, err);
    tare__text_release(&code);
    return status;
}

// A result may use names that a check binds: every name that is no parameter of the pattern becomes
// one.
static tare_status parse_result(const idiom *row, graph **out, tare_error *err) {
    text names = {0};
    tare__text_append(&names, row->parameters);
    for (const char *extra = "shape|weight|bias|scale|groups"; *extra != '\0';) {
        const size_t length = strcspn(extra, "|");
        tare__text_printf(&names, ", %.*s", (int)length, extra);
        extra += length + (extra[length] == '|');
    }
    tare_status status = tare__text_status(&names, err);
    if (status == TARE_OK) status = parse(tare__text_chars(&names), row->result, out, err);
    tare__text_release(&names);
    return status;
}

static const op_info *row_of(const node *n) {
    return n->op == NODE_CALL_FUNCTION ? tare__op_function(n->target)
           : n->op == NODE_CALL_METHOD ? tare__op_method(n->target)
                                       : NULL;
}

static tare_status open_row(idiom_set *s, size_t i, tare_error *err) {
    TARE_TRY(parse(s->rows[i]->parameters, s->rows[i]->pattern, &s->patterns[i], err));
    s->lasts[i] = row_of(tare__node_arg(tare__graph_output(s->patterns[i]), 0));
    return parse_result(s->rows[i], &s->results[i], err);
}

static size_t count_idioms(void) {
    const onnx_family *family;
    size_t count = 0;
    for (size_t f = 0; (family = tare__onnx_family_at(f)) != NULL; f++)
        count += family->idiom_count;
    return count;
}

static void list_idioms(const idiom **out) {
    const onnx_family *family;
    for (size_t f = 0; (family = tare__onnx_family_at(f)) != NULL; f++)
        for (size_t i = 0; i < family->idiom_count; i++) *out++ = &family->idioms[i];
}

tare_status tare__idioms_open(onnx_import *in, idiom_set *out) {
    const size_t count = count_idioms();
    *out = (idiom_set){.rows = tare__alloc_zeroed(count, sizeof(idiom *)),
                       .patterns = tare__alloc_zeroed(count, sizeof(graph *)),
                       .results = tare__alloc_zeroed(count, sizeof(graph *)),
                       .lasts = tare__alloc_zeroed(count, sizeof(op_info *)),
                       .count = count};
    if (out->rows == NULL || out->patterns == NULL || out->results == NULL || out->lasts == NULL)
        return tare__out_of_memory(in->err);
    list_idioms(out->rows);
    for (const node *n = in->draft->first; n != NULL; n = n->next) {
        const op_info *op = row_of(n);
        for (size_t i = 0; op != NULL && i < count; i++)
            if (out->patterns[i] == NULL && strcmp(out->rows[i]->needs, op->id) == 0)
                TARE_TRY(open_row(out, i, in->err));
    }
    return TARE_OK;
}

void tare__idioms_release(idiom_set *s) {
    for (size_t i = 0; i < s->count; i++) {
        if (s->patterns != NULL) tare__graph_destroy(s->patterns[i]);
        if (s->results != NULL) tare__graph_destroy(s->results[i]);
    }
    tare__free(s->rows);
    tare__free(s->patterns);
    tare__free(s->results);
    tare__free(s->lasts);
    *s = (idiom_set){0};
}

// --- matching ---

// A match in progress: the values of the pattern's nodes, by their ids.
typedef struct trial {
    onnx_import *in;
    value bound[IDIOM_MOST_NODES]; // VALUE_NONE: not bound yet
    node *covered[IDIOM_MOST_NODES];
    size_t covered_count;
} trial;

static bool number_of(onnx_import *in, const value *v, double *out) {
    const tare_tensor *t = tare__raise_constant(in, v);
    if (t == NULL) return v->kind != VALUE_NODE && tare__value_number(v, out);
    if (t->count != 1 || t->q != NULL) return false;
    *out = tare__tensor_get(t, 0);
    return true;
}

static bool is_near(double a, double b) {
    return fabs(a - b) <= 1e-4 * fabs(b);
}

static bool same_value(const value *a, const value *b) {
    return a->kind == VALUE_NODE ? b->kind == VALUE_NODE && a->as.node == b->as.node
                                 : tare__value_equal(a, b);
}

static bool match_value(trial *t, const value *wanted, const value *found);

// A parameter of the pattern.
static bool match_parameter(trial *t, const node *p, const value *found) {
    double number;
    value *bound = &t->bound[p->id];
    if (bound->kind != VALUE_NONE) return same_value(bound, found);
    const tare_tensor *constant = tare__raise_constant(t->in, found);
    bool fits = false;
    switch (p->target[0]) {
    case 'c':
        fits = number_of(t->in, found, &number);
        break;
    case 'w':
        fits = constant != NULL;
        break;
    case 'd':
        fits = found->kind != VALUE_NODE && found->kind != VALUE_NONE;
        break;
    default:
        fits = found->kind == VALUE_NODE && constant == NULL;
        break;
    }
    if (fits) *bound = *found;
    return fits;
}

// Parameter i of a call, by position or name; None if it is not given.
static value argument(const op_info *op, const node *n, size_t i) {
    if (i < n->arg_count) return n->args[i];
    for (size_t k = 0; k < n->kwarg_count; k++)
        if (tare__op_param_is(op, i, n->kwargs[k].name)) return n->kwargs[k].value;
    return tare__none();
}

static bool match_arguments(trial *t, const op_info *op, const node *p, const node *n,
                            bool swapped) {
    const size_t count = tare__op_param_count(op);
    // Arguments that are calls in the pattern are matched first, because they bind names that other
    // arguments repeat.
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < count; i++) {
            const value wanted = argument(op, p, i);
            const value found = argument(op, n, swapped && i < 2 ? 1 - i : i);
            const bool is_call =
                wanted.kind == VALUE_NODE && wanted.as.node->op != NODE_PLACEHOLDER;
            if (is_call == (pass == 0) && !match_value(t, &wanted, &found)) return false;
        }
    return true;
}

// Matches x * 0.5 where the pattern divides by 2.
static bool match_reciprocal(trial *t, const node *p, const node *n) {
    double wanted, found;
    if (!tare__raise_is(p, "div") || !tare__raise_is(n, "mul") || p->arg_count != 2 ||
        n->arg_count != 2 || !number_of(t->in, &p->args[1], &wanted))
        return false;
    for (int i = 0; i < 2; i++)
        if (number_of(t->in, &n->args[1 - i], &found) && is_near(found * wanted, 1))
            return match_value(t, &p->args[0], &n->args[i]);
    return false;
}

static bool match_call(trial *t, const node *p, node *n) {
    const op_info *op = row_of(p);
    if (t->bound[p->id].kind == VALUE_NODE) return t->bound[p->id].as.node == n;
    if (op == NULL || t->covered_count == IDIOM_MOST_NODES) return false;
    const trial before = *t;
    t->bound[p->id] = tare__node_value(n);
    t->covered[t->covered_count++] = n;
    if (row_of(n) != op) {
        if (match_reciprocal(t, p, n)) return true;
        *t = before;
        return false;
    }
    const trial begun = *t;
    if (match_arguments(t, op, p, n, false)) return true;
    *t = begun;
    const bool commutes = strcmp(op->id, "add") == 0 || strcmp(op->id, "mul") == 0;
    if (commutes && match_arguments(t, op, p, n, true)) return true;
    *t = before;
    return false;
}

static bool match_value(trial *t, const value *wanted, const value *found) {
    double a, b;
    if (wanted->kind == VALUE_NODE) {
        if (wanted->as.node->op == NODE_PLACEHOLDER)
            return match_parameter(t, wanted->as.node, found);
        return found->kind == VALUE_NODE && match_call(t, wanted->as.node, found->as.node);
    }
    if (wanted->kind != VALUE_BOOL && tare__value_number(wanted, &a))
        return number_of(t->in, found, &b) && (a == 0 ? b == 0 : is_near(b, a));
    return tare__value_equal(wanted, found);
}

static bool is_covered(const trial *t, const node *n) {
    for (size_t i = 0; i < t->covered_count; i++)
        if (t->covered[i] == n) return true;
    return false;
}

// True if no node outside the match uses a result that would be removed.
static bool is_closed(const trial *t, const node *root) {
    for (size_t i = 0; i < t->covered_count; i++)
        for (size_t k = 0; t->covered[i] != root && k < t->covered[i]->user_count; k++)
            if (!is_covered(t, t->covered[i]->users[k])) return false;
    return true;
}

static bool is_one_call(const trial *t) {
    const onnx_scope *first = tare__onnx_info(t->in, t->covered[0])->scope;
    for (size_t i = 1; first != NULL && first->call != NULL && i < t->covered_count; i++) {
        const onnx_scope *scope = tare__onnx_info(t->in, t->covered[i])->scope;
        if (scope != NULL && scope->call != NULL && strcmp(first->call, scope->call) != 0)
            return false;
    }
    return true;
}

// --- names ---

value tare__match_value(const idiom_match *m, const char *name) {
    for (size_t i = 0; i < m->count; i++)
        if (strcmp(m->names[i], name) == 0) return m->values[i];
    return tare__none();
}

tare_status tare__match_bind(idiom_match *m, const char *name, value v) {
    if (m->count == IDIOM_MOST_NODES) return tare__out_of_memory(m->in->err);
    m->names[m->count] = name;
    m->values[m->count++] = v;
    return TARE_OK;
}

const tare_tensor *tare__match_meta(const idiom_match *m, const char *name) {
    const value v = tare__match_value(m, name);
    if (v.kind != VALUE_NODE) return NULL;
    const value *meta = &tare__onnx_info(m->in, v.as.node)->meta;
    return meta->kind == VALUE_TENSOR ? meta->as.tensor : NULL;
}

const tare_tensor *tare__match_constant(const idiom_match *m, const char *name) {
    const value v = tare__match_value(m, name);
    return tare__raise_constant(m->in, &v);
}

// --- replacing ---

typedef struct building {
    const idiom_match *match;
    value made[IDIOM_MOST_NODES]; // by node id of the result
} building;

static tare_status substitute(building *b, const value *v, value *out) {
    *out = *v;
    if (v->kind == VALUE_NODE) {
        const node *n = v->as.node;
        double number;
        *out = n->op == NODE_PLACEHOLDER ? tare__match_value(b->match, n->target) : b->made[n->id];
        if (n->op == NODE_PLACEHOLDER && n->target[0] == 'c' &&
            number_of(b->match->in, out, &number))
            *out = tare__float(tare__double_of_float((float)number));
        return TARE_OK;
    }
    if (!tare__value_has_items(v)) return TARE_OK;
    *out = tare__value_sequence(b->match->memory, v->kind, v->count);
    if (out->as.items == NULL) return tare__out_of_memory(b->match->in->err);
    for (uint32_t i = 0; i < v->count; i++)
        TARE_TRY(substitute(b, &v->as.items[i], &out->as.items[i]));
    return TARE_OK;
}

static tare_status copy_arguments(building *b, const node *n, node_spec *spec) {
    arena *memory = b->match->memory;
    value *args = tare__arena_array(memory, n->arg_count + 1, sizeof *args);
    keyword *kwargs = tare__arena_array(memory, n->kwarg_count + 1, sizeof *kwargs);
    if (args == NULL || kwargs == NULL) return tare__out_of_memory(b->match->in->err);
    for (size_t i = 0; i < n->arg_count; i++) TARE_TRY(substitute(b, &n->args[i], &args[i]));
    for (size_t i = 0; i < n->kwarg_count; i++) {
        kwargs[i].name = n->kwargs[i].name;
        TARE_TRY(substitute(b, &n->kwargs[i].value, &kwargs[i].value));
    }
    *spec = (node_spec){.op = n->op,
                        .target = n->op == NODE_CALL_FUNCTION ? tare__function_canonical(n->target)
                                                              : n->target,
                        .args = args,
                        .arg_count = n->arg_count,
                        .kwargs = kwargs,
                        .kwarg_count = n->kwarg_count};
    return TARE_OK;
}

// The last call replaces the root; the others are inserted before the root.
static tare_status build(const idiom_match *m, const graph *result) {
    building b = {.match = m};
    for (const node *n = result->first; n != NULL; n = n->next) {
        node_spec spec;
        node *made = NULL;
        if (!tare__node_is_call(n)) continue;
        TARE_TRY(copy_arguments(&b, n, &spec));
        if (n->next != NULL && n->next->op == NODE_OUTPUT)
            return tare__raise_replace(m->in, m->root, &spec, NULL);
        const draft_info kept = *tare__onnx_info(m->in, m->root);
        TARE_TRY(tare__graph_insert(m->in->draft, &spec, m->root, &made, m->in->err));
        TARE_TRY(tare__onnx_add_info(m->in, made, kept.scope, kept.file_name));
        TARE_TRY(tare__onnx_infer(m->in, made));
        b.made[n->id] = tare__node_value(made);
    }
    // The result is a parameter of the pattern.
    const value v = tare__match_value(m, tare__node_arg(tare__graph_output(result), 0)->target);
    if (v.kind != VALUE_NODE) return TARE_OK;
    return tare__node_replace_uses(m->root, v.as.node, NULL, m->in->err);
}

static tare_status try_idiom(const idiom_set *s, size_t i, idiom_match *m, bool *applied) {
    const graph *pattern = s->patterns[i];
    trial t = {.in = m->in};
    bool holds = true;
    const node *last = tare__node_arg(tare__graph_output(pattern), 0);
    if (pattern->next_id > IDIOM_MOST_NODES || !match_call(&t, last, m->root) ||
        !is_closed(&t, m->root) || (s->rows[i]->of_one_call && !is_one_call(&t)))
        return TARE_OK;
    for (const node *n = pattern->first; n != NULL; n = n->next)
        if (n->op == NODE_PLACEHOLDER) TARE_TRY(tare__match_bind(m, n->target, t.bound[n->id]));
    if (s->rows[i]->check != NULL) TARE_TRY(s->rows[i]->check(m, &holds));
    if (!holds) return TARE_OK;
    *applied = true;
    return build(m, s->results[i]);
}

tare_status tare__idioms_apply(const idiom_set *s, onnx_import *in, node *n, bool *applied) {
    arena memory = {0};
    tare_status status = TARE_OK;
    *applied = false;
    const op_info *op = row_of(n);
    for (size_t i = 0; i < s->count && op != NULL && status == TARE_OK && !*applied; i++) {
        const op_info *last = s->lasts[i];
        // A product may match a division by a number.
        if (last == NULL || (last != op && strcmp(last->id, "div") != 0)) continue;
        idiom_match m = {.in = in, .memory = &memory, .root = n};
        status = try_idiom(s, i, &m, applied);
    }
    tare__arena_release(&memory);
    return status;
}

// --- checks ---

bool tare__match_same_shape(const tare_tensor *a, const tare_tensor *b) {
    return a != NULL && b != NULL && a->dtype == b->dtype && tare__same_shape(a, b);
}

const tare_tensor *tare__match_root_meta(const idiom_match *m) {
    const value *meta = &tare__onnx_info(m->in, m->root)->meta;
    return meta->kind == VALUE_TENSOR ? meta->as.tensor : NULL;
}

tare_status tare__match_keeps_shape(idiom_match *m, bool *holds) {
    *holds = tare__match_same_shape(tare__match_meta(m, "x"), tare__match_root_meta(m));
    return TARE_OK;
}
