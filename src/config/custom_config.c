// SPDX-License-Identifier: Apache-2.0
// Custom configs: their lists, and setters. A setter's failure is recorded until the config is
// used.
#include "config/custom_config.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "core/struct_size.h"
#include "ops/classes/classes.h"

// --- recorded errors ---

static void remember(setter_failure *failure, tare_status status, const tare_error *from) {
    if (status == TARE_OK || failure->status != TARE_OK) return;
    failure->status = status;
    failure->error = tare_error_create();
    tare__error_copy(failure->error, from);
}

tare_status tare__setter_status(const setter_failure *failure, tare_error *err) {
    if (failure->status == TARE_OK) return TARE_OK;
    if (failure->error == NULL) return tare__out_of_memory(err);
    tare__error_copy(err, failure->error);
    return failure->status;
}

// Calls a setter's implementation and records its error.
#define SET(config, call)                                                                          \
    do {                                                                                           \
        if ((config) == NULL) return;                                                              \
        tare_error *err = tare_error_create();                                                     \
        remember(&(config)->failure, (call), err);                                                 \
        tare_error_destroy(err);                                                                   \
    } while (false)

// --- lists ---

static void release_names(name_list *list) {
    for (size_t i = 0; i < list->count; i++) tare__free(list->items[i]);
    tare__free(list->items);
    *list = (name_list){0};
}

bool tare__name_list_has(const name_list *list, const char *name) {
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i], name) == 0) return true;
    return false;
}

static tare_status add_name(name_list *list, const char *name, const char *what, tare_error *err) {
    if (name == NULL || *name == '\0')
        return tare__fail(err, TARE_INVALID_ARGUMENT, "expected a %s, found none", what);
    if (!tare__grow((void **)&list->items, &list->capacity, list->count, sizeof *list->items))
        return tare__out_of_memory(err);
    list->items[list->count] = tare__strdup(name);
    if (list->items[list->count] == NULL) return tare__out_of_memory(err);
    list->count++;
    return TARE_OK;
}

// The public name of a class.
static const char *public_name(const char *name, char out[256]) {
    if (name == NULL) return NULL;
    tare__class_public_name(name, out, 256);
    return out;
}

static tare_status set_names(name_list *list, const char *const *names, size_t count,
                             bool are_classes, tare_error *err) {
    name_list made = {0};
    tare_status status = TARE_OK;
    for (size_t i = 0; i < count && status == TARE_OK; i++) {
        char buffer[256];
        const char *name = are_classes ? public_name(names[i], buffer) : names[i];
        status = add_name(&made, name, are_classes ? "class name" : "name", err);
    }
    if (status != TARE_OK) {
        release_names(&made);
        return status;
    }
    release_names(list);
    *list = made;
    return TARE_OK;
}

bool tare__index_list_has(const index_list *list, int64_t index) {
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i] == index) return true;
    return false;
}

void tare__index_list_release(index_list *list) {
    tare__free(list->items);
    *list = (index_list){0};
}

tare_status tare__index_list_set(index_list *list, const int64_t *items, size_t count,
                                 tare_error *err) {
    index_list made = {.count = count, .capacity = count + 1};
    for (size_t i = 0; i < count; i++)
        if (items[i] < 0)
            return tare__fail(err, TARE_INVALID_ARGUMENT, "expected an index >= 0, found %lld",
                              (long long)items[i]);
    made.items = tare__alloc_zeroed(count + 1, sizeof *made.items);
    if (made.items == NULL) return tare__out_of_memory(err);
    for (size_t i = 0; i < count; i++) made.items[i] = items[i];
    tare__index_list_release(list);
    *list = made;
    return TARE_OK;
}

static void release_pairs(class_pairs *pairs) {
    for (size_t i = 0; i < pairs->count; i++) {
        tare__free(pairs->items[i].from);
        tare__free(pairs->items[i].to);
    }
    tare__free(pairs->items);
    *pairs = (class_pairs){0};
}

static class_pair *find_pair(const class_pairs *pairs, const char *from) {
    for (size_t i = 0; i < pairs->count; i++)
        if (strcmp(pairs->items[i].from, from) == 0) return &pairs->items[i];
    return NULL;
}

const char *tare__class_pairs_get(const class_pairs *pairs, const char *from) {
    const class_pair *pair = find_pair(pairs, from);
    return pair != NULL ? pair->to : NULL;
}

