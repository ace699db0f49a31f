// SPDX-License-Identifier: Apache-2.0
// Reads a model: modules, then their tensors, then their states, then the graphs that call them.
// Every tensor of the file and every key of the JSON must be used: nothing is ignored silently.
#include <inttypes.h>
#include <string.h>

#include "core/json/json.h"
#include "core/tensor/derived.h"
#include "io/native/graph_json.h"
#include "io/native/model_digests.h"
#include "io/native/model_file.h"
#include "io/native/quantized_json.h"
#include "io/native/value_json.h"
#include "ops/quantized/frozen_rule.h"

enum {
    DEEPEST_PATH = 64,   // because walks of the module tree recurse
    SHARED_CHILDREN = 64 // see share_module
};

typedef struct reader {
    const safetensors *file;
    const registry *classes;
    const model_state_io *state;
    const json_at *top;     // the JSON object
    const json_at *modules; // its `modules`
    module *root;
    tare_engine engine; // named in the record; TARE_ENGINE_DEFAULT: none
    map entries;        // path -> index into modules + 1
    map used;           // tensors of the file that the model uses
    map made;           // tensors of the model by name; references owned
    arena scratch;      // paths, and config values while reading
    tare_error *err;
} reader;

// --- modules ---

static tare_status find_class(const reader *r, const json_at *at, const char *path,
                              const module_class **out) {
    const char *name = NULL;
    TARE_TRY(tare__json_string(at, &name, r->err));
    *out = tare__class_find(r->classes, name);
    if (*out != NULL) return TARE_OK;
    const tare_status status =
        tare__json_fail(at, r->err, "module '%s' is of the unknown class '%s'", path, name);
    return tare__suggest(r->err, status, name, tare__class_name_at, r->classes);
}

// The module that contains the last component of `path`, which is *leaf. A module with several
// paths takes no more children: otherwise the tree could grow exponentially with the file.
static tare_status find_parent(reader *r, const json_at *at, const char *path, module **parent,
                               const char **leaf) {
    module *m = r->root;
    const char *begin = path;
    for (int depth = 0;; depth++) {
        const size_t length = strcspn(begin, ".");
        if (length == 0 || depth == DEEPEST_PATH)
            return tare__json_fail(at, r->err, "'%s' is not a path of at most %d names", path,
                                   DEEPEST_PATH);
        if (begin[length] == '\0') break;
        m = tare__module_child_n(m, begin, length);
        if (m == NULL)
            return tare__json_fail(at, r->err,
                                   "the parent of module '%s', '%.*s', is not listed before it",
                                   path, (int)(begin + length - path), path);
        begin += length + 1;
    }
    *parent = m;
    *leaf = begin;
    return TARE_OK;
}

static tare_status bind(reader *r, const json_at *at, const char *path, module *m) {
    module *parent = NULL;
    const char *leaf = NULL;
    TARE_TRY(find_parent(r, at, path, &parent, &leaf));
    if (tare__module_child(parent, leaf) != NULL)
        return tare__json_fail(at, r->err, "module '%s' is listed twice", path);
    const size_t length = (size_t)(leaf - path);
    for (size_t i = 0; i < length; i++) {
        if (path[i] != '.') continue;
        const char *above = tare__arena_strndup(&r->scratch, path, i);
        if (above == NULL) return tare__out_of_memory(r->err);
        if (tare__module_find(r->root, above)->refcount > 1)
            return tare__json_fail(
                at, r->err, "the parent of module '%s', '%s', is a shared module", path, above);
    }
    return tare__module_set_child(parent, leaf, m, r->err);
}

