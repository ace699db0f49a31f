// SPDX-License-Identifier: Apache-2.0
// Parses the right-hand sides of assignments: calls of modules, functions and methods, operators,
// tensors.
#include "ops/text/parse_operation.h"

#include <string.h>

#include "core/memory/alloc.h"

static tare_status parse_keyword(parser *p, operation *o) {
    keyword k = {0};
    TARE_TRY(tare__parse_name(p, &k.name));
    TARE_TRY(tare__parse_expect(p, "="));
    TARE_TRY(tare__parse_value(p, &k.value));
    if (!tare__grow((void **)&o->kwargs, &o->kwarg_capacity, o->kwarg_count, sizeof *o->kwargs))
        return tare__out_of_memory(p->err);
    o->kwargs[o->kwarg_count++] = k;
    return TARE_OK;
}

// Parses the arguments of a call, with the closing parenthesis. Positional values are pushed onto
// the stack above `mark`, where self may already be.
static tare_status parse_arguments(parser *p, size_t mark, operation *o) {
    bool closed = false, comma = true;
    TARE_TRY(tare__parse_accept(p, ")", &closed));
    while (!closed) {
        if (p->now.kind == TOKEN_NAME && tare__token_is(&p->next, "=")) {
            TARE_TRY(parse_keyword(p, o));
        } else {
            value v = tare__none();
            if (o->kwarg_count)
                return tare__token_fail(&p->now, p->err, "a positional argument follows a keyword");
            TARE_TRY(tare__parse_value(p, &v));
            TARE_TRY(tare__parse_push(p, &v));
        }
        TARE_TRY(tare__parse_accept(p, ",", &comma));
        if (!comma)
            TARE_TRY(tare__parse_expect(p, ")"));
        else
            TARE_TRY(tare__parse_accept(p, ")", &closed));
        closed = closed || !comma;
    }
    value args = tare__none();
    TARE_TRY(tare__parse_pop(p, mark, VALUE_TUPLE, &args));
    o->args = args.as.items;
    o->arg_count = args.count;
    return TARE_OK;
}

static tare_status take_text(parser *p, text *t, const char **out) {
    *out = tare__arena_strdup(&p->scratch, tare__text_chars(t));
    return t->failed || !*out ? tare__out_of_memory(p->err) : TARE_OK;
}

// Names are printed between double quotes, so they must not contain one, and paths are separated by
// dots.
static bool is_name(const token *t) {
    const size_t length = t->length - 2;
    return length > 0 && !memchr(t->start + 1, '"', length) && !memchr(t->start + 1, '.', length) &&
           !memchr(t->start, '\\', t->length);
}

// `self.a.b`, with getattr( .. , "0") for names that are no identifiers. A loop reads the opening
// getattrs, so their number cannot exhaust the stack.
static tare_status parse_path_text(parser *p, text *path) {
    size_t open = 0;
    while (tare__token_is(&p->now, "getattr")) {
        TARE_TRY(tare__parse_advance(p));
        TARE_TRY(tare__parse_expect(p, "("));
        open++;
    }
    TARE_TRY(tare__parse_expect(p, "self"));
    TARE_TRY(tare__parse_dotted(p, path));
    for (; open > 0; open--) {
        const char *name = NULL;
        TARE_TRY(tare__parse_expect(p, ","));
        if (p->now.kind == TOKEN_STRING && !is_name(&p->now))
            return tare__token_fail(&p->now, p->err, "no module or tensor has such a name");
        TARE_TRY(tare__parse_string(p, &name));
        TARE_TRY(tare__parse_expect(p, ")"));
        tare__text_printf(path, "%s%s", path->length ? "." : "", name);
        TARE_TRY(tare__parse_dotted(p, path));
    }
    return tare__text_status(path, p->err);
}