static tare_status set_pair(class_pairs *pairs, const char *from, const char *to, tare_error *err) {
    char from_buffer[256], to_buffer[256];
    if (from == NULL || to == NULL)
        return tare__fail(err, TARE_INVALID_ARGUMENT, "expected two class names, found NULL");
    from = public_name(from, from_buffer);
    class_pair made = {tare__strdup(from), tare__strdup(public_name(to, to_buffer))};
    class_pair *known = find_pair(pairs, from);
    if (made.from != NULL && made.to != NULL && known == NULL &&
        tare__grow((void **)&pairs->items, &pairs->capacity, pairs->count, sizeof *pairs->items)) {
        known = &pairs->items[pairs->count++];
        *known = (class_pair){0};
    }
    if (made.from == NULL || made.to == NULL || known == NULL) {
        tare__free(made.from);
        tare__free(made.to);
        return tare__out_of_memory(err);
    }
    tare__free(known->from);
    tare__free(known->to);
    *known = made;
    return TARE_OK;
}

// --- standalone modules ---

static void release_entry(standalone_entry *e) {
    tare__free(e->key);
    tare_qconfig_mapping_destroy(e->mapping);
    tare_prepare_custom_config_destroy(e->custom);
    tare_backend_config_destroy(e->backend);
    *e = (standalone_entry){0};
}

static void release_standalone(standalone_list *list) {
    for (size_t i = 0; i < list->count; i++) release_entry(&list->items[i]);
    tare__free(list->items);
    *list = (standalone_list){0};
}

const standalone_entry *tare__standalone_find(const standalone_list *list, const char *key) {
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].key, key) == 0) return &list->items[i];
    return NULL;
}

static tare_status fill_entry(const char *key, const tare_standalone_module *how,
                              standalone_entry *out, tare_error *err) {
    tare_standalone_module m = {0};
    if (how != NULL) tare__struct_copy(&m, sizeof m, how);
    out->key = tare__strdup(key);
    if (out->key == NULL) return tare__out_of_memory(err);
    if (m.qconfig_mapping != NULL)
        TARE_TRY(tare_qconfig_mapping_clone(m.qconfig_mapping, &out->mapping, err));
    if (m.custom_config != NULL)
        TARE_TRY(tare__prepare_custom_config_clone(m.custom_config, &out->custom, err));
    if (m.backend != NULL) TARE_TRY(tare_backend_config_clone(m.backend, &out->backend, err));
    return TARE_OK;
}

static tare_status set_standalone(standalone_list *list, const char *key,
                                  const tare_standalone_module *how, tare_error *err) {
    standalone_entry made = {0};
    if (key == NULL || *key == '\0')
        return tare__fail(err, TARE_INVALID_ARGUMENT, "a standalone module needs a name");
    tare_status status = fill_entry(key, how, &made, err);
    standalone_entry *known = (standalone_entry *)tare__standalone_find(list, key);
    if (status == TARE_OK && known == NULL) {
        if (tare__grow((void **)&list->items, &list->capacity, list->count, sizeof *list->items)) {
            known = &list->items[list->count++];
            *known = (standalone_entry){0};
        } else {
            status = tare__out_of_memory(err);
        }
    }
    if (status != TARE_OK) {
        release_entry(&made);
        return status;
    }
    release_entry(known);
    *known = made;
    return TARE_OK;
}

// --- prepare ---

tare_prepare_custom_config *tare_prepare_custom_config_create(void) {
    return tare__alloc_zeroed(1, sizeof(tare_prepare_custom_config));
}

void tare_prepare_custom_config_destroy(tare_prepare_custom_config *config) {
    if (config == NULL) return;
    release_standalone(&config->standalone_names);
    release_standalone(&config->standalone_classes);
    release_pairs(&config->float_to_observed);
    release_names(&config->non_traceable_names);
    release_names(&config->non_traceable_classes);
    release_names(&config->preserved_attributes);
    tare__index_list_release(&config->input_quantized);
    tare__index_list_release(&config->output_quantized);
    tare_error_destroy(config->failure.error);
    tare__free(config);
}

void tare_prepare_custom_config_set_standalone_module_name(tare_prepare_custom_config *config,
                                                           const char *path,
                                                           const tare_standalone_module *how) {
    SET(config, set_standalone(&config->standalone_names, path, how, err));
}

void tare_prepare_custom_config_set_standalone_module_class(tare_prepare_custom_config *config,
                                                            const char *class_name,
                                                            const tare_standalone_module *how) {
    char buffer[256];
    SET(config,
        set_standalone(&config->standalone_classes, public_name(class_name, buffer), how, err));
}

void tare_prepare_custom_config_set_float_to_observed(tare_prepare_custom_config *config,
                                                      const char *float_class,
                                                      const char *observed_class) {
    SET(config, set_pair(&config->float_to_observed, float_class, observed_class, err));
}

void tare_prepare_custom_config_set_non_traceable_module_names(tare_prepare_custom_config *config,
                                                               const char *const *paths,
                                                               size_t count) {
    SET(config, set_names(&config->non_traceable_names, paths, count, false, err));
}