// {path, same_as}: a shared observer. It may have children, but no grandchildren and none at this
// path, so that sharing makes neither a cycle nor a tree much larger than its file.
static tare_status share_module(reader *r, const json_at *at, const char *path) {
    static const char *const keys[] = {"path", "same_as", NULL};
    TARE_TRY(tare__json_only_keys(at, keys, r->err));
    const json_at same_as = tare__json_get(at, "same_as");
    const char *first = NULL, *leaf = NULL;
    TARE_TRY(tare__json_string(&same_as, &first, r->err));
    module *m = tare__module_find(r->root, first), *parent = NULL;
    if (m == NULL || m == r->root)
        return tare__json_fail(&same_as, r->err, "module '%s' is not listed before it", first);
    TARE_TRY(find_parent(r, at, path, &parent, &leaf));
    bool is_deep = m == parent || m->child_count > SHARED_CHILDREN;
    for (size_t i = 0; i < m->child_count; i++)
        is_deep |= m->children[i].module->child_count > 0 || m->children[i].module == parent;
    if (is_deep)
        return tare__json_fail(
            &same_as, r->err,
            "module '%s' contains too many modules to be listed under a second name", first);
    return bind(r, at, path, m);
}

static tare_status read_config(reader *r, const json_at *at, module *m) {
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, r->err));
    const char *key = NULL;
    json_t *item = NULL;
    json_object_foreach((json_t *)at->value, key, item) {
        const json_at inside = tare__json_get(at, key);
        value v = {0};
        TARE_TRY(tare__value_from_json(&inside, &r->scratch, NULL, &v, r->err));
        TARE_TRY(tare__module_set_config(m, key, &v, r->err));
    }
    return TARE_OK;
}

static tare_status fill_module(reader *r, const json_at *at, const char *path, module *m) {
    const json_at training = tare__json_get(at, "training"), config = tare__json_get(at, "config");
    TARE_TRY(tare__json_bool(&training, &m->training, r->err));
    TARE_TRY(read_config(r, &config, m));
    if (tare__json_has(at, "repr")) { // torch's extra_repr: for tests to compare with
        const json_at repr = tare__json_get(at, "repr");
        TARE_TRY(tare__json_expect(&repr, JSON_STRING, r->err));
    }
    return bind(r, at, path, m);
}

static tare_status make_module(reader *r, const json_at *at, const char *path) {
    static const char *const keys[] = {"path",  "type",      "training", "config", "repr",
                                       "state", "quantized", "graph",    NULL};
    TARE_TRY(tare__json_only_keys(at, keys, r->err));
    const json_at type = tare__json_get(at, "type");
    const module_class *class = NULL;
    TARE_TRY(find_class(r, &type, path, &class));
    module *m = NULL;
    TARE_TRY(tare__module_create(class, &m, r->err));
    const tare_status status = fill_module(r, at, path, m);
    tare__module_release(m); // its parent has a reference, unless adding it failed
    return status;
}

static tare_status read_modules(reader *r) {
    TARE_TRY(tare__json_expect(r->modules, JSON_ARRAY, r->err));
    for (size_t i = 0; i < json_array_size(r->modules->value); i++) {
        const json_at at = tare__json_item(r->modules, i), path_at = tare__json_get(&at, "path");
        const char *path = NULL;
        TARE_TRY(tare__json_expect(&at, JSON_OBJECT, r->err));
        TARE_TRY(tare__json_string(&path_at, &path, r->err));
        TARE_TRY(tare__json_has(&at, "same_as") ? share_module(r, &at, path)
                                                : make_module(r, &at, path));
        if (!tare__map_set(&r->entries, path, tare__map_int(i + 1)))
            return tare__out_of_memory(r->err);
    }
    return TARE_OK;
}

// --- tensors ---

static tare_status take_tensor(reader *r, const char *name, tare_tensor **out) {
    *out = tare__safetensors_get(r->file, name);
    if (*out == NULL) return TARE_OK;
    return tare__map_set(&r->used, name, *out) ? TARE_OK : tare__out_of_memory(r->err);
}

static tare_status take_suffixed(reader *r, const char *name, const char *suffix,
                                 tare_tensor **out) {
    const char *full = tare__arena_printf(&r->scratch, "%s%s", name, suffix);
    return full != NULL ? take_tensor(r, full, out) : tare__out_of_memory(r->err);
}

