// SPDX-License-Identifier: Apache-2.0
// Names of inputs and outputs, derived from their paths in nested values.
#include "ir/call_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ir/output_tree.h"

enum { LONGEST_PATH = 240, LONGEST_NUMBER = 24 };

// A path under construction. If it gets too long, the value gets a number instead.
typedef struct path {
    char chars[LONGEST_PATH + 1];
    size_t length;
    bool is_too_long;
} path;

typedef struct naming {
    const char *root; // "output"
    arena *memory;
    call_names list;
    size_t capacity;
    map taken;
    text *tree; // where it writes how the values nest (ir/output_tree.h); NULL: nowhere
    tare_error *err;
} naming;

static tare_status grow(naming *n) {
    if (n->list.count < n->capacity) return TARE_OK;
    const size_t capacity = n->capacity > 0 ? 2 * n->capacity : 8;
    const char **items = tare__arena_array(n->memory, capacity, sizeof *items);
    if (items == NULL) return tare__out_of_memory(n->err);
    for (size_t i = 0; i < n->list.count; i++) items[i] = n->list.items[i];
    n->list.items = items;
    n->capacity = capacity;
    return TARE_OK;
}

static path extend(const naming *n, const path *p, const char *key, bool is_index) {
    path out = *p;
    const bool has_root = p->length == 0 && !p->is_too_long && is_index;
    const char *before = has_root ? n->root : p->chars;
    const int length = snprintf(out.chars, sizeof out.chars, "%s%s%s", before,
                                has_root || p->length > 0 ? "." : "", key);
    out.is_too_long = p->is_too_long || length < 0 || length > LONGEST_PATH;
    out.length = out.is_too_long ? 0 : (size_t)length;
    return out;
}

static path extend_index(const naming *n, const path *p, uint64_t index) {
    char digits[LONGEST_NUMBER];
    (void)snprintf(digits, sizeof digits, "%" PRIu64, index);
    return extend(n, p, digits, true);
}

// Between the items of a container.
static void separate(naming *n, size_t index) {
    if (n->tree != NULL && index > 0) tare__text_append(n->tree, ", ");
}

// Extends by a key; by the index if the key is missing or empty, because an empty key would not
// show in the path.
static path extend_key(const naming *n, const path *p, const char *key, uint64_t index) {
    return key != NULL && *key != '\0' ? extend(n, p, key, false) : extend_index(n, p, index);
}

static tare_status add(naming *n, const path *p) {
    const path numbered = extend_index(n, &(path){0}, n->list.count);
    const char *name = p->is_too_long ? numbered.chars : p->length > 0 ? p->chars : n->root;
    char *kept = tare__arena_strdup(n->memory, name);
    for (int k = 1; kept != NULL && tare__map_has(&n->taken, kept); k++)
        kept = tare__arena_printf(n->memory, "%s_%d", name, k);
    if (kept == NULL || !tare__map_set(&n->taken, kept, n)) return tare__out_of_memory(n->err);
    TARE_TRY(grow(n));
    tare__tree_leaf(n->tree, n->list.count);
    n->list.items[n->list.count++] = kept;
    return TARE_OK;
}

// --- trees of torch.utils._pytree ---

// A walk over the tree. A leaf is {"type": null, "context": null, "children_spec": []}.
typedef struct tree_walk {
    naming naming;
    const json_t *fields; // of named tuples, by type
} tree_walk;

// The keys of `count` children: ["a", "b"] in a dict, [["a", "b"], [..]] in a dataclass,
// {"dict_context": ["a", "b"], ..} in a defaultdict.
static const json_t *find_keys(const json_t *context, size_t count) {
    if (json_is_object(context)) context = json_object_get(context, "dict_context");
    const json_t *first = json_array_get(context, 0);
    if (json_is_array(first)) context = first;
    return json_array_size(context) == count ? context : NULL;
}

static tare_status walk_tree(tree_walk *w, const json_at *tree, const path *p);

