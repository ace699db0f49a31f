// SPDX-License-Identifier: Apache-2.0
// Generates the two lines of code from a program's in_spec and argument names.
#include "io/pt2/signature.h"

#include <string.h>

typedef struct call_tree {
    const json_at *names; // forward's arguments
    size_t positional;
    json_t *keywords; // JSON list of their names; owned
    tare_error *err;
} call_tree;

static tare_status name_at(const call_tree *c, size_t i, const char **out) {
    const json_at at = tare__json_item(c->names, i);
    TARE_TRY(tare__json_string(&at, out, c->err));
    return tare__is_identifier(*out) ? TARE_OK
                                     : tare__json_fail(&at, c->err, "'%s' is no name", *out);
}

static tare_status append_names(const call_tree *c, size_t from, size_t to, const char *before,
                                text *out) {
    const char *name = NULL;
    for (size_t i = from; i < to; i++) {
        TARE_TRY(name_at(c, i, &name));
        tare__text_append(out, i > from ? ", " : before);
        tare__text_append(out, name);
    }
    return TARE_OK;
}

// Reads [1, tree], the JSON that in_spec has as a string. The keys of its dicts are such strings,
// too.
static tare_status read_tree(call_tree *c, const json_at *top) {
    const json_at pair = tare__json_item(top, 1), children = tare__json_get(&pair, "children_spec");
    const json_at positional = tare__json_item(&children, 0),
                  keywords = tare__json_item(&children, 1);
    const json_at items = tare__json_get(&positional, "children_spec");
    const json_at context = tare__json_get(&keywords, "context");
    const char *chars = NULL;
    TARE_TRY(tare__json_expect(top, JSON_ARRAY, c->err));
    TARE_TRY(tare__json_expect(&pair, JSON_OBJECT, c->err));
    TARE_TRY(tare__json_expect(&children, JSON_ARRAY, c->err));
    TARE_TRY(tare__json_expect(&positional, JSON_OBJECT, c->err));
    TARE_TRY(tare__json_expect(&keywords, JSON_OBJECT, c->err));
    TARE_TRY(tare__json_expect(&items, JSON_ARRAY, c->err));
    c->positional = json_array_size(items.value);
    TARE_TRY(tare__json_string(&context, &chars, c->err));
    TARE_TRY(tare__json_parse(chars, strlen(chars), &c->keywords, c->err));
    if (!json_is_array(c->keywords) ||
        c->positional + json_array_size(c->keywords) != json_array_size(c->names->value))
        return tare__json_fail(&context, c->err,
                               "%zu positional arguments and the keywords %s do not make %zu names",
                               c->positional, chars, json_array_size(c->names->value));
    return TARE_OK;
}

static tare_status append_keywords(const call_tree *c, text *out) {
    for (size_t i = 0; i < json_array_size(c->keywords); i++) {
        const char *key = json_string_value(json_array_get(c->keywords, i)), *name = NULL;
        TARE_TRY(name_at(c, c->positional + i, &name));
        tare__text_printf(out, "%s'%s':%s", i > 0 ? ", " : "", key != NULL ? key : "", name);
    }
    return TARE_OK;
}

// x, y, = fx_pytree.tree_flatten_spec(([x], {'k':y}), self._in_spec)
static tare_status write_flatten(const graph *g, const call_tree *c, text *out) {
    for (const node *n = g->first; n != NULL; n = n->next)
        if (n->op == NODE_PLACEHOLDER) tare__text_printf(out, "%s, ", n->target);
    if (out->length == 0) return TARE_OK;
    out->chars[--out->length] = '\0'; // "x, y,"
    tare__text_append(out, " = fx_pytree.tree_flatten_spec(([");
    TARE_TRY(append_names(c, 0, c->positional, "", out));
    tare__text_append(out, "], {");
    TARE_TRY(append_keywords(c, out));
    tare__text_append(out, "}), self._in_spec)");
    return TARE_OK;
}

static tare_status write_lines(graph *g, call_tree *c, const json_at *tree, text *definition,
                               text *flatten) {
    TARE_TRY(read_tree(c, tree));
    tare__text_append(definition, "def forward(self");
    TARE_TRY(append_names(c, 0, json_array_size(c->names->value), ", ", definition));
    tare__text_append(definition, "):");
    TARE_TRY(write_flatten(g, c, flatten));
    TARE_TRY(tare__text_status(definition, c->err));
    TARE_TRY(tare__text_status(flatten, c->err));
    g->pytree_signature = tare__arena_strdup(&g->memory, tare__text_chars(definition));
    g->pytree_flatten = tare__arena_strdup(&g->memory, tare__text_chars(flatten));
    return g->pytree_signature != NULL && g->pytree_flatten != NULL ? TARE_OK
                                                                    : tare__out_of_memory(c->err);
}

tare_status tare__pt2_set_signature(graph *g, const json_at *calls, tare_error *err) {
    const json_at first = tare__json_item(calls, 0),
                  signature = tare__json_get(&first, "signature");
    const json_at spec = tare__json_get(&signature, "in_spec");
    const json_at names = tare__json_get(&signature, "forward_arg_names");
    const char *chars = NULL;
    json_t *json = NULL;
    text definition = {0}, flatten = {0};
    TARE_TRY(tare__json_expect(calls, JSON_ARRAY, err));
    TARE_TRY(tare__json_expect(&first, JSON_OBJECT, err));
    TARE_TRY(tare__json_expect(&signature, JSON_OBJECT, err));
    TARE_TRY(tare__json_string(&spec, &chars, err));
    if (!json_is_null(names.value)) // as torch writes it where there are no arguments
        TARE_TRY(tare__json_expect(&names, JSON_ARRAY, err));
    TARE_TRY(tare__json_place(&spec, tare__json_parse(chars, strlen(chars), &json, err), err));
    const json_at tree = tare__json_root(json);
    call_tree c = {.names = &names, .err = err};
    const tare_status status = write_lines(g, &c, &tree, &definition, &flatten);
    json_decref(c.keywords);
    json_decref(json);
    tare__text_release(&definition);
    tare__text_release(&flatten);
    return status;
}