static tare_status take_quantized(reader *r, const json_at *description, const char *name,
                                  tare_tensor **out) {
    tare_tensor *integers = NULL, *scale = NULL, *zero_point = NULL;
    TARE_TRY(take_suffixed(r, name, QUANTIZED_INTEGERS, &integers));
    TARE_TRY(take_suffixed(r, name, QUANTIZED_SCALE, &scale));
    TARE_TRY(take_suffixed(r, name, QUANTIZED_ZERO_POINT, &zero_point));
    return tare__quantized_join(description, name, integers, scale, zero_point, out, r->err);
}

// The module's own JSON object: the top for the root.
static json_at entry_at(const reader *r, const char *path) {
    const size_t index = (size_t)tare__map_get(&r->entries, path);
    return index == 0 ? *r->top : tare__json_item(r->modules, index - 1);
}

static tare_status split_name(reader *r, const char *name, const char **path, const char **leaf) {
    const char *dot = strrchr(name, '.');
    *leaf = dot != NULL ? dot + 1 : name;
    *path = tare__arena_strndup(&r->scratch, name, dot != NULL ? (size_t)(dot - name) : 0);
    return *path != NULL ? TARE_OK : tare__out_of_memory(r->err);
}

// A new reference: a quantized tensor assembled from its components, or the file's tensor.
static tare_status make_tensor(reader *r, const json_at *at, const char *name, tare_tensor **out) {
    const char *path = NULL, *leaf = NULL;
    TARE_TRY(split_name(r, name, &path, &leaf));
    const json_at entry = entry_at(r, path), quantized = tare__json_get(&entry, "quantized");
    if (tare__json_has(&quantized, leaf)) {
        const json_at description = tare__json_get(&quantized, leaf);
        return take_quantized(r, &description, name, out);
    }
    TARE_TRY(take_tensor(r, name, out));
    tare_tensor_retain(*out);
    return *out != NULL ? TARE_OK
                        : tare__json_fail(at, r->err, "the file has no tensor '%s'", name);
}

static tare_status refuse_chain(const json_at *at, const char *name, const char *source,
                                const char *next, tare_error *err) {
    if (strcmp(name, source) == 0)
        tare__json_fail(at, err, "'%s' is an alias of itself", name);
    else
        tare__json_fail(at, err, "'%s' is an alias of '%s', which is an alias of '%s'", name,
                        source, next);
    return tare__hint(err, TARE_MALFORMED_FILE,
                      "an alias names a parameter or buffer that is no alias");
}

static tare_status refuse_own_tensor(const json_at *at, const char *name, const char *source,
                                     const char *suffix, tare_error *err) {
    tare__json_fail(at, err, "'%s' is an alias of '%s', but the file has a tensor '%s%s'", name,
                    source, name, suffix);
    return tare__hint(err, TARE_MALFORMED_FILE, "remove the alias, or that tensor");
}

// *suffix: of the first of the tensor's components that the file has, "" for itself; NULL: none.
static tare_status find_suffix(reader *r, const char *name, const char **suffix) {
    static const char *const suffixes[] = {"", QUANTIZED_INTEGERS, QUANTIZED_SCALE,
                                           QUANTIZED_ZERO_POINT};
    *suffix = NULL;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes && *suffix == NULL; i++) {
        const char *full = tare__arena_printf(&r->scratch, "%s%s", name, suffixes[i]);
        if (full == NULL) return tare__out_of_memory(r->err);
        if (tare__safetensors_get(r->file, full) != NULL) *suffix = suffixes[i];
    }
    return TARE_OK;
}

