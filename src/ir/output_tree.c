// SPDX-License-Identifier: Apache-2.0
// How the outputs of a model nest, as JSON.
#include "ir/output_tree.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/json/write.h"

void tare__tree_leaf(text *tree, size_t index) {
    if (tree != NULL) tare__text_printf(tree, "%zu", index);
}

static void write_scalar(text *tree, const value *v) {
    if (v->kind == VALUE_STRING)
        tare__text_json_string(tree, v->as.text);
    else if (v->kind == VALUE_INT)
        tare__text_printf(tree, "%" PRId64, v->as.integer);
    else if (v->kind == VALUE_BOOL)
        tare__text_append(tree, v->as.boolean ? "true" : "false");
    else if (v->kind == VALUE_FLOAT && isfinite(v->as.real))
        tare__text_double(tree, v->as.real);
    else
        tare__text_append(tree, "null");
}

void tare__tree_constant(text *tree, const value *v) {
    if (tree == NULL) return;
    tare__text_append(tree, "{\"value\": ");
    write_scalar(tree, v);
    tare__text_char(tree, '}');
}

void tare__tree_open(text *tree, const value *v) {
    if (tree == NULL) return;
    const char *type = v->kind == VALUE_DICT ? "dict" : v->kind == VALUE_LIST ? "list" : "tuple";
    tare__text_printf(tree, "{\"type\": \"%s\", \"items\": [", type);
}

void tare__tree_close(text *tree, const value *v) {
    if (tree == NULL) return;
    tare__text_char(tree, ']');
    if (v->kind == VALUE_DICT) {
        tare__text_append(tree, ", \"keys\": [");
        for (uint32_t i = 0; i + 1 < v->count; i += 2) {
            if (i > 0) tare__text_append(tree, ", ");
            write_scalar(tree, &v->as.items[i]);
        }
        tare__text_char(tree, ']');
    }
    tare__text_char(tree, '}');
}

// torch's names of containers that every language has.
static const struct {
    const char *type, *kind;
} kinds[] = {{"builtins.tuple", "tuple"},         {"builtins.list", "list"},
             {"builtins.dict", "dict"},           {"collections.OrderedDict", "dict"},
             {"collections.defaultdict", "dict"}, {"collections.namedtuple", "namedtuple"}};

void tare__tree_open_class(text *tree, const char *type, const char *context) {
    if (tree == NULL) return;
    const char *kind = "object";
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].type, type) == 0) kind = kinds[i].kind;
    const bool is_tuple = strcmp(kind, "namedtuple") == 0;
    const char *name = is_tuple ? context : strcmp(kind, "object") == 0 ? type : NULL;
    tare__text_printf(tree, "{\"type\": \"%s\", ", kind);
    if (name != NULL) {
        tare__text_append(tree, "\"name\": ");
        tare__text_json_string(tree, name);
        tare__text_append(tree, ", ");
    }
    tare__text_append(tree, "\"items\": [");
}

void tare__tree_close_class(text *tree, const json_t *keys) {
    if (tree == NULL) return;
    tare__text_char(tree, ']');
    if (keys != NULL) {
        tare__text_append(tree, ", \"keys\": ");
        tare__json_write(keys, tree);
    }
    tare__text_char(tree, '}');
}

static void fill(const json_t *tree, const tree_leaves *leaves, text *out) {
    const json_t *items = json_object_get(tree, "items");
    const char *key = NULL, *separator = "";
    json_t *member = NULL;
    if (json_is_integer(tree)) {
        const size_t i = (size_t)json_integer_value(tree);
        if (i < leaves->count)
            tare__text_append_n(out, leaves->chars + leaves->starts[i],
                                leaves->ends[i] - leaves->starts[i]);
        return;
    }
    tare__text_char(out, '{');
    json_object_foreach((json_t *)tree, key, member) {
        tare__text_append(out, separator);
        separator = ", ";
        tare__text_json_string(out, key);
        tare__text_append(out, ": ");
        if (member != items) {
            tare__json_write(member, out);
            continue;
        }
        tare__text_char(out, '[');
        for (size_t i = 0; i < json_array_size(items); i++) {
            if (i > 0) tare__text_append(out, ", ");
            fill(json_array_get(items, i), leaves, out);
        }
        tare__text_char(out, ']');
    }
    tare__text_char(out, '}');
}

tare_status tare__tree_fill(const char *tree, const tree_leaves *leaves, text *out,
                            tare_error *err) {
    // In brackets, as a tree may be a number.
    json_t *json = NULL;
    text list = {0};
    tare__text_printf(&list, "[%s]", tree);
    tare_status status = tare__text_status(&list, err);
    if (status == TARE_OK) status = tare__json_parse(list.chars, list.length, &json, err);
    if (status == TARE_OK) {
        fill(json_array_get(json, 0), leaves, out);
        status = tare__text_status(out, err);
    }
    json_decref(json);
    tare__text_release(&list);
    return status;
}
