// SPDX-License-Identifier: Apache-2.0
// Removes, duplicates, moves and replaces values of a JSON tree, and renames its keys.
#include <string.h>

#include "core/json/json.h"
#include "core/json/write.h"
#include "core/memory/alloc.h"
#include "edit.h"

edit_random edit_seed(unsigned seed) {
    return (edit_random){(uint64_t)seed * 2 + 1};
}

// xorshift64*
size_t edit_choose(edit_random *r, size_t below) {
    r->state ^= r->state >> 12;
    r->state ^= r->state << 25;
    r->state ^= r->state >> 27;
    return (size_t)(r->state * UINT64_C(2685821657736338717) >> 33) % (below > 0 ? below : 1);
}

typedef struct place {
    json_t *parent;  // an object or array
    const char *key; // of an object
    size_t index;    // of an array
} place;

typedef struct editor {
    edit_random *random;
    json_t *root;
    place *places;
    size_t count, capacity;
} editor;

static void collect(editor *e, json_t *parent) {
    const char *key = NULL;
    json_t *item = NULL;
    size_t index = 0;
    json_object_foreach(parent, key, item) {
        if (e->count == MOST_PLACES ||
            !tare__grow((void **)&e->places, &e->capacity, e->count, sizeof *e->places))
            return;
        e->places[e->count++] = (place){.parent = parent, .key = key};
        collect(e, item);
    }
    json_array_foreach(parent, index, item) {
        if (e->count == MOST_PLACES ||
            !tare__grow((void **)&e->places, &e->capacity, e->count, sizeof *e->places))
            return;
        e->places[e->count++] = (place){.parent = parent, .index = index};
        collect(e, item);
    }
}

static json_t *value_at(const place *p) {
    return p->key != NULL ? json_object_get(p->parent, p->key)
                          : json_array_get(p->parent, p->index);
}

static void put(const place *p, json_t *value) { // takes value
    if (p->key != NULL)
        (void)json_object_set_new(p->parent, p->key, value);
    else
        (void)json_array_set_new(p->parent, p->index, value);
}

static json_t *any_number(editor *e) {
    static const json_int_t numbers[] = {0,  1,    -1,        2,         7,        64,
                                         65, 4096, INT32_MAX, INT64_MAX, INT64_MIN};
    return json_integer(numbers[edit_choose(e->random, sizeof numbers / sizeof *numbers)]);
}

static json_t *any_string(editor *e) {
    static const char *const words[] = {
        "",
        "as_tensor",
        "as_ints",
        "as_sym_int",
        "as_graph",
        "Infinity",
        "Symbol('s0')",
        "Mul(Integer(2), Symbol('s0'))",
        "x",
        "weight_0",
        "../x",
        "torch.ops.aten.add.Tensor",
        "input",
        "self",
        "F32",
        "I8",
        "call_function",
        "call_module",
        "get_attr",
        "torch.nn.Linear",
        "torch.relu",
        "torch.qint8",
        "[1, {\"type\": null, \"context\": null, \"children_spec\": []}]"};
    return json_string(words[edit_choose(e->random, sizeof words / sizeof *words)]);
}

// A key is renamed to that of another place: unions change their kind.
static void rename_key(editor *e, const place *p) {
    const place *other = &e->places[edit_choose(e->random, e->count)];
    if (p->key == NULL || other->key == NULL) return;
    json_t *value = json_incref(json_object_get(p->parent, p->key));
    char *key = tare__strdup(other->key);
    (void)json_object_del(p->parent, p->key);
    if (key != NULL) (void)json_object_set(p->parent, key, value);
    json_decref(value);
    tare__free(key);
}

static void edit(editor *e) {
    e->count = 0;
    collect(e, e->root);
    if (e->count == 0) return;
    const place p = e->places[edit_choose(e->random, e->count)],
                q = e->places[edit_choose(e->random, e->count)];
    switch (edit_choose(e->random, 8)) {
    case 0: // gone
        if (p.key != NULL)
            (void)json_object_del(p.parent, p.key);
        else
            (void)json_array_remove(p.parent, p.index);
        break;
    case 1: // there twice
        if (p.key == NULL)
            (void)json_array_insert_new(p.parent, p.index, json_deep_copy(value_at(&p)));
        break;
    case 2:
    case 3: // what stands elsewhere
        put(&p, json_deep_copy(value_at(&q)));
        break;
    case 4:
        rename_key(e, &p);
        break;
    case 5:
        put(&p, any_string(e));
        break;
    case 6:
        put(&p, any_number(e));
        break;
    default:
        put(&p, edit_choose(e->random, 2) == 0 ? json_null()
                                               : json_boolean(edit_choose(e->random, 2) == 0));
    }
}

void edit_json(edit_random *r, json_t *root) {
    editor e = {.random = r, .root = root};
    for (size_t i = edit_choose(r, MOST_EDITS) + 1; i > 0; i--) edit(&e);
    tare__free(e.places);
}

bool edit_json_text(edit_random *r, const char *chars, size_t size, text *out) {
    json_t *root = NULL;
    if (tare__json_parse(chars, size, &root, NULL) != TARE_OK) return false;
    edit_json(r, root);
    tare__json_write(root, out);
    json_decref(root);
    return !out->failed;
}