// Checks that an alias names a tensor of the file and no other alias, and that the file has no
// tensor under the alias: each name then has one tensor, in whatever order they are read.
static tare_status check_alias(reader *r, const json_at *aliases, const char *name) {
    const json_at at = tare__json_get(aliases, name);
    const char *source = NULL;
    TARE_TRY(tare__json_string(&at, &source, r->err));
    const json_at next = tare__json_get(aliases, source);
    if (next.value != NULL) {
        const char *next_source = NULL;
        TARE_TRY(tare__json_string(&next, &next_source, r->err));
        return refuse_chain(&at, name, source, next_source, r->err);
    }
    const char *own_suffix = NULL, *source_suffix = NULL;
    TARE_TRY(find_suffix(r, name, &own_suffix));
    TARE_TRY(find_suffix(r, source, &source_suffix));
    if (source_suffix != NULL && own_suffix != NULL)
        return refuse_own_tensor(&at, name, source, own_suffix, r->err);
    if (source_suffix != NULL) return TARE_OK;
    tare__json_fail(&at, r->err, "'%s' is an alias of '%s', but the file has no tensor '%s'", name,
                    source, source);
    return tare__hint(r->err, TARE_MALFORMED_FILE, "is the file cut off, or the name misspelt?");
}

static tare_status check_aliases(reader *r) {
    if (!tare__json_has(r->top, "aliases")) return TARE_OK;
    const json_at aliases = tare__json_get(r->top, "aliases");
    TARE_TRY(tare__json_expect(&aliases, JSON_OBJECT, r->err));
    const char *name = NULL;
    json_t *item = NULL;
    json_object_foreach((json_t *)aliases.value, name, item)
        TARE_TRY(check_alias(r, &aliases, name));
    return TARE_OK;
}

// The tensor called `name`, lent: made when it is first asked for, under its own name or as an
// alias.
static tare_status obtain_tensor(reader *r, const json_at *at, const char *name,
                                 tare_tensor **out) {
    const json_at aliases = tare__json_get(r->top, "aliases"),
                  alias = tare__json_get(&aliases, name);
    const char *source = name;
    if (alias.value != NULL) TARE_TRY(tare__json_string(&alias, &source, r->err));
    *out = tare__map_get(&r->made, source);
    if (*out != NULL) return TARE_OK;
    TARE_TRY(make_tensor(r, alias.value != NULL ? &alias : at, source, out));
    if (tare__map_set(&r->made, source, *out)) return TARE_OK;
    tare_tensor_release(*out);
    return tare__out_of_memory(r->err);
}

static tare_status read_tensor(reader *r, const json_at *at, bool is_parameter) {
    const char *name = NULL;
    TARE_TRY(tare__json_string(at, &name, r->err));
    const char *path = NULL, *leaf = NULL;
    TARE_TRY(split_name(r, name, &path, &leaf));
    module *m = tare__module_find(r->root, path);
    if (m == NULL || *leaf == '\0')
        return tare__json_fail(at, r->err, "tensor '%s' belongs to no module of this model", name);
    if (tare__module_has_tensor(m, leaf))
        return tare__json_fail(at, r->err, "tensor '%s' is listed twice", name);
    tare_tensor *t = NULL;
    TARE_TRY(obtain_tensor(r, at, name, &t));
    return tare__module_set_tensor(m, leaf, t, is_parameter, r->err);
}

static tare_status read_tensors(reader *r, const char *key, bool is_parameter) {
    const json_at names = tare__json_get(r->top, key);
    TARE_TRY(tare__json_expect(&names, JSON_ARRAY, r->err));
    for (size_t i = 0; i < json_array_size(names.value); i++) {
        const json_at at = tare__json_item(&names, i);
        TARE_TRY(read_tensor(r, &at, is_parameter));
        tare__arena_release(&r->scratch);
    }
    return TARE_OK;
}

// Checks that both names of an alias are parameters or buffers. Called when these are known.
static tare_status check_alias_used(reader *r, const json_at *aliases, const char *name) {
    const json_at at = tare__json_get(aliases, name);
    const char *const names[] = {name, json_string_value(at.value)};
    for (size_t i = 0; i < 2; i++) {
        const char *path = NULL, *leaf = NULL;
        TARE_TRY(split_name(r, names[i], &path, &leaf));
        const module *m = tare__module_find(r->root, path);
        if (m != NULL && tare__module_has_tensor(m, leaf)) continue;
        tare__json_fail(&at, r->err,
                        i == 0 ? "'%s', an alias of '%s', is neither a parameter nor a buffer"
                               : "'%s' is an alias of '%s', which is neither a parameter nor a "
                                 "buffer",
                        names[0], names[1]);
        return tare__hint(r->err, TARE_MALFORMED_FILE, "list '%s' among the parameters or buffers",
                          names[i]);
    }
    return TARE_OK;
}

