// SPDX-License-Identifier: Apache-2.0
// Mutates programs inside of their archive, so that fuzzing does not end at the zip layer: a
// member's JSON is edited as a tree, or its bytes are, and everything is packed again with sizes
// and checksums that are right. Now and then the archive's own bytes are mutated all the same.
#include <minizip/zip.h>
#include <stdint.h>
#include <string.h>

#include "core/alloc.h"
#include "core/json.h"
#include "core/json_write.h"
#include "core/text.h"
#include "io/pt2/archive.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

enum { MOST_PLACES = 1 << 16, MOST_EDITS = 4 };

typedef struct place {
    json_t *parent;  // an object or array
    const char *key; // of an object
    size_t index;    // of an array
} place;

typedef struct editor {
    uint64_t random;
    json_t *root;
    place *places;
    size_t count, capacity;
} editor;

// xorshift64*
static size_t choose(editor *e, size_t below) {
    e->random ^= e->random >> 12;
    e->random ^= e->random << 25;
    e->random ^= e->random >> 27;
    return (size_t)(e->random * UINT64_C(2685821657736338717) >> 33) % (below > 0 ? below : 1);
}

// --- trees ---

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
    return json_integer(numbers[choose(e, sizeof numbers / sizeof *numbers)]);
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
        "[1, {\"type\": null, \"context\": null, \"children_spec\": []}]"};
    return json_string(words[choose(e, sizeof words / sizeof *words)]);
}

// A key is renamed to that of another place: unions change their kind.
static void rename_key(editor *e, const place *p) {
    const place *other = &e->places[choose(e, e->count)];
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
    const place p = e->places[choose(e, e->count)], q = e->places[choose(e, e->count)];
    switch (choose(e, 8)) {
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
        put(&p, choose(e, 2) == 0 ? json_null() : json_boolean(choose(e, 2) == 0));
    }
}

// --- members ---

static bool edit_json(editor *e, const pt2_bytes *bytes, text *out) {
    if (tare__json_parse((const char *)bytes->data, bytes->size, &e->root, NULL) != TARE_OK)
        return false;
    for (size_t i = choose(e, MOST_EDITS) + 1; i > 0; i--) edit(e);
    tare__json_write(e->root, out);
    json_decref(e->root);
    return !out->failed;
}

static void mutate_bytes(const pt2_bytes *bytes, size_t room, text *out) {
    const size_t capacity = bytes->size + room;
    uint8_t *copy = tare__alloc(capacity + 1);
    if (copy == NULL) return;
    if (bytes->size > 0) memcpy(copy, bytes->data, bytes->size);
    const size_t size = LLVMFuzzerMutate(copy, bytes->size, capacity);
    tare__text_append_n(out, (const char *)copy, size);
    tare__free(copy);
}

static bool write_member(zipFile zip, const char *name, const void *bytes, size_t size) {
    const zip_fileinfo info = {0};
    return zipOpenNewFileInZip(zip, name, &info, NULL, 0, NULL, 0, NULL, 0, 0) == ZIP_OK &&
           zipWriteInFileInZip(zip, bytes, (unsigned)size) == ZIP_OK &&
           zipCloseFileInZip(zip) == ZIP_OK;
}

static bool pack_member(editor *e, pt2_archive *a, zipFile zip, size_t index, bool is_chosen) {
    const pt2_member *m = a->members.entries[index].value;
    pt2_bytes bytes;
    text changed = {0};
    if (tare__pt2_read_member(a, m->name, &bytes) != TARE_OK) return false;
    const bool is_json = tare__ends_with(m->name, ".json");
    bool is_changed = is_chosen && is_json && choose(e, 8) != 0 && edit_json(e, &bytes, &changed);
    if (is_chosen && !is_changed) {
        mutate_bytes(&bytes, 64, &changed);
        is_changed = true;
    }
    const bool ok =
        is_changed ? write_member(zip, m->full_name, tare__text_chars(&changed), changed.length)
                   : write_member(zip, m->full_name, bytes.data, bytes.size);
    tare__text_release(&changed);
    tare__storage_release(bytes.store);
    return ok;
}

// Mostly the program, at times a table, rarely anything else.
static size_t choose_member(editor *e, const pt2_archive *a) {
    const char *wanted = choose(e, 4) != 0 ? "models/" : "_config.json";
    for (size_t tries = 0; tries < 16; tries++) {
        const size_t index = choose(e, a->members.count);
        if (strstr(a->members.entries[index].key, wanted) != NULL) return index;
    }
    return choose(e, a->members.count);
}

static bool repack(editor *e, pt2_archive *a, zip_memory *out) {
    zipFile zip = tare__zip_open(out);
    if (zip == NULL) return false;
    const size_t chosen = choose_member(e, a);
    bool ok = a->members.count > 0;
    for (size_t i = 0; i < a->members.count && ok; i++) ok = pack_member(e, a, zip, i, i == chosen);
    return zipClose(zip, NULL) == ZIP_OK && ok && !out->failed;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    editor e = {.random = (uint64_t)seed * 2 + 1};
    pt2_archive archive;
    zip_memory packed = {0};
    storage *store = NULL;
    size_t made = 0;
    if (choose(&e, 16) != 0) store = tare__storage_adopt(data, size, NULL, NULL);
    if (store != NULL && tare__pt2_open(store, data, size, NULL, &archive) == TARE_OK) {
        if (repack(&e, &archive, &packed) && packed.size <= max_size) made = packed.size;
        tare__pt2_close(&archive);
    }
    tare__storage_release(store);
    if (made > 0) memcpy(data, packed.data, made);
    tare__free(packed.data);
    tare__free(e.places);
    return made > 0 ? made : LLVMFuzzerMutate(data, size, max_size);
}
