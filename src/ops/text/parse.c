// SPDX-License-Identifier: Apache-2.0
// Parses generated code into a graph: a parameter list, assignments of one operation each, and a
// return statement.
#include <assert.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "ops/text/parse_operation.h"
#include "ops/text/print.h"

// --- parameters ---

// Placeholder nodes are made from parameters in order. If a line `name_1 = name` of the body
// renames a parameter, its node and those of later parameters are made at that line.
typedef struct parameter {
    const char *target, *annotation;
    value fallback;
    bool has_fallback, has_alias;
} parameter;

typedef struct parameters {
    parameter *list;
    size_t count, capacity, made;
} parameters;

static tare_status add_node(parser *p, const node_spec *spec, const token *at, node **out) {
    node *n = NULL;
    TARE_TRY(tare__graph_insert(p->g, spec, NULL, &n, p->err));
    if (strcmp(n->name, spec->candidate) != 0)
        return tare__token_fail(at, p->err, "the name '%.80s' is taken or reserved",
                                spec->candidate);
    if (!tare__map_set(&p->nodes, n->name, n)) return tare__out_of_memory(p->err);
    if (out) *out = n;
    return TARE_OK;
}

static tare_status annotate(parser *p, node *n, const char *annotation) {
    if (!annotation) return TARE_OK;
    n->annotation = tare__arena_strdup(&p->g->memory, annotation);
    return n->annotation ? TARE_OK : tare__out_of_memory(p->err);
}

static tare_status make_parameter(parser *p, parameters *all, const char *name, const token *at) {
    const parameter *param = &all->list[all->made++];
    const node_spec spec = {.op = NODE_PLACEHOLDER,
                            .target = param->target,
                            .candidate = name,
                            .args = &param->fallback,
                            .arg_count = param->has_fallback ? 1 : 0};
    node *n = NULL;
    TARE_TRY(add_node(p, &spec, at, &n));
    if (!p->first_parameter) p->first_parameter = n;
    return annotate(p, n, param->annotation);
}

// Makes the nodes of the next parameters, up to one that is renamed further below.
static tare_status make_parameters(parser *p, parameters *all) {
    while (all->made < all->count && !all->list[all->made].has_alias) {
        const char *target = all->list[all->made].target;
        TARE_TRY(make_parameter(p, all, target + strspn(target, "*"), &p->now));
    }
    return TARE_OK;
}

// A type as text, up to a ',', '=', ':' or ')' outside of brackets.
static tare_status parse_annotation(parser *p, const char **out) {
    const char *start = p->now.start, *end = start;
    int depth = 0;
    while (p->now.kind != TOKEN_NEWLINE && p->now.kind != TOKEN_END) {
        if (depth == 0 && (tare__token_is(&p->now, ",") || tare__token_is(&p->now, "=") ||
                           tare__token_is(&p->now, ":") || tare__token_is(&p->now, ")")))
            break;
        depth += tare__token_is(&p->now, "[") || tare__token_is(&p->now, "(");
        depth -= tare__token_is(&p->now, "]") || tare__token_is(&p->now, ")");
        end = p->now.start + p->now.length;
        TARE_TRY(tare__parse_advance(p));
    }
    if (end == start) return tare__token_fail(&p->now, p->err, "expected a type");
    *out = tare__arena_strndup(&p->scratch, start, (size_t)(end - start));
    return *out ? TARE_OK : tare__out_of_memory(p->err);
}

static tare_status add_parameter(parser *p, parameters *all, const parameter *param) {
    if (!tare__grow((void **)&all->list, &all->capacity, all->count, sizeof *all->list))
        return tare__out_of_memory(p->err);
    all->list[all->count++] = *param;
    return TARE_OK;
}

static tare_status parse_parameter(parser *p, parameters *all) {
    parameter param = {0};
    const char *stars = "", *name = NULL;
    bool is_there = false;
    if (tare__token_is(&p->now, "*")) stars = "*";
    if (tare__token_is(&p->now, "**")) stars = "**";
    if (*stars) TARE_TRY(tare__parse_advance(p));
    TARE_TRY(tare__parse_name(p, &name));
    param.target = tare__arena_printf(&p->scratch, "%s%s", stars, name);
    if (!param.target) return tare__out_of_memory(p->err);
    TARE_TRY(tare__parse_accept(p, ":", &is_there));
    if (is_there) TARE_TRY(parse_annotation(p, &param.annotation));
    TARE_TRY(tare__parse_accept(p, "=", &param.has_fallback));
    if (param.has_fallback) TARE_TRY(tare__parse_value(p, &param.fallback));
    return add_parameter(p, all, &param);
}

