// SPDX-License-Identifier: Apache-2.0
// Values of the Python subset: constants, containers, names of nodes and of torch's types.
#include "ops/text/parse_value.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/memory/alloc.h"

// Deeper nesting is refused, because values are parsed recursively.
enum { MAX_DEPTH = 64 };

tare_status tare__parse_advance(parser *p) {
    p->now = p->next;
    return tare__lexer_next(&p->lexer, &p->next, p->err);
}

static const char *shown(const token *t) {
    return t->kind == TOKEN_END       ? "the end"
           : t->kind == TOKEN_NEWLINE ? "the end of the line"
                                      : NULL;
}

static tare_status unexpected(parser *p, const char *expected) {
    const char *found = shown(&p->now);
    if (found) return tare__token_fail(&p->now, p->err, "expected %s, found %s", expected, found);
    return tare__token_fail(&p->now, p->err, "expected %s, found '%.*s'", expected,
                            (int)(p->now.length < 80 ? p->now.length : 80), p->now.start);
}

tare_status tare__parse_expect(parser *p, const char *symbol) {
    char quoted[32];
    if (tare__token_is(&p->now, symbol)) return tare__parse_advance(p);
    snprintf(quoted, sizeof quoted, "'%.29s'", symbol);
    return unexpected(p, quoted);
}

tare_status tare__parse_accept(parser *p, const char *symbol, bool *out) {
    *out = tare__token_is(&p->now, symbol);
    return *out ? tare__parse_advance(p) : TARE_OK;
}

tare_status tare__parse_name(parser *p, const char **out) {
    if (p->now.kind != TOKEN_NAME) return unexpected(p, "a name");
    *out = tare__arena_strndup(&p->scratch, p->now.start, p->now.length);
    return *out ? tare__parse_advance(p) : tare__out_of_memory(p->err);
}

tare_status tare__parse_dotted(parser *p, text *out) {
    while (tare__token_is(&p->now, ".")) {
        TARE_TRY(tare__parse_advance(p));
        if (p->now.kind != TOKEN_NAME) return unexpected(p, "a name");
        if (out->length) tare__text_char(out, '.');
        tare__text_append_n(out, p->now.start, p->now.length);
        TARE_TRY(tare__parse_advance(p));
    }
    return tare__text_status(out, p->err);
}

node *tare__parse_node(const parser *p, const token *t) {
    char name[1024];
    if (t->kind != TOKEN_NAME || t->length >= sizeof name) return NULL;
    memcpy(name, t->start, t->length);
    name[t->length] = '\0';
    return tare__map_get(&p->nodes, name);
}

tare_status tare__parse_push(parser *p, const value *v) {
    if (!tare__grow((void **)&p->stack, &p->stack_capacity, p->stack_count, sizeof *p->stack))
        return tare__out_of_memory(p->err);
    p->stack[p->stack_count++] = *v;
    return TARE_OK;
}

tare_status tare__parse_pop(parser *p, size_t mark, value_kind kind, value *out) {
    const size_t count = p->stack_count - mark;
    if (count > UINT32_MAX) return tare__token_fail(&p->now, p->err, "there are too many values");
    value v = tare__value_sequence(&p->scratch, kind, (uint32_t)count);
    if (!v.as.items) return tare__out_of_memory(p->err);
    if (count) memcpy(v.as.items, p->stack + mark, count * sizeof *v.as.items);
    p->stack_count = mark;
    *out = v;
    return TARE_OK;
}

tare_status tare__parse_items(parser *p, const char *close, value_kind kind, value *out,
                              bool *is_single) {
    const size_t mark = p->stack_count;
    bool comma = true, closed = false;
    TARE_TRY(tare__parse_accept(p, close, &closed));
    while (!closed) {
        value item = tare__none();
        TARE_TRY(tare__parse_value(p, &item));
        TARE_TRY(tare__parse_push(p, &item));
        TARE_TRY(tare__parse_accept(p, ",", &comma));
        if (!comma)
            TARE_TRY(tare__parse_expect(p, close));
        else
            TARE_TRY(tare__parse_accept(p, close, &closed));
        closed = closed || !comma;
    }
    if (is_single) *is_single = !comma && p->stack_count == mark + 1;
    return tare__parse_pop(p, mark, kind, out);
}