static tare_status check_aliases_used(reader *r) {
    const json_at aliases = tare__json_get(r->top, "aliases");
    const char *name = NULL;
    json_t *item = NULL;
    if (aliases.value == NULL) return TARE_OK;
    json_object_foreach((json_t *)aliases.value, name, item)
        TARE_TRY(check_alias_used(r, &aliases, name));
    return TARE_OK;
}

// Checks that every entry of `quantized` belongs to a quantized tensor of the module.
static tare_status check_quantized(const json_at *entry, const module *m, tare_error *err) {
    if (!tare__json_has(entry, "quantized")) return TARE_OK;
    const json_at quantized = tare__json_get(entry, "quantized");
    TARE_TRY(tare__json_expect(&quantized, JSON_OBJECT, err));
    const char *key = NULL;
    json_t *item = NULL;
    json_object_foreach((json_t *)quantized.value, key, item) {
        const tare_tensor *t = tare__module_tensor(m, key);
        const json_at at = tare__json_get(&quantized, key);
        if (t == NULL || !tare__tensor_is_quantized(t))
            return tare__json_fail(&at, err, "no parameter or buffer '%s' is listed for it", key);
    }
    return TARE_OK;
}

static tare_status check_all_used(const reader *r) {
    for (size_t i = 0; i < r->file->tensors.count; i++) {
        const char *name = r->file->tensors.entries[i].key;
        if (!tare__map_has(&r->used, name))
            return tare__fail(r->err, TARE_MALFORMED_FILE,
                              "tensor '%s' belongs to no module: expected it among the parameters "
                              "or buffers",
                              name);
    }
    return TARE_OK;
}

// --- packed weights ---

static tare_status read_form(const json_at *at, derived_key *key, tare_error *err) {
    TARE_TRY(tare__json_expect(at, JSON_ARRAY, err));
    if (json_array_size(at->value) != DERIVED_NUMBERS)
        return tare__json_fail(at, err, "expected %d numbers, found %zu", DERIVED_NUMBERS,
                               json_array_size(at->value));
    for (size_t i = 0; i < DERIVED_NUMBERS; i++) {
        const json_at item = tare__json_item(at, i);
        int64_t number = 0;
        TARE_TRY(tare__json_int(&item, &number, err));
        if (number < 0) return tare__json_fail(&item, err, "a form has no negative number");
        key->numbers[i] = (uint64_t)number;
    }
    return TARE_OK;
}

// Only bytes in the weight's own storage are used. Otherwise the weight's storage would have to
// keep a reference to another one.
static tare_status offer_packed(const json_at *bytes_at, const tare_tensor *weight,
                                const tare_tensor *bytes, const derived_key *key, tare_error *err) {
    if (bytes->dtype != TARE_UINT8 || bytes->ndim != 1)
        return tare__json_fail(bytes_at, err, "packed weights are bytes in one dimension");
    if (weight->store == NULL || weight->store != bytes->store) return TARE_OK;
    const derived_offer offer = {bytes->data, (size_t)bytes->count};
    return tare__derive_offer(weight->store, key, offer, err);
}