// def forward(self, a, b : type = default) -> type:
static tare_status parse_signature(parser *p, parameters *all) {
    const char *name = NULL;
    bool more = false;
    TARE_TRY(tare__parse_expect(p, "def"));
    TARE_TRY(tare__parse_name(p, &name));
    TARE_TRY(tare__parse_expect(p, "("));
    TARE_TRY(tare__parse_expect(p, "self"));
    TARE_TRY(tare__parse_accept(p, ",", &more));
    while (more) {
        TARE_TRY(parse_parameter(p, all));
        TARE_TRY(tare__parse_accept(p, ",", &more));
    }
    TARE_TRY(tare__parse_expect(p, ")"));
    TARE_TRY(tare__parse_accept(p, "->", &more));
    if (more) TARE_TRY(parse_annotation(p, &p->returned));
    return tare__parse_expect(p, ":");
}

// --- statements ---

// Parameters have no line of their own in the text, so their position is not known. In exported
// programs tensors come first, because they were parameters.
static void move_parameter(parser *p, node *n) {
    if (n->op != NODE_GET_ATTR) p->has_calls = true;
    if (!p->has_calls && p->g->pytree_signature && p->first_parameter)
        tare__graph_move_before(n, p->first_parameter);
}

static tare_status finish(parser *p, const operation *o, const char *name, const char *annotation,
                          const token *at) {
    const node_spec spec = {.op = o->op,
                            .target = o->target,
                            .candidate = name,
                            .args = o->args,
                            .arg_count = o->arg_count,
                            .kwargs = o->kwargs,
                            .kwarg_count = o->kwarg_count};
    for (size_t i = 0; i < o->kwarg_count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(o->kwargs[i].name, o->kwargs[j].name) == 0)
                return tare__token_fail(at, p->err, "the keyword '%.80s' is given twice",
                                        o->kwargs[i].name);
    node *n = NULL;
    TARE_TRY(add_node(p, &spec, at, &n));
    assert(n != NULL);
    move_parameter(p, n);
    return annotate(p, n, annotation);
}

static bool is_alias(const parser *p, const parameters *all) {
    if (all->made == all->count || p->now.kind != TOKEN_NAME) return false;
    if (p->next.kind != TOKEN_NEWLINE && p->next.kind != TOKEN_END) return false;
    const parameter *param = &all->list[all->made];
    const char *target = param->target + strspn(param->target, "*");
    return param->has_alias && strlen(target) == p->now.length &&
           memcmp(target, p->now.start, p->now.length) == 0;
}

// NAME [: type] = ..
static tare_status parse_assignment(parser *p, parameters *all) {
    const token at = p->now;
    const char *name = NULL, *annotation = NULL;
    bool has_annotation = false;
    TARE_TRY(tare__parse_name(p, &name));
    TARE_TRY(tare__parse_accept(p, ":", &has_annotation));
    if (has_annotation) TARE_TRY(parse_annotation(p, &annotation));
    TARE_TRY(tare__parse_expect(p, "="));
    if (is_alias(p, all)) {
        TARE_TRY(make_parameter(p, all, name, &at));
        TARE_TRY(tare__parse_advance(p));
        return make_parameters(p, all);
    }
    operation o = {0};
    tare_status status = tare__parse_operation(p, &o);
    if (status == TARE_OK) status = finish(p, &o, name, annotation, &at);
    tare__free(o.kwargs);
    return status;
}

// x += y;  n = x    and    x[i] = y;  n = x
static tare_status parse_in_place(parser *p) {
    value operands[3] = {tare__none(), tare__none(), tare__none()};
    const python_operator *rule = NULL;
    size_t count = 2;
    TARE_TRY(tare__parse_value(p, &operands[0]));
    if (tare__token_is(&p->now, "[")) {
        rule = tare__python_operator("operator.setitem");
        TARE_TRY(tare__parse_subscript(p, &operands[1]));
        TARE_TRY(tare__parse_expect(p, "="));
        TARE_TRY(tare__parse_value(p, &operands[2]));
        count = 3;
    } else {
        rule = tare__python_symbol(PYTHON_IN_PLACE, p->now.start, p->now.length);
        if (!rule) return tare__token_fail(&p->now, p->err, "expected an assignment");
        TARE_TRY(tare__parse_advance(p));
        TARE_TRY(tare__parse_value(p, &operands[1]));
    }
    operation o = {0};
    value repeated = tare__none();
    TARE_TRY(tare__parse_set_operator(p, &o, rule, operands, count));
    TARE_TRY(tare__parse_expect(p, ";"));
    const token at = p->now;
    const char *name = NULL;
    TARE_TRY(tare__parse_name(p, &name));
    TARE_TRY(tare__parse_expect(p, "="));
    TARE_TRY(tare__parse_value(p, &repeated));
    if (!tare__value_equal(&repeated, &operands[0]))
        return tare__token_fail(&at, p->err, "the result must be what was changed");
    return finish(p, &o, name, NULL, &at);
}