static tare_status walk_children(tree_walk *w, const json_at *children, const json_t *keys,
                                 const path *p) {
    for (size_t i = 0; i < json_array_size(children->value); i++) {
        const json_at child = tare__json_item(children, i);
        const json_t *key = json_array_get(keys, i);
        separate(&w->naming, i);
        const path inner = json_is_integer(key)
                               ? extend_index(&w->naming, p, (uint64_t)json_integer_value(key))
                               : extend_key(&w->naming, p, json_string_value(key), i);
        TARE_TRY(walk_tree(w, &child, &inner));
    }
    return TARE_OK;
}

// Walks a subtree. The context of a mapping is JSON in a string, that of a named tuple its type.
// Children of any other container get their index.
static tare_status walk_tree(tree_walk *w, const json_at *tree, const path *p) {
    const json_at type = tare__json_get(tree, "type"), context = tare__json_get(tree, "context");
    const json_at children = tare__json_get(tree, "children_spec");
    const char *chars = json_string_value(context.value);
    json_t *parsed = NULL;
    TARE_TRY(tare__json_expect(tree, JSON_OBJECT, w->naming.err));
    if (!tare__json_has(tree, "type") || json_is_null(type.value)) return add(&w->naming, p);
    TARE_TRY(tare__json_expect(&children, JSON_ARRAY, w->naming.err));
    const json_t *keys = chars != NULL ? json_object_get(w->fields, chars) : NULL;
    keys = json_object_get(keys, "field_names");
    const bool is_json = keys == NULL && chars != NULL;
    if (is_json && tare__json_parse(chars, strlen(chars), &parsed, NULL) == TARE_OK) keys = parsed;
    keys = find_keys(keys, json_array_size(children.value));
    tare__tree_open_class(w->naming.tree, json_string_value(type.value), chars);
    const tare_status status = walk_children(w, &children, keys, p);
    tare__tree_close_class(w->naming.tree, keys);
    json_decref(parsed);
    return status;
}

// Walks the tree of arguments, ((positional, ..), {keyword: ..}); `names` are those of forward's
// arguments, in the same order.
static tare_status walk_arguments(tree_walk *w, const json_at *tree, const json_at *names) {
    const json_at children = tare__json_get(tree, "children_spec");
    size_t next = 0;
    TARE_TRY(tare__json_expect(&children, JSON_ARRAY, w->naming.err));
    for (size_t k = 0; k < json_array_size(children.value); k++) {
        const json_at child = tare__json_item(&children, k);
        const json_at items = tare__json_get(&child, "children_spec");
        TARE_TRY(tare__json_expect(&items, JSON_ARRAY, w->naming.err));
        for (size_t i = 0; i < json_array_size(items.value); i++, next++) {
            const json_at item = tare__json_item(&items, i);
            const char *name = json_string_value(json_array_get(names->value, next));
            const path p = extend_key(&w->naming, &(path){0}, name, next);
            TARE_TRY(walk_tree(w, &item, &p));
        }
    }
    return TARE_OK;
}

// Reads [1, tree], JSON in a string. names: of arguments; NULL: it is the tree of results.
static tare_status read_tree(tree_walk *w, const json_at *spec, const json_at *names) {
    const char *chars = json_string_value(spec->value);
    json_t *json = NULL;
    if (chars == NULL || *chars == '\0') return TARE_OK;
    TARE_TRY(tare__json_place(spec, tare__json_parse(chars, strlen(chars), &json, w->naming.err),
                              w->naming.err));
    const json_at top = tare__json_root(json), tree = tare__json_item(&top, 1);
    const tare_status status =
        names != NULL ? walk_arguments(w, &tree, names) : walk_tree(w, &tree, &(path){0});
    json_decref(json);
    return status == TARE_OK ? TARE_OK : tare__json_place(spec, status, w->naming.err);
}