// (a) is a, (a,) a tuple.
static tare_status parse_tuple(parser *p, value *out) {
    bool is_single = false;
    TARE_TRY(tare__parse_items(p, ")", VALUE_TUPLE, out, &is_single));
    if (is_single) *out = out->as.items[0];
    return TARE_OK;
}

static tare_status parse_dict(parser *p, value *out) {
    const size_t mark = p->stack_count;
    bool closed = false, comma = true;
    TARE_TRY(tare__parse_accept(p, "}", &closed));
    while (!closed) {
        value key = tare__none(), item = tare__none();
        TARE_TRY(tare__parse_value(p, &key));
        TARE_TRY(tare__parse_expect(p, ":"));
        TARE_TRY(tare__parse_value(p, &item));
        TARE_TRY(tare__parse_push(p, &key));
        TARE_TRY(tare__parse_push(p, &item));
        TARE_TRY(tare__parse_accept(p, ",", &comma));
        if (!comma)
            TARE_TRY(tare__parse_expect(p, "}"));
        else
            TARE_TRY(tare__parse_accept(p, "}", &closed));
        closed = closed || !comma;
    }
    return tare__parse_pop(p, mark, VALUE_DICT, out);
}

static tare_status parse_int(parser *p, bool negative, value *out) {
    int64_t n = 0;
    for (size_t i = 0; i < p->now.length; i++) {
        const int digit = p->now.start[i] - '0';
        // Accumulates the negative number, because -INT64_MIN does not fit.
        if (n < (INT64_MIN + digit) / 10)
            return tare__token_fail(&p->now, p->err, "the integer does not fit into 64 bits");
        n = n * 10 - digit;
    }
    if (!negative && n == INT64_MIN)
        return tare__token_fail(&p->now, p->err, "the integer does not fit into 64 bits");
    *out = tare__int(negative ? n : -n);
    return tare__parse_advance(p);
}

static tare_status parse_number(parser *p, bool negative, value *out) {
    if (p->now.kind == TOKEN_INT) return parse_int(p, negative, out);
    double number = 0;
    if (tare__token_is(&p->now, "inf"))
        number = INFINITY;
    else if (tare__token_is(&p->now, "nan"))
        number = NAN;
    else if (p->now.kind != TOKEN_FLOAT ||
             !tare__parse_double(p->now.start, p->now.length, &number))
        return unexpected(p, "a number");
    *out = tare__float(negative ? -number : number);
    return tare__parse_advance(p);
}