// a = b = None
static tare_status parse_cleaning(parser *p) {
    bool ends = false;
    while (!ends) {
        if (!tare__parse_node(p, &p->now))
            return tare__token_fail(&p->now, p->err, "only values that exist can be cleaned up");
        TARE_TRY(tare__parse_advance(p));
        TARE_TRY(tare__parse_expect(p, "="));
        TARE_TRY(tare__parse_accept(p, "None", &ends));
    }
    return TARE_OK;
}

static tare_status parse_return(parser *p) {
    value returned = tare__none();
    TARE_TRY(tare__parse_expect(p, "return"));
    if (p->g->pytree_signature) {
        static const char *const opening[] = {"pytree", ".", "tree_unflatten", "("};
        static const char *const closing[] = {",", "self", ".", "_out_spec", ")"};
        for (size_t i = 0; i < 4; i++) TARE_TRY(tare__parse_expect(p, opening[i]));
        TARE_TRY(tare__parse_value(p, &returned));
        for (size_t i = 0; i < 5; i++) TARE_TRY(tare__parse_expect(p, closing[i]));
    } else {
        TARE_TRY(tare__parse_value(p, &returned));
    }
    const node_spec spec = {.op = NODE_OUTPUT,
                            .target = "output",
                            .candidate = "output",
                            .args = &returned,
                            .arg_count = 1};
    // Not add_node, which requires the name: if a value is named output, this node's name gets a
    // number; it is not printed.
    node *n = NULL;
    TARE_TRY(tare__graph_insert(p->g, &spec, NULL, &n, p->err));
    return annotate(p, n, p->returned);
}

static tare_status parse_line(parser *p, parameters *all) {
    bool more = false;
    if (p->now.kind == TOKEN_NAME &&
        (tare__token_is(&p->next, "=") || tare__token_is(&p->next, ":")))
        TARE_TRY(parse_assignment(p, all));
    else
        TARE_TRY(parse_in_place(p));
    TARE_TRY(tare__parse_accept(p, ";", &more));
    if (more) TARE_TRY(parse_cleaning(p));
    if (p->now.kind != TOKEN_NEWLINE)
        return tare__token_fail(&p->now, p->err, "expected the end of the line");
    return tare__parse_advance(p);
}

static tare_status parse_body(parser *p, parameters *all) {
    TARE_TRY(make_parameters(p, all));
    while (!tare__token_is(&p->now, "return")) {
        if (p->now.kind == TOKEN_END)
            return tare__token_fail(&p->now, p->err, "the code ends without a return");
        TARE_TRY(parse_line(p, all));
    }
    if (all->made < all->count)
        return tare__token_fail(&p->now, p->err, "the parameter '%.80s' never got its name",
                                all->list[all->made].target);
    TARE_TRY(parse_return(p));
    if (p->now.kind == TOKEN_NEWLINE) TARE_TRY(tare__parse_advance(p));
    if (p->now.kind != TOKEN_END)
        return tare__token_fail(&p->now, p->err, "nothing may follow the return");
    return TARE_OK;
}

// --- the whole text ---

static const char *line_end(const char *at, const char *end) {
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    return newline ? newline : end;
}

static bool begins(const char *at, const char *end, const char *word) {
    return (size_t)(end - at) >= strlen(word) && memcmp(at, word, strlen(word)) == 0;
}

// Moves to the line of `def`, after the module tree.
static tare_status find_code(parser *p) {
    lexer *l = &p->lexer;
    while (l->at < l->end && !begins(l->at, l->end, "def ")) {
        l->at = line_end(l->at, l->end);
        if (l->at < l->end) l->at++;
        l->line++;
        l->line_start = l->at;
    }
    if (l->at == l->end)
        return tare__fail(p->err, TARE_MALFORMED_FILE, "there is no line that begins with 'def '");
    return TARE_OK;
}

// Finds parameters that a line `name_1 = name` renames.
static tare_status find_aliases(const parser *p, parameters *all, const char *at, const char *end) {
    map by_name = {0};
    char name[1024];
    bool has_memory = true;
    for (size_t i = 0; i < all->count && has_memory; i++) {
        const char *target = all->list[i].target + strspn(all->list[i].target, "*");
        has_memory = tare__map_set(&by_name, target, &all->list[i]);
    }
    while (at < end && has_memory) {
        const char *stop = line_end(at, end);
        const char *equals = memchr(at, '=', (size_t)(stop - at));
        const size_t length = equals ? (size_t)(stop - equals) : 0;
        at = stop < end ? stop + 1 : end;
        if (length < 3 || length - 2 >= sizeof name) continue;
        memcpy(name, equals + 2, length - 2);
        name[length - 2] = '\0';
        parameter *param = tare__map_get(&by_name, name);
        if (param) param->has_alias = true;
    }
    tare__map_release(&by_name);
    return has_memory ? TARE_OK : tare__out_of_memory(p->err);
}