void tare_prepare_custom_config_set_non_traceable_module_classes(tare_prepare_custom_config *config,
                                                                 const char *const *class_names,
                                                                 size_t count) {
    SET(config, set_names(&config->non_traceable_classes, class_names, count, true, err));
}

void tare_prepare_custom_config_set_input_quantized_indexes(tare_prepare_custom_config *config,
                                                            const int64_t *indexes, size_t count) {
    SET(config, tare__index_list_set(&config->input_quantized, indexes, count, err));
}

void tare_prepare_custom_config_set_output_quantized_indexes(tare_prepare_custom_config *config,
                                                             const int64_t *indexes, size_t count) {
    SET(config, tare__index_list_set(&config->output_quantized, indexes, count, err));
}

void tare_prepare_custom_config_set_preserved_attributes(tare_prepare_custom_config *config,
                                                         const char *const *names, size_t count) {
    SET(config, set_names(&config->preserved_attributes, names, count, false, err));
}

static tare_status copy_standalone(standalone_list *to, const standalone_list *from,
                                   tare_error *err) {
    for (size_t i = 0; i < from->count; i++) {
        const standalone_entry *e = &from->items[i];
        const tare_standalone_module m = {.struct_size = sizeof m,
                                          .qconfig_mapping = e->mapping,
                                          .custom_config = e->custom,
                                          .backend = e->backend};
        TARE_TRY(set_standalone(to, e->key, &m, err));
    }
    return TARE_OK;
}

static tare_status copy_names(name_list *to, const name_list *from, tare_error *err) {
    return set_names(to, (const char *const *)from->items, from->count, false, err);
}

static tare_status copy_indexes(index_list *to, const index_list *from, tare_error *err) {
    return tare__index_list_set(to, from->items, from->count, err);
}

static tare_status copy_prepare(tare_prepare_custom_config *to,
                                const tare_prepare_custom_config *from, tare_error *err) {
    TARE_TRY(tare__setter_status(&from->failure, err));
    TARE_TRY(copy_standalone(&to->standalone_names, &from->standalone_names, err));
    TARE_TRY(copy_standalone(&to->standalone_classes, &from->standalone_classes, err));
    for (size_t i = 0; i < from->float_to_observed.count; i++)
        TARE_TRY(set_pair(&to->float_to_observed, from->float_to_observed.items[i].from,
                          from->float_to_observed.items[i].to, err));
    TARE_TRY(copy_names(&to->non_traceable_names, &from->non_traceable_names, err));
    TARE_TRY(copy_names(&to->non_traceable_classes, &from->non_traceable_classes, err));
    TARE_TRY(copy_names(&to->preserved_attributes, &from->preserved_attributes, err));
    TARE_TRY(copy_indexes(&to->input_quantized, &from->input_quantized, err));
    return copy_indexes(&to->output_quantized, &from->output_quantized, err);
}

tare_status tare__prepare_custom_config_clone(const tare_prepare_custom_config *config,
                                              tare_prepare_custom_config **out, tare_error *err) {
    tare_prepare_custom_config *made = tare_prepare_custom_config_create();
    if (made == NULL) return tare__out_of_memory(err);
    const tare_status status = copy_prepare(made, config, err);
    if (status == TARE_OK)
        *out = made;
    else
        tare_prepare_custom_config_destroy(made);
    return status;
}

// --- convert and fuse ---

tare_convert_custom_config *tare_convert_custom_config_create(void) {
    return tare__alloc_zeroed(1, sizeof(tare_convert_custom_config));
}

void tare_convert_custom_config_destroy(tare_convert_custom_config *config) {
    if (config == NULL) return;
    release_pairs(&config->observed_to_quantized);
    release_names(&config->preserved_attributes);
    tare_error_destroy(config->failure.error);
    tare__free(config);
}

void tare_convert_custom_config_set_observed_to_quantized(tare_convert_custom_config *config,
                                                          const char *observed_class,
                                                          const char *quantized_class) {
    SET(config, set_pair(&config->observed_to_quantized, observed_class, quantized_class, err));
}

void tare_convert_custom_config_set_preserved_attributes(tare_convert_custom_config *config,
                                                         const char *const *names, size_t count) {
    SET(config, set_names(&config->preserved_attributes, names, count, false, err));
}

tare_fuse_custom_config *tare_fuse_custom_config_create(void) {
    return tare__alloc_zeroed(1, sizeof(tare_fuse_custom_config));
}

void tare_fuse_custom_config_destroy(tare_fuse_custom_config *config) {
    if (config == NULL) return;
    release_names(&config->preserved_attributes);
    tare_error_destroy(config->failure.error);
    tare__free(config);
}

void tare_fuse_custom_config_set_preserved_attributes(tare_fuse_custom_config *config,
                                                      const char *const *names, size_t count) {
    SET(config, set_names(&config->preserved_attributes, names, count, false, err));
}
