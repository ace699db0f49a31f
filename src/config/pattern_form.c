// SPDX-License-Identifier: Apache-2.0
// Converts patterns as users write them to the form that passes compare.
#include "config/pattern_form.h"

#include <ctype.h>
#include <string.h>

#include "ops/classes/classes.h"
#include "ops/op.h"

#define MATCH_ALL "torch.ao.quantization.utils.MatchAllNode"

enum { LONGEST_NAME = 255 };

static const char *last_word(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

// True for a capitalized name (after underscores, if it is private), which is a class. Functions
// and methods are not capitalized, except for overloads (torch.ops.aten.add.Tensor).
static bool is_class_name(const char *name) {
    if (tare__starts_with(name, "torch.ops.")) return false;
    const char *word = last_word(name);
    while (*word == '_') word++;
    return isupper((unsigned char)*word) != 0;
}

static bool is_word_char(unsigned char c) {
    return isalnum(c) || c == '_' || c == '<' || c == '>' || c >= 0x80; // <locals> of a function
}

// True for words separated by single dots.
static bool is_qualified_name(const char *name) {
    bool at_start = true;
    for (; *name; name++) {
        if (*name == '.' ? at_start : !is_word_char((unsigned char)*name)) return false;
        if (at_start && isdigit((unsigned char)*name)) return false;
        at_start = *name == '.';
    }
    return !at_start;
}

static pattern_kind kind_of_name(const char *name) {
    if (strcmp(name, MATCH_ALL) == 0 || strcmp(name, last_word(MATCH_ALL)) == 0) return PATTERN_ANY;
    if (is_class_name(name)) return PATTERN_MODULE;
    // Of functions in patterns, only Python's getattr has a name without dots.
    if (strchr(name, '.') || strcmp(name, "getattr") == 0) return PATTERN_FUNCTION;
    return PATTERN_METHOD;
}

tare_status tare__pattern_from_name(const char *name, pattern *out, tare_error *err) {
    if (strlen(name) > LONGEST_NAME || !is_qualified_name(name)) {
        tare__fail(err, TARE_INVALID_ARGUMENT, "expected an operator's name, found '%s'", name);
        return tare__hint(err, TARE_INVALID_ARGUMENT,
                          "such as torch.nn.Linear, torch.nn.functional.relu, or reshape");
    }
    *out = (pattern){.kind = kind_of_name(name), .name = name};
    return TARE_OK;
}

const char *tare__operator_canonical(const char *name, char *buffer, size_t size) {
    if (!is_class_name(name) || strlen(name) >= size) return tare__function_canonical(name);
    tare__class_public_name(name, buffer, size);
    return buffer;
}

static const char *canonical_name(const pattern *p, char *buffer, size_t size) {
    switch (p->kind) {
    case PATTERN_MODULE:
    case PATTERN_FUNCTION:
        return tare__operator_canonical(p->name, buffer, size);
    case PATTERN_ANY:
    case PATTERN_METHOD:
    case PATTERN_LITERAL:
    case PATTERN_TUPLE:
        break;
    }
    return p->name;
}

static tare_status copy(arena *a, const pattern *p, bool is_canonical, pattern *out,
                        tare_error *err) {
    char buffer[LONGEST_NAME + 1];
    pattern result = *p;
    if (p->name) {
        const char *name = is_canonical ? canonical_name(p, buffer, sizeof buffer) : p->name;
        result.name = tare__arena_strdup(a, name);
        if (!result.name) return tare__out_of_memory(err);
    }
    if (p->kind == PATTERN_TUPLE) {
        pattern *items = tare__arena_array(a, p->item_count, sizeof *items);
        if (!items) return tare__out_of_memory(err);
        for (size_t i = 0; i < p->item_count; i++)
            TARE_TRY(copy(a, &p->items[i], is_canonical, &items[i], err));
        result.items = items;
    }
    *out = result;
    return TARE_OK;
}

tare_status tare__pattern_copy(arena *a, const pattern *p, pattern *out, tare_error *err) {
    return copy(a, p, false, out, err);
}

tare_status tare__pattern_canonical(arena *a, const pattern *p, pattern *out, tare_error *err) {
    return copy(a, p, true, out, err);
}

static tare_status wrong_length(const pattern *forward, tare_error *err) {
    text shown = {0};
    tare__pattern_to_text(forward, &shown);
    tare__fail(err, TARE_INVALID_ARGUMENT, "Expected a tuple with 2 or 3 elements, got: %s",
               tare__text_chars(&shown));
    tare__text_release(&shown);
    return TARE_INVALID_ARGUMENT;
}

tare_status tare__pattern_reverse(arena *a, const pattern *forward, pattern *out, tare_error *err) {
    if (forward->kind != PATTERN_TUPLE) {
        *out = *forward;
        return TARE_OK;
    }
    const pattern *from = forward->items;
    if (forward->item_count != 2 && forward->item_count != 3) return wrong_length(forward, err);
    pattern *inner = tare__arena_array(a, 2, sizeof *inner);
    pattern *outer = tare__arena_array(a, 2, sizeof *outer);
    if (!inner || !outer) return tare__out_of_memory(err);
    inner[0] = from[1];
    inner[1] = from[0];
    *out = (pattern){.kind = PATTERN_TUPLE, .items = inner, .item_count = 2};
    if (forward->item_count == 2) return TARE_OK;
    outer[0] = from[2];
    outer[1] = *out;
    out->items = outer;
    return TARE_OK;
}

static bool is_operator(pattern_kind kind) {
    return kind == PATTERN_MODULE || kind == PATTERN_FUNCTION || kind == PATTERN_METHOD;
}

tare_status tare__pattern_check(const pattern *p, tare_error *err) {
    if (p->kind != PATTERN_TUPLE) return TARE_OK;
    if (p->item_count < 2 || !is_operator(p->items[0].kind))
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "expected a tuple of an operator and patterns of its arguments");
    if (p->items[0].kind == PATTERN_FUNCTION && p->item_count != 2 &&
        strcmp(tare__function_canonical(p->items[0].name), "getattr") == 0)
        return tare__fail(err, TARE_INVALID_ARGUMENT,
                          "Expecting getattr pattern to have two elements");
    for (size_t i = 1; i < p->item_count; i++) TARE_TRY(tare__pattern_check(&p->items[i], err));
    return TARE_OK;
}