static tare_status read_packing(reader *r, const json_at *at) {
    static const char *const keys[] = {"weight", "form", "bytes", NULL};
    const json_at weight_at = tare__json_get(at, "weight"), form_at = tare__json_get(at, "form"),
                  bytes_at = tare__json_get(at, "bytes");
    const char *weight_name = NULL, *bytes_name = NULL;
    tare_tensor *bytes = NULL;
    derived_key key = {0};
    TARE_TRY(tare__json_expect(at, JSON_OBJECT, r->err));
    TARE_TRY(tare__json_only_keys(at, keys, r->err));
    TARE_TRY(tare__json_string(&weight_at, &weight_name, r->err));
    TARE_TRY(tare__json_string(&bytes_at, &bytes_name, r->err));
    TARE_TRY(read_form(&form_at, &key, r->err));
    const tare_tensor *weight = tare__map_get(&r->made, weight_name);
    if (weight == NULL)
        return tare__json_fail(&weight_at, r->err, "the model has no tensor '%s'", weight_name);
    if (tare__map_has(&r->used, bytes_name))
        return tare__json_fail(&bytes_at, r->err, "tensor '%s' has another place", bytes_name);
    TARE_TRY(take_tensor(r, bytes_name, &bytes));
    if (bytes == NULL)
        return tare__json_fail(&bytes_at, r->err, "the file has no tensor '%s'", bytes_name);
    key.data = weight->data;
    return offer_packed(&bytes_at, weight, bytes, &key, r->err);
}

static tare_status read_packings(reader *r) {
    if (!tare__json_has(r->top, "packed")) return TARE_OK;
    const json_at packed = tare__json_get(r->top, "packed");
    TARE_TRY(tare__json_expect(&packed, JSON_ARRAY, r->err));
    for (size_t i = 0; i < json_array_size(packed.value); i++) {
        const json_at at = tare__json_item(&packed, i);
        TARE_TRY(read_packing(r, &at));
    }
    return TARE_OK;
}

// --- states and graphs ---

static tare_status collect_state(reader *r, const json_at *names, const char *path, map *tensors) {
    TARE_TRY(tare__json_expect(names, JSON_ARRAY, r->err));
    for (size_t i = 0; i < json_array_size(names->value); i++) {
        const json_at at = tare__json_item(names, i);
        const char *name = NULL;
        tare_tensor *t = NULL;
        TARE_TRY(tare__json_string(&at, &name, r->err));
        const char *full =
            tare__arena_printf(&r->scratch, "%s%s%s", path, *path != '\0' ? "." : "", name);
        if (full == NULL) return tare__out_of_memory(r->err);
        if (tare__map_has(&r->used, full) || tare__map_has(tensors, name))
            return tare__json_fail(&at, r->err, "tensor '%s' is used twice", full);
        TARE_TRY(take_tensor(r, full, &t));
        if (t == NULL) return tare__json_fail(&at, r->err, "the file has no tensor '%s'", full);
        if (!tare__map_set(tensors, name, t)) return tare__out_of_memory(r->err);
    }
    return TARE_OK;
}

// A class with a state gets one even if the file has none of its tensors: an observer that keeps
// nothing, or has seen nothing, still has to be made from its config.
static tare_status read_state(reader *r, const json_at *entry, const char *path, module *m) {
    const bool has_names = tare__json_has(entry, "state");
    const json_at names = tare__json_get(entry, "state");
    if (r->state == NULL || m->class->clone_state == NULL) {
        if (!has_names) return TARE_OK;
        return tare__json_fail(&names, r->err, "module '%s' of class '%s' cannot have a state here",
                               path, m->class->name);
    }
    map tensors = {0};
    tare_status status = has_names ? collect_state(r, &names, path, &tensors) : TARE_OK;
    if (status == TARE_OK) status = r->state->load(m, &tensors, r->err);
    tare__map_release(&tensors);
    return status == TARE_OK ? TARE_OK : tare__at(r->err, status, "module '%s'", path);
}

static tare_status check_class(const module *m, const char *path, tare_error *err) {
    const tare_status status = m->class->check != NULL ? m->class->check(m, err) : TARE_OK;
    return status == TARE_OK ? TARE_OK : tare__at(err, status, "module '%s'", path);
}