tare_status tare__call_names_read(graph *g, const json_at *about, tare_error *err) {
    const json_at calls = tare__json_get(about, "module_call_graph");
    const json_at first = tare__json_item(&calls, 0);
    const json_at signature = tare__json_get(&first, "signature");
    const json_at in = tare__json_get(&signature, "in_spec");
    const json_at out = tare__json_get(&signature, "out_spec");
    const json_at names = tare__json_get(&signature, "forward_arg_names");
    arena memory = {0};
    const json_t *fields = json_object_get(about->value, "treespec_namedtuple_fields");
    text tree = {0};
    tree_walk inputs = {{.root = "input", .memory = &memory, .err = err}, fields};
    tree_walk outputs = {{.root = "output", .memory = &memory, .tree = &tree, .err = err}, fields};
    tare_status status = read_tree(&inputs, &in, &names);
    if (status == TARE_OK) status = read_tree(&outputs, &out, NULL);
    if (status == TARE_OK) status = tare__text_status(&tree, err);
    if (tree.length > 0) outputs.naming.list.tree = tree.chars;
    if (status == TARE_OK)
        status = tare__call_names_set(g, &inputs.naming.list, &outputs.naming.list, err);
    tare__map_release(&inputs.naming.taken);
    tare__map_release(&outputs.naming.taken);
    tare__text_release(&tree);
    tare__arena_release(&memory);
    return status;
}

// --- names of a graph ---

tare_status tare__call_names_set(graph *g, const call_names *inputs, const call_names *outputs,
                                 tare_error *err) {
    return tare__call_names_copy(&g->memory, inputs, &g->input_names) &&
                   tare__call_names_copy(&g->memory, outputs, &g->output_names)
               ? TARE_OK
               : tare__out_of_memory(err);
}

const char *tare__input_name(const node *placeholder) {
    const call_names *names = &placeholder->owner->input_names;
    size_t index = 0, count = 0;
    if (names->count == 0) return placeholder->target;
    for (const node *n = placeholder->owner->first; n != NULL; n = n->next) {
        if (n == placeholder) index = count;
        count += n->op == NODE_PLACEHOLDER;
    }
    return count == names->count ? names->items[index] : placeholder->target;
}

// --- outputs ---

typedef struct output_walk {
    naming naming;
    const call_names *names; // of the graph's results, one per item
    size_t next;
    size_t *starts, *ends; // where each item stands in naming.tree
} output_walk;

static bool is_container(const value *v) {
    return v->kind == VALUE_LIST || v->kind == VALUE_TUPLE || v->kind == VALUE_DICT;
}

static size_t count_leaves(const value *v) {
    if (!is_container(v)) return 1;
    const uint32_t step = v->kind == VALUE_DICT ? 2 : 1;
    size_t count = 0;
    for (uint32_t i = step - 1; i < v->count; i += step) count += count_leaves(&v->as.items[i]);
    return count;
}

static path extend_item(const naming *n, const path *p, const value *v, uint32_t i) {
    if (v->kind != VALUE_DICT) return extend_index(n, p, i);
    const value *key = &v->as.items[i - 1];
    return key->kind == VALUE_INT && key->as.integer >= 0
               ? extend_index(n, p, (uint64_t)key->as.integer)
               : extend_key(n, p, key->kind == VALUE_STRING ? key->as.text : NULL, i / 2);
}

// Names the tensors in one node's result, which is usually a tensor.
static tare_status name_result(naming *n, const value *result, const path *p) {
    if (result->kind == VALUE_TENSOR) return add(n, p);
    if (!is_container(result)) {
        tare__tree_constant(n->tree, result);
        return TARE_OK;
    }
    const uint32_t step = result->kind == VALUE_DICT ? 2 : 1;
    tare__tree_open(n->tree, result);
    for (uint32_t i = step - 1; i < result->count; i += step) {
        const path inner = extend_item(n, p, result, i);
        separate(n, i / step);
        TARE_TRY(name_result(n, &result->as.items[i], &inner));
    }
    tare__tree_close(n->tree, result);
    return TARE_OK;
}

// Names the results that a node's meta describes: {"shape": ..} is a tensor, null a number.
static tare_status name_described(naming *n, const json_t *val, const path *p) {
    const value tuple = {.kind = VALUE_TUPLE}, none = tare__none();
    if (json_is_object(val)) return add(n, p);
    if (!json_is_array(val)) {
        tare__tree_constant(n->tree, &none);
        return TARE_OK;
    }
    tare__tree_open(n->tree, &tuple);
    for (size_t i = 0; i < json_array_size(val); i++) {
        const path inner = extend_index(n, p, i);
        separate(n, i);
        TARE_TRY(name_described(n, json_array_get(val, i), &inner));
    }
    tare__tree_close(n->tree, &tuple);
    return TARE_OK;
}