// Parses an escape after a backslash at `at`; returns the number of characters used, 0 if it is
// invalid.
static size_t append_escape(const char *at, size_t left, text *out) {
    static const char letters[] = "nrtabfv0\\'\"", meanings[] = "\n\r\t\a\b\f\v\0\\'\"";
    const size_t digits = *at == 'x' ? 2 : *at == 'u' ? 4 : *at == 'U' ? 8 : 0;
    if (digits == 0) {
        const char *letter = memchr(letters, *at, sizeof letters - 1);
        if (!letter) return 0;
        tare__text_char(out, meanings[letter - letters]);
        return 1;
    }
    unsigned long code = 0;
    if (left < digits + 1) return 0;
    for (size_t i = 1; i <= digits; i++) {
        static const char hex[] = "0123456789abcdef0123456789ABCDEF";
        const char *digit = memchr(hex, at[i], sizeof hex - 1);
        if (!digit) return 0;
        code = code * 16 + (unsigned long)(digit - hex) % 16;
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return 0;
    tare__text_code_point(out, code);
    return digits + 1;
}

tare_status tare__parse_string(parser *p, const char **out) {
    if (p->now.kind != TOKEN_STRING) return unexpected(p, "a string");
    text content = {0};
    const char *at = p->now.start + 1, *end = p->now.start + p->now.length - 1;
    bool is_good = true;
    while (at < end && is_good) {
        if (*at == '\\') {
            const size_t used = append_escape(at + 1, (size_t)(end - at - 1), &content);
            is_good = used > 0;
            at += used + 1;
        } else {
            tare__text_char(&content, *at++);
        }
    }
    const char *chars = tare__text_chars(&content);
    tare_status status = tare__text_status(&content, p->err);
    if (status == TARE_OK && (!is_good || strlen(chars) != content.length))
        status =
            tare__token_fail(&p->now, p->err, "the string holds an escape that tare cannot read");
    if (status == TARE_OK && !(*out = tare__arena_strdup(&p->scratch, chars)))
        status = tare__out_of_memory(p->err);
    tare__text_release(&content);
    return status == TARE_OK ? tare__parse_advance(p) : status;
}

static bool is_layout(const char *name) {
    static const char *const layouts[] = {
        "torch.strided",           "torch.sparse_coo",    "torch.sparse_csr",
        "torch.sparse_csc",        "torch.sparse_bsr",    "torch.sparse_bsc",
        "torch.contiguous_format", "torch.channels_last", "torch.channels_last_3d",
        "torch.preserve_format",   "torch.jagged",        "torch._mkldnn"};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (strcmp(layouts[i], name) == 0) return true;
    return false;
}

// A dotted name: a dtype, a scheme, a layout, else a type.
static tare_status parse_qualified(parser *p, value *out) {
    text name = {0};
    tare__text_append_n(&name, p->now.start, p->now.length);
    tare_status status = tare__parse_advance(p);
    if (status == TARE_OK) status = tare__parse_dotted(p, &name);
    const char *chars = tare__text_chars(&name);
    if (tare_dtype_from_name(chars) != TARE_DTYPE_UNSET)
        *out = tare__dtype_value(tare_dtype_from_name(chars));
    else if (tare_qscheme_from_name(chars) != TARE_QSCHEME_UNSET)
        *out = (value){.kind = VALUE_QSCHEME, .as.qscheme = tare_qscheme_from_name(chars)};
    else
        *out = (value){.kind = is_layout(chars) ? VALUE_LAYOUT : VALUE_TYPE,
                       .as.text = tare__arena_strdup(&p->scratch, chars)};
    if (status == TARE_OK && tare__value_has_text(out) && !out->as.text)
        status = tare__out_of_memory(p->err);
    tare__text_release(&name);
    return status;
}

// device(type='cuda', index=1)
static tare_status parse_device(parser *p, value *out) {
    const token at = p->now;
    const char *type = NULL;
    value index = tare__int(0);
    bool has_index = false;
    TARE_TRY(tare__parse_expect(p, "type"));
    TARE_TRY(tare__parse_expect(p, "="));
    TARE_TRY(tare__parse_string(p, &type));
    TARE_TRY(tare__parse_accept(p, ",", &has_index));
    if (has_index) {
        TARE_TRY(tare__parse_expect(p, "index"));
        TARE_TRY(tare__parse_expect(p, "="));
        TARE_TRY(parse_number(p, false, &index));
    }
    if (!tare__is_identifier(type) || index.kind != VALUE_INT)
        return tare__token_fail(&at, p->err, "a device has the name of its type and a number");
    if (has_index)
        type = tare__arena_printf(&p->scratch, "%s:%lld", type, (long long)index.as.integer);
    if (!type) return tare__out_of_memory(p->err);
    *out = (value){.kind = VALUE_DEVICE, .as.text = type};
    return tare__parse_expect(p, ")");
}

// tensor(1.0, dtype=torch.float32)
static tare_status parse_scalar(parser *p, value *out) {
    const size_t mark = p->stack_count;
    value number = tare__none(), dtype = tare__none();
    double ignored = 0;
    TARE_TRY(tare__parse_value(p, &number));
    if (!tare__value_number(&number, &ignored)) return unexpected(p, "a number before it");
    TARE_TRY(tare__parse_expect(p, ","));
    TARE_TRY(tare__parse_expect(p, "dtype"));
    TARE_TRY(tare__parse_expect(p, "="));
    TARE_TRY(tare__parse_value(p, &dtype));
    if (dtype.kind != VALUE_DTYPE) return unexpected(p, "a dtype before it");
    TARE_TRY(tare__parse_push(p, &number));
    TARE_TRY(tare__parse_push(p, &dtype));
    TARE_TRY(tare__parse_pop(p, mark, VALUE_SCALAR, out));
    return tare__parse_expect(p, ")");
}

static tare_status parse_slice(parser *p, value *out) {
    const token at = p->now;
    TARE_TRY(tare__parse_items(p, ")", VALUE_SLICE, out, NULL));
    return out->count == 3 ? TARE_OK
                           : tare__token_fail(&at, p->err, "a slice has start, stop and step");
}

static bool is_symbol_name(const token *t) {
    if (t->length < 2 || (*t->start != 's' && *t->start != 'u')) return false;
    for (size_t i = 1; i < t->length; i++)
        if (t->start[i] < '0' || t->start[i] > '9') return false;
    return true;
}

// slice( .. ), device( .. ) or tensor( .. ).
static tare_status parse_constructed(parser *p, value *out) {
    const token name = p->now;
    TARE_TRY(tare__parse_advance(p));
    TARE_TRY(tare__parse_advance(p));
    if (tare__token_is(&name, "slice")) return parse_slice(p, out);
    if (tare__token_is(&name, "device")) return parse_device(p, out);
    if (tare__token_is(&name, "tensor")) return parse_scalar(p, out);
    return tare__token_fail(&name, p->err, "a call inside of an argument is not understood");
}

static tare_status parse_named(parser *p, value *out) {
    static const struct {
        const char *name;
        value v;
    } constants[] = {{"None", {.kind = VALUE_NONE}},
                     {"True", {.kind = VALUE_BOOL, .as.boolean = true}},
                     {"False", {.kind = VALUE_BOOL, .as.boolean = false}},
                     {"Ellipsis", {.kind = VALUE_ELLIPSIS}}};
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++) {
        if (!tare__token_is(&p->now, constants[i].name)) continue;
        *out = constants[i].v;
        return tare__parse_advance(p);
    }
    if (tare__token_is(&p->now, "inf") || tare__token_is(&p->now, "nan"))
        return parse_number(p, false, out);
    if (tare__token_is(&p->next, "(")) return parse_constructed(p, out);
    node *n = tare__parse_node(p, &p->now);
    if (n) {
        *out = tare__node_value(n);
        return tare__parse_advance(p);
    }
    if (tare__token_is(&p->next, ".")) return parse_qualified(p, out);
    if (!is_symbol_name(&p->now))
        return tare__token_fail(&p->now, p->err, "nothing before this line is named '%.*s'",
                                (int)(p->now.length < 80 ? p->now.length : 80), p->now.start);
    *out = (value){.kind = VALUE_SYMBOL,
                   .as.text = tare__arena_strndup(&p->scratch, p->now.start, p->now.length)};
    return out->as.text ? tare__parse_advance(p) : tare__out_of_memory(p->err);
}