static tare_status list_from_json(arena *a, const json_at *at, pattern *out, tare_error *err) {
    const size_t count = json_array_size(at->value);
    pattern *items = tare__arena_array(a, count ? count : 1, sizeof *items);
    if (!items) return tare__out_of_memory(err);
    for (size_t i = 0; i < count; i++) {
        const json_at item = tare__json_item(at, i);
        TARE_TRY(tare__pattern_from_json(a, &item, &items[i], err));
    }
    *out = (pattern){.kind = PATTERN_TUPLE, .items = items, .item_count = count};
    return TARE_OK;
}

tare_status tare__pattern_from_json(arena *a, const json_at *at, pattern *out, tare_error *err) {
    *out = (pattern){.kind = PATTERN_LITERAL};
    if (json_is_array(at->value)) return list_from_json(a, at, out, err);
    if (json_is_integer(at->value)) {
        out->literal = tare__int(json_integer_value(at->value));
        return TARE_OK;
    }
    const char *name = NULL;
    TARE_TRY(tare__json_string(at, &name, err));
    if (tare__pattern_from_name(name, out, NULL) == TARE_OK) return TARE_OK;
    tare__json_fail(at, err, "expected an operator's name, found '%s'", name);
    return tare__hint(err, TARE_MALFORMED_FILE,
                      "such as torch.nn.Linear, torch.nn.functional.relu, or reshape");
}

void tare__pattern_emit(const pattern *p, json_emitter *e) {
    switch (p->kind) {
    case PATTERN_ANY:
    case PATTERN_MODULE:
    case PATTERN_FUNCTION:
    case PATTERN_METHOD:
        tare__emit_string(e, p->name);
        return;
    case PATTERN_LITERAL:
        tare__emit_int(e, p->literal.as.integer);
        return;
    case PATTERN_TUPLE:
        break;
    }
    tare__emit_open(e, '[');
    for (size_t i = 0; i < p->item_count; i++) tare__pattern_emit(&p->items[i], e);
    tare__emit_close(e, ']');
}

void tare__pattern_to_text(const pattern *p, text *out) {
    switch (p->kind) {
    case PATTERN_ANY:
        tare__text_append(out, last_word(MATCH_ALL));
        return;
    case PATTERN_MODULE:
    case PATTERN_FUNCTION:
    case PATTERN_METHOD:
        tare__text_append(out, p->name);
        return;
    case PATTERN_LITERAL:
        tare__text_printf(out, "%lld", (long long)p->literal.as.integer);
        return;
    case PATTERN_TUPLE:
        break;
    }
    tare__text_char(out, '(');
    for (size_t i = 0; i < p->item_count; i++) {
        if (i > 0) tare__text_append(out, ", ");
        tare__pattern_to_text(&p->items[i], out);
    }
    tare__text_append(out, p->item_count == 1 ? ",)" : ")");
}