static tare_status name_node(naming *n, const node *of, const path *p) {
    json_t *meta = NULL;
    if (of->meta_json == NULL) return add(n, p);
    TARE_TRY(tare__json_parse(of->meta_json, strlen(of->meta_json), &meta, n->err));
    const json_t *val = json_object_get(meta, "val");
    const tare_status status = val != NULL ? name_described(n, val, p) : add(n, p);
    json_decref(meta);
    return status;
}

static tare_status name_item(output_walk *w, const value *v, const value *result, const path *p) {
    if (result != NULL) return name_result(&w->naming, result, p);
    if (v->kind == VALUE_NODE) return name_node(&w->naming, v->as.node, p);
    if (v->kind == VALUE_TENSOR) return add(&w->naming, p);
    tare__tree_constant(w->naming.tree, v);
    return TARE_OK;
}

static tare_status name_leaf(output_walk *w, const value *v, const value *result, const path *p) {
    path named = *p;
    const size_t i = w->next++;
    if (w->names != NULL) named = extend_key(&w->naming, &(path){0}, w->names->items[i], 0);
    w->starts[i] = w->naming.tree->length;
    const tare_status status = name_item(w, v, result, &named);
    w->ends[i] = w->naming.tree->length;
    return status;
}

static tare_status name_value(output_walk *w, const value *v, const value *result, const path *p) {
    if (!is_container(v)) return name_leaf(w, v, result, p);
    const bool is_alike = result != NULL && result->count == v->count;
    const uint32_t step = v->kind == VALUE_DICT ? 2 : 1;
    tare__tree_open(w->naming.tree, v);
    for (uint32_t i = step - 1; i < v->count; i += step) {
        const path inner = extend_item(&w->naming, p, v, i);
        separate(&w->naming, i / step);
        TARE_TRY(name_value(w, &v->as.items[i], is_alike ? &result->as.items[i] : NULL, &inner));
    }
    tare__tree_close(w->naming.tree, v);
    return TARE_OK;
}

// Stores how the outputs nest: as the exporter said, if it did. The graph of a program has a tuple
// of them all, also of a single one.
static tare_status keep_tree(const graph *g, output_walk *w, tare_error *err) {
    const bool is_single = w->names == NULL && g->pytree_signature != NULL && w->next == 1;
    const char *nesting = w->names != NULL ? w->names->tree : is_single ? "0" : NULL;
    const tree_leaves leaves = {.chars = tare__text_chars(w->naming.tree),
                                .starts = w->starts,
                                .ends = w->ends,
                                .count = w->next};
    text filled = {0};
    const text *kept = nesting != NULL ? &filled : w->naming.tree;
    tare_status status = tare__text_status(w->naming.tree, err);
    if (status == TARE_OK && nesting != NULL)
        status = tare__tree_fill(nesting, &leaves, &filled, err);
    if (status == TARE_OK) {
        w->naming.list.tree = tare__arena_strdup(w->naming.memory, tare__text_chars(kept));
        if (w->naming.list.tree == NULL) status = tare__out_of_memory(err);
    }
    tare__text_release(&filled);
    return status;
}

tare_status tare__output_names(const graph *g, const value *result, arena *memory, call_names *out,
                               tare_error *err) {
    const node *last = tare__graph_output(g);
    text tree = {0};
    output_walk w = {.naming = {.root = "output", .memory = memory, .tree = &tree, .err = err}};
    *out = (call_names){0};
    if (last == NULL || last->arg_count == 0) return TARE_OK;
    const size_t count = count_leaves(&last->args[0]);
    w.starts = tare__arena_array(memory, 2 * count, sizeof *w.starts);
    if (w.starts == NULL && count > 0) return tare__out_of_memory(err);
    w.ends = w.starts + count;
    if (g->output_names.count == count) w.names = &g->output_names;
    tare_status status = name_value(&w, &last->args[0], result, &(path){0});
    if (status == TARE_OK) status = keep_tree(g, &w, err);
    tare__text_release(&tree);
    tare__map_release(&w.naming.taken);
    if (status != TARE_OK) return status;
    *out = w.naming.list;
    if (out->count == 1 && strcmp(out->items[0], "output.0") == 0) out->items[0] = w.naming.root;
    return TARE_OK;
}