static tare_status check_target(const parser *p, const operation *o, const token *at) {
    if (!*o->target) return tare__token_fail(at, p->err, "'self' alone is no value");
    if (!p->model) return TARE_OK;
    const bool is_module = tare__module_find(p->model, o->target) != NULL;
    if (o->op == NODE_CALL_MODULE && !is_module)
        return tare__token_fail(at, p->err, "the model has no module '%.160s'", o->target);
    if (!is_module && !tare__module_find_tensor(p->model, o->target))
        return tare__token_fail(at, p->err, "the model has no tensor '%.160s'", o->target);
    return TARE_OK;
}

// self.a.b(args) or self.a.b
static tare_status parse_path(parser *p, operation *o) {
    const token at = p->now;
    text path = {0};
    tare_status status = parse_path_text(p, &path);
    if (status == TARE_OK) status = take_text(p, &path, &o->target);
    tare__text_release(&path);
    TARE_TRY(status);
    bool is_call = false;
    TARE_TRY(tare__parse_accept(p, "(", &is_call));
    o->op = is_call ? NODE_CALL_MODULE : NODE_GET_ATTR;
    TARE_TRY(check_target(p, o, &at));
    return is_call ? parse_arguments(p, p->stack_count, o) : TARE_OK;
}

// The name of a global: generated code writes operator.abs as _operator_abs.
static const char *global_target(parser *p, const char *name) {
    static const struct {
        const char *spelled, *module;
    } modules[] = {{"_operator_", "operator."}, {"math_", "math."}};
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
        if (tare__starts_with(name, modules[i].spelled) && name[strlen(modules[i].spelled)])
            return tare__arena_printf(&p->scratch, "%s%s", modules[i].module,
                                      name + strlen(modules[i].spelled));
    return tare__arena_strdup(&p->scratch, name);
}

static tare_status parse_function_text(parser *p, text *name) {
    tare__text_append_n(name, p->now.start, p->now.length);
    TARE_TRY(tare__parse_advance(p));
    return tare__parse_dotted(p, name);
}

// torch.relu(args), len(args)
static tare_status parse_function(parser *p, operation *o) {
    const token at = p->now;
    const bool is_dotted = tare__token_is(&p->next, ".");
    text name = {0};
    tare_status status = parse_function_text(p, &name);
    o->op = NODE_CALL_FUNCTION;
    o->target = global_target(p, tare__text_chars(&name));
    tare__text_release(&name);
    TARE_TRY(status);
    if (!o->target) return tare__out_of_memory(p->err);
    if (is_dotted && !tare__starts_with(o->target, "torch."))
        return tare__token_fail(&at, p->err, "'%.160s' is no function of torch", o->target);
    TARE_TRY(tare__parse_expect(p, "("));
    return parse_arguments(p, p->stack_count, o);
}

tare_status tare__parse_set_operator(parser *p, operation *o, const python_operator *rule,
                                     const value *operands, size_t count) {
    o->op = NODE_CALL_FUNCTION;
    o->target = rule->function;
    const size_t mark = p->stack_count;
    value args = tare__none();
    for (size_t i = 0; i < count; i++) TARE_TRY(tare__parse_push(p, &operands[i]));
    TARE_TRY(tare__parse_pop(p, mark, VALUE_TUPLE, &args));
    o->args = args.as.items;
    o->arg_count = count;
    return TARE_OK;
}

static tare_status parse_unary(parser *p, operation *o) {
    const python_operator *rule = tare__python_symbol(PYTHON_UNARY, p->now.start, p->now.length);
    const token at = p->now;
    value operand = tare__none();
    TARE_TRY(tare__parse_advance(p));
    TARE_TRY(tare__parse_value(p, &operand));
    if (operand.kind == VALUE_INT || operand.kind == VALUE_FLOAT)
        return tare__token_fail(&at, p->err, "a sign in front of a number is part of the number");
    return tare__parse_set_operator(p, o, rule, &operand, 1);
}

static const python_operator getattr_function = {"getattr", ".", PYTHON_BINARY};