static tare_status read_graph(reader *r, const json_at *entry, const char *path, module *m) {
    static const char *const keys[] = {"nodes", "codegen", "names", NULL};
    if (!tare__json_has(entry, "graph")) return TARE_OK;
    const json_at object = tare__json_get(entry, "graph");
    if (m->class->role != ROLE_CONTAINER)
        return tare__json_fail(&object, r->err, "module '%s' of class '%s' cannot have a graph",
                               path, m->class->name);
    TARE_TRY(tare__json_only_keys(&object, keys, r->err));
    return tare__graph_from_json(&object, m, &m->graph, r->err);
}

// Ignores an unknown name; the code that reads the record reports it.
static void find_engine(reader *r) {
    const json_at record = tare__json_get(r->top, "record");
    const json_t *name = json_object_get(record.value, "engine");
    if (json_is_string(name)) r->engine = tare_engine_from_name(json_string_value(name));
}

// Adds the rounding rule to integer layers that were lowered by torch, which has no such config.
static tare_status complete_rule(const reader *r, module *m) {
    if (r->engine == TARE_ENGINE_DEFAULT) return TARE_OK;
    return tare__module_complete_rule(m, r->engine, r->err);
}

// Checks that need all tensors in the tree.
static tare_status finish_modules(reader *r) {
    TARE_TRY(check_quantized(r->top, r->root, r->err));
    TARE_TRY(read_state(r, r->top, "", r->root));
    for (size_t i = 0; i < json_array_size(r->modules->value); i++) {
        const json_at at = tare__json_item(r->modules, i);
        if (tare__json_has(&at, "same_as")) continue;
        const char *path = json_string_value(json_object_get(at.value, "path"));
        module *m = tare__module_find(r->root, path);
        TARE_TRY(check_quantized(&at, m, r->err));
        TARE_TRY(read_state(r, &at, path, m));
        TARE_TRY(complete_rule(r, m));
        TARE_TRY(check_class(m, path, r->err));
        TARE_TRY(read_graph(r, &at, path, m));
        tare__arena_release(&r->scratch);
    }
    return check_all_used(r);
}

// --- the whole ---

static tare_status check_format(const json_at *top, tare_error *err) {
    static const char *const keys[] = {
        "format",  "version", "class_name", "training", "modules", "parameters",
        "buffers", "aliases", "nodes",      "codegen",  "names",   "quantized",
        "state",   "record",  "tare",       "packed",   NULL};
    const json_at format_at = tare__json_get(top, "format");
    const json_at version_at = tare__json_get(top, "version");
    const char *format = NULL;
    int64_t version = 0;
    TARE_TRY(tare__json_expect(top, JSON_OBJECT, err));
    TARE_TRY(tare__json_string(&format_at, &format, err));
    TARE_TRY(tare__json_int(&version_at, &version, err));
    if (strcmp(format, "tare-graph") != 0 || version != MODEL_FILE_VERSION)
        return tare__json_fail(top, err,
                               "the format is '%s' version %" PRId64
                               ", this reader knows 'tare-graph' version %d",
                               format, version, MODEL_FILE_VERSION);
    return tare__json_only_keys(top, keys, err);
}

static tare_status read_root(reader *r) {
    const json_at name = tare__json_get(r->top, "class_name");
    const json_at training = tare__json_get(r->top, "training");
    value class_name = {.kind = VALUE_STRING};
    TARE_TRY(tare__json_string(&name, &class_name.as.text, r->err));
    TARE_TRY(tare__module_create(&tare__class_graph_module, &r->root, r->err));
    TARE_TRY(tare__json_bool(&training, &r->root->training, r->err));
    return tare__module_set_config(r->root, "class_name", &class_name, r->err);
}

static tare_status read_model(reader *r) {
    TARE_TRY(check_format(r->top, r->err));
    TARE_TRY(read_root(r));
    TARE_TRY(read_modules(r));
    TARE_TRY(check_aliases(r));
    TARE_TRY(read_tensors(r, "parameters", true));
    TARE_TRY(read_tensors(r, "buffers", false));
    TARE_TRY(check_aliases_used(r));
    TARE_TRY(read_packings(r));
    find_engine(r);
    TARE_TRY(finish_modules(r));
    return tare__graph_from_json(r->top, r->root, &r->root->graph, r->err);
}