// The line of an exported program that unpacks the arguments. The names to the left of the '=' are
// the parameters.
static tare_status parse_unpacking(parser *p, parameters *all) {
    bool more = true;
    while (more && !tare__token_is(&p->now, "=")) {
        parameter param = {0};
        TARE_TRY(tare__parse_name(p, &param.target));
        TARE_TRY(add_parameter(p, all, &param));
        TARE_TRY(tare__parse_accept(p, ",", &more));
    }
    TARE_TRY(tare__parse_expect(p, "="));
    TARE_TRY(tare__parse_expect(p, "fx_pytree"));
    TARE_TRY(tare__parse_expect(p, "."));
    return tare__parse_expect(p, "tree_flatten_spec");
}

static tare_status start(parser *p) {
    TARE_TRY(tare__lexer_next(&p->lexer, &p->now, p->err));
    return tare__lexer_next(&p->lexer, &p->next, p->err);
}

static tare_status keep_line(parser *p, const char **out) {
    const char *line = NULL;
    size_t length = 0;
    const token at = {.line = p->lexer.line, .column = 1};
    tare__lexer_rest_of_line(&p->lexer, &line, &length);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)line[i] < 0x20 || (unsigned char)line[i] >= 0x7F)
            return tare__token_fail(&at, p->err, "the line holds more than printable ASCII");
    *out = tare__arena_strndup(&p->g->memory, line, length);
    if (p->lexer.at < p->lexer.end) {
        p->lexer.line_start = ++p->lexer.at;
        p->lexer.line++;
    }
    return *out ? TARE_OK : tare__out_of_memory(p->err);
}

static bool contains(const char *at, const char *end, const char *word) {
    for (; at < end; at++)
        if (begins(at, end, word)) return true;
    return false;
}

// The line is printed as it came. Without a name the next reader would not find where code begins.
static tare_status keep_signature(parser *p) {
    const char *name = NULL;
    const lexer line = p->lexer;
    TARE_TRY(start(p));
    TARE_TRY(tare__parse_expect(p, "def"));
    TARE_TRY(tare__parse_name(p, &name));
    if (!tare__token_is(&p->now, "("))
        return tare__token_fail(&p->now, p->err, "expected '(' and parameters");
    p->lexer = line;
    return keep_line(p, &p->g->pytree_signature);
}

static tare_status parse_exported(parser *p, parameters *all, bool has_unpacking) {
    TARE_TRY(keep_signature(p));
    p->g->pytree_flatten = "";
    if (!has_unpacking) return start(p);
    const lexer unpacking = p->lexer;
    TARE_TRY(keep_line(p, &p->g->pytree_flatten));
    const lexer body = p->lexer;
    p->lexer = unpacking;
    TARE_TRY(start(p));
    TARE_TRY(parse_unpacking(p, all));
    p->lexer = body;
    return start(p);
}

static tare_status parse_plain(parser *p, parameters *all) {
    TARE_TRY(start(p));
    TARE_TRY(parse_signature(p, all));
    if (p->now.kind != TOKEN_NEWLINE)
        return tare__token_fail(&p->now, p->err, "expected the end of the line");
    return tare__parse_advance(p);
}

static tare_status parse_all(parser *p, parameters *all) {
    TARE_TRY(find_code(p));
    const char *first = line_end(p->lexer.at, p->lexer.end), *end = p->lexer.end;
    const char *second = first < end ? line_end(first + 1, end) : end;
    const bool has_unpacking = contains(first, second, "fx_pytree.tree_flatten_spec(");
    const bool is_exported = has_unpacking || contains(first, end, "return pytree.tree_unflatten(");
    if (is_exported)
        TARE_TRY(parse_exported(p, all, has_unpacking));
    else
        TARE_TRY(parse_plain(p, all));
    TARE_TRY(find_aliases(p, all, first, end));
    TARE_TRY(parse_body(p, all));
    return tare__graph_verify(p->g, p->err);
}

tare_status tare__parse_code(const char *code, size_t size, const module *model, graph **out,
                             tare_error *err) {
    parser p = {.lexer = {.at = code, .end = code + size, .line_start = code, .line = 1},
                .model = model,
                .err = err};
    parameters all = {0};
    TARE_TRY(tare__graph_create(&p.g, err));
    const tare_status status = parse_all(&p, &all);
    tare__free(all.list);
    tare__free(p.stack);
    tare__map_release(&p.nodes);
    tare__arena_release(&p.scratch);
    if (status == TARE_OK)
        *out = p.g;
    else
        tare__graph_destroy(p.g);
    return status;
}
