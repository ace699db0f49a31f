// SPDX-License-Identifier: Apache-2.0
// Internal interface of custom configs.
#ifndef CONFIG_CUSTOM_CONFIG_H
#define CONFIG_CUSTOM_CONFIG_H

#include "core/json/json.h"
#include "tare/custom_config.h"

/// The recorded failure of a setter.
typedef struct setter_failure {
    tare_status status;
    tare_error *error; // its message; NULL if memory ran out
} setter_failure;

typedef struct name_list {
    char **items;
    size_t count, capacity;
} name_list;
bool tare__name_list_has(const name_list *list, const char *name);

typedef struct index_list {
    int64_t *items;
    size_t count, capacity;
} index_list;
bool tare__index_list_has(const index_list *list, int64_t index);
tare_status tare__index_list_set(index_list *list, const int64_t *items, size_t count,
                                 tare_error *err);
tare_status tare__index_list_from_json(const json_at *at, index_list *out, tare_error *err);
void tare__index_list_to_json(const index_list *list, text *out);
void tare__index_list_release(index_list *list);

/// Pairs of class names, in the order in which they were set.
typedef struct class_pair {
    char *from, *to;
} class_pair;
typedef struct class_pairs {
    class_pair *items;
    size_t count, capacity;
} class_pairs;
const char *tare__class_pairs_get(const class_pairs *pairs, const char *from); // NULL: none

typedef struct standalone_entry {
    char *key; // a path or a class
    tare_qconfig_mapping *mapping;
    tare_prepare_custom_config *custom;
    tare_backend_config *backend;
} standalone_entry;
typedef struct standalone_list {
    standalone_entry *items;
    size_t count, capacity;
} standalone_list;
const standalone_entry *tare__standalone_find(const standalone_list *list, const char *key);

struct tare_prepare_custom_config {
    standalone_list standalone_names, standalone_classes;
    class_pairs float_to_observed;
    name_list non_traceable_names, non_traceable_classes, preserved_attributes;
    index_list input_quantized, output_quantized;
    setter_failure failure;
};
struct tare_convert_custom_config {
    class_pairs observed_to_quantized;
    name_list preserved_attributes;
    setter_failure failure;
};
struct tare_fuse_custom_config {
    name_list preserved_attributes;
    setter_failure failure;
};
/// Returns the recorded failure of a setter.
tare_status tare__setter_status(const setter_failure *failure, tare_error *err);
tare_status tare__prepare_custom_config_clone(const tare_prepare_custom_config *config,
                                              tare_prepare_custom_config **out, tare_error *err);

#endif