// x.method(args), or the attribute x.shape
static tare_status parse_member(parser *p, const value *self, operation *o) {
    text name = {0};
    tare_status status = tare__parse_dotted(p, &name);
    if (status == TARE_OK) status = take_text(p, &name, &o->target);
    tare__text_release(&name);
    TARE_TRY(status);
    bool is_call = false;
    TARE_TRY(tare__parse_accept(p, "(", &is_call));
    if (!is_call)
        return tare__parse_set_operator(p, o, &getattr_function,
                                        (const value[]){*self, tare__string(o->target)}, 2);
    o->op = NODE_CALL_METHOD;
    const size_t mark = p->stack_count;
    TARE_TRY(tare__parse_push(p, self));
    return parse_arguments(p, mark, o);
}

tare_status tare__parse_subscript(parser *p, value *out) {
    TARE_TRY(tare__parse_expect(p, "["));
    TARE_TRY(tare__parse_value(p, out));
    return tare__parse_expect(p, "]");
}

// Parses operations that begin with a value: a + b, a[b], a.method(), a.shape
static tare_status parse_operands(parser *p, operation *o) {
    const token at = p->now;
    value operands[2] = {tare__none(), tare__none()};
    TARE_TRY(tare__parse_value(p, &operands[0]));
    if (tare__token_is(&p->now, ".")) {
        if (operands[0].kind == VALUE_NODE) return parse_member(p, &operands[0], o);
        return tare__token_fail(&at, p->err, "only computed values have members");
    }
    // These would print as calls.
    if (operands[0].kind == VALUE_SLICE || operands[0].kind == VALUE_DEVICE ||
        operands[0].kind == VALUE_SCALAR)
        return tare__token_fail(&at, p->err, "no operation begins with such a value");
    if (tare__token_is(&p->now, "[")) {
        TARE_TRY(tare__parse_subscript(p, &operands[1]));
        return tare__parse_set_operator(p, o, tare__python_operator("operator.getitem"), operands,
                                        2);
    }
    const python_operator *rule =
        p->now.kind == TOKEN_SYMBOL
            ? tare__python_symbol(PYTHON_BINARY, p->now.start, p->now.length)
            : NULL;
    if (!rule) return tare__token_fail(&p->now, p->err, "expected an operation");
    TARE_TRY(tare__parse_advance(p));
    TARE_TRY(tare__parse_value(p, &operands[1]));
    return tare__parse_set_operator(p, o, rule, operands, 2);
}

static bool starts_unary(const parser *p) {
    if (p->now.kind != TOKEN_SYMBOL) return false;
    const bool is_negative_number =
        tare__token_is(&p->now, "-") && (p->next.kind == TOKEN_INT || p->next.kind == TOKEN_FLOAT ||
                                         tare__token_is(&p->next, "inf"));
    return !is_negative_number && tare__python_symbol(PYTHON_UNARY, p->now.start, p->now.length);
}

// getattr(self.seq, "0") is a path, getattr(x, "a b") a call. Nested getattrs may need any number
// of tokens of lookahead, so this looks at the source text.
static bool starts_path(const parser *p) {
    if (tare__token_is(&p->now, "self")) return true;
    const char *at = p->now.start, *end = p->lexer.end;
    static const char open[] = "getattr(";
    const size_t length = sizeof open - 1;
    if (!tare__token_is(&p->now, "getattr")) return false;
    while ((size_t)(end - at) > length && memcmp(at, open, length) == 0) at += length;
    return end - at > 5 && memcmp(at, "self", 4) == 0 && (at[4] == '.' || at[4] == ',');
}

// A dotted name in front of a parenthesis is a function, any other a value such as torch.float32.
static bool starts_function(const parser *p) {
    if (p->now.kind != TOKEN_NAME || tare__parse_node(p, &p->now)) return false;
    lexer ahead = p->lexer;
    token t = p->next;
    while (t.kind == TOKEN_NAME || tare__token_is(&t, "."))
        if (tare__lexer_next(&ahead, &t, NULL) != TARE_OK) return false;
    return tare__token_is(&t, "(");
}

tare_status tare__parse_operation(parser *p, operation *o) {
    if (starts_unary(p)) return parse_unary(p, o);
    if (starts_path(p)) return parse_path(p, o);
    return starts_function(p) ? parse_function(p, o) : parse_operands(p, o);
}