static tare_status parse_any(parser *p, value *out) {
    bool is_there = false;
    switch (p->now.kind) {
    case TOKEN_INT:
    case TOKEN_FLOAT:
        return parse_number(p, false, out);
    case TOKEN_NAME:
        return parse_named(p, out);
    case TOKEN_STRING:
        *out = tare__string(NULL);
        return tare__parse_string(p, &out->as.text);
    default:
        break;
    }
    TARE_TRY(tare__parse_accept(p, "-", &is_there));
    if (is_there) return parse_number(p, true, out);
    TARE_TRY(tare__parse_accept(p, "(", &is_there));
    if (is_there) return parse_tuple(p, out);
    TARE_TRY(tare__parse_accept(p, "[", &is_there));
    if (is_there) return tare__parse_items(p, "]", VALUE_LIST, out, NULL);
    TARE_TRY(tare__parse_accept(p, "{", &is_there));
    if (is_there) return parse_dict(p, out);
    TARE_TRY(tare__parse_accept(p, "...", &is_there));
    if (!is_there) return unexpected(p, "a value");
    *out = (value){.kind = VALUE_ELLIPSIS};
    return TARE_OK;
}

tare_status tare__parse_value(parser *p, value *out) {
    if (p->depth == MAX_DEPTH)
        return tare__token_fail(&p->now, p->err, "values are nested more than %d deep", MAX_DEPTH);
    p->depth++;
    const tare_status status = parse_any(p, out);
    p->depth--;
    return status;
}