static tare_status read_from_json(const safetensors *file, const json_t *json,
                                  const registry *classes, const model_state_io *state,
                                  module **root, tare_error *err) {
    const json_at top = tare__json_root(json), modules = tare__json_get(&top, "modules");
    reader r = {.file = file,
                .classes = classes,
                .state = state,
                .top = &top,
                .modules = &modules,
                .err = err};
    const tare_status status = read_model(&r);
    tare__map_release(&r.entries);
    tare__map_release(&r.used);
    tare__tensor_map_release(&r.made);
    tare__arena_release(&r.scratch);
    if (status == TARE_OK)
        *root = r.root;
    else
        tare__module_release(r.root);
    return status;
}

static tare_status read_chars(const safetensors *file, const char *chars, const registry *classes,
                              const model_state_io *state, module **root, json_t **extra,
                              tare_error *err) {
    json_t *json = NULL;
    tare_status status = tare__json_parse(chars, strlen(chars), &json, err);
    if (status == TARE_OK) status = read_from_json(file, json, classes, state, root, err);
    if (status == TARE_OK && extra != NULL) *extra = json_incref(json_object_get(json, "record"));
    json_decref(json);
    return status == TARE_OK ? TARE_OK : tare__at(err, status, MODEL_GRAPH);
}

tare_status tare__model_from_json_and_tensors(const char *json, const map *tensors,
                                              const registry *classes, const model_state_io *state,
                                              module **root, json_t **extra, tare_error *err) {
    const safetensors file = {.tensors = *tensors};
    return read_chars(&file, json, classes, state, root, extra, err);
}

tare_status tare__model_from_file_unchecked(const safetensors *file, const registry *classes,
                                            const model_state_io *state, module **root,
                                            json_t **extra, tare_error *err) {
    const char *chars = tare__safetensors_metadata(file, MODEL_GRAPH);
    if (chars != NULL) return read_chars(file, chars, classes, state, root, extra, err);
    tare__fail(err, TARE_MALFORMED_FILE,
               "the file has tensors but no graph: its metadata lacks "
               "the key '" MODEL_GRAPH "'");
    return tare__hint(err, TARE_MALFORMED_FILE, "is it a file of weights or data only?");
}

// Digests are checked last, because errors of the format name their place.
tare_status tare__model_from_file_counted(const safetensors *file, const registry *classes,
                                          const model_state_io *state, module **root,
                                          json_t **extra, size_t *digest_count, tare_error *err) {
    model_digests *found = NULL;
    module *made = NULL;
    json_t *made_extra = NULL;
    TARE_TRY(tare__model_digests_begin(file, &found, err));
    tare_status status = tare__model_from_file_unchecked(file, classes, state, &made,
                                                         extra != NULL ? &made_extra : NULL, err);
    if (status != TARE_OK) {
        tare__model_digests_abandon(found);
        return status;
    }
    status = tare__model_digests_end(found, digest_count, err);
    if (status != TARE_OK) {
        tare__module_release(made);
        json_decref(made_extra);
        return status;
    }
    *root = made;
    if (extra != NULL) *extra = made_extra;
    return TARE_OK;
}

tare_status tare__model_from_file(const safetensors *file, const registry *classes,
                                  const model_state_io *state, module **root, json_t **extra,
                                  tare_error *err) {
    size_t digest_count = 0;
    return tare__model_from_file_counted(file, classes, state, root, extra, &digest_count, err);
}

tare_status tare__model_file_read(const char *path, const registry *classes,
                                  const model_state_io *state, module **root, json_t **extra,
                                  tare_error *err) {
    safetensors file = {0};
    TARE_TRY(tare__safetensors_read(path, &file, err));
    const tare_status status = tare__model_from_file(&file, classes, state, root, extra, err);
    tare__safetensors_release(&file);
    return status == TARE_OK ? TARE_OK : tare__at(err, status, "%s", path);
}
