// SPDX-License-Identifier: Apache-2.0
// Internal interface of qconfigs and mappings.
#ifndef CONFIG_QCONFIG_H
#define CONFIG_QCONFIG_H

#include <stdatomic.h>

#include "config/python_regex.h"
#include "core/json/json.h"
#include "observe/observer.h"
#include "tare/qconfig.h"

struct tare_qconfig {
    atomic_size_t refcount;
    tare_observer_spec *activation, *weight; // weight may be NULL
};
tare_status tare__qconfig_from_json(const json_at *at, tare_qconfig **out,
                                    tare_error *err); // null gives NULL
void tare__qconfig_to_json(const tare_qconfig *q, text *out);
/// Parses a compiled-in file of backends/; the caller calls json_decref(*out).
tare_status tare__embedded_json(const char *name, json_t **out, tare_error *err);
/// True if the activation's observer does not remember earlier batches (its averaging constant is
/// 1).
bool tare__qconfig_is_memoryless(const tare_qconfig *q);
void tare__qconfig_text(const tare_qconfig *q, text *out); // for messages and the record

/// One entry of a mapping.
typedef struct qconfig_rule {
    char *key;         // type, regex, or module name
    char *object_type; // module_name_object_type_order only
    char *words;       // for the record: "TYPE INDEX in MODULE"; module_name_object_type_order only
    int64_t index;     // module_name_object_type_order only
    tare_qconfig *qconfig; // NULL: do not quantize
    python_regex *regex;   // of the key; module_name_regex only
} qconfig_rule;
typedef struct qconfig_rules {
    qconfig_rule *items;
    size_t count, capacity;
} qconfig_rules;

struct tare_qconfig_mapping {
    tare_qconfig *global;
    qconfig_rules object_type; // keys are canonical names (tare__function_canonical)
    qconfig_rules module_name_regex, module_name, module_name_object_type_order;
    tare_status first_status; // of the first setter that failed
    tare_error *first_error;  // its message; NULL if memory ran out
    char *default_name;       // "x86" if it came from {"default": "x86"}; NULL: no default
};
/// Writes a mapping in full, and reads any form; errors name the place in the JSON.
void tare__qconfig_mapping_to_json(const tare_qconfig_mapping *mapping, text *out);
tare_status tare__qconfig_mapping_from_json(const json_at *root, tare_qconfig_mapping **out,
                                            tare_error *err);
tare_status tare__qconfig_mapping_status(const tare_qconfig_mapping *m, tare_error *err);
/// True if the mapping came by name from one of torch's defaults. Then torch's behaviour applies,
/// even where tare is intentionally stricter.
bool tare__qconfig_mapping_is_torch(const tare_qconfig_mapping *m);
/// True if the mapping came from the default "tare".
bool tare__qconfig_mapping_is_own(const tare_qconfig_mapping *m);
/// True if the default mapping with this name quantizes weights group-wise and needs no calibration
/// data.
bool tare__default_mapping_is_of_weights(const char *name);

/// Lookups as in spec/qconfig.md §5.1. section and key tell which entry of the mapping decided, for
/// the record; they are static or lent. Returned qconfigs are lent.
typedef struct qconfig_choice {
    tare_qconfig *qconfig;
    const char *section; // "global", "object_type", "module_name_regex", "module_name",
                         // "module_name_object_type_order"
    const char *key;     // the selector's key; NULL for global
} qconfig_choice;
qconfig_choice tare__qconfig_global(const tare_qconfig_mapping *m);
qconfig_choice tare__qconfig_by_type(const tare_qconfig_mapping *m, const char *type,
                                     qconfig_choice fallback);
/// adjust(type, path, fallback) := module_name(path, regex(path, object_type(type, fallback))).
/// type may be NULL.
tare_status tare__qconfig_adjust(const tare_qconfig_mapping *m, const char *type, const char *path,
                                 qconfig_choice fallback, qconfig_choice *out, tare_error *err);
/// The entry with exactly this module name.
qconfig_choice tare__qconfig_by_exact_name(const tare_qconfig_mapping *m, const char *path,
                                           qconfig_choice fallback);
qconfig_choice tare__qconfig_by_order(const tare_qconfig_mapping *m, const char *path,
                                      const char *type, int64_t index, qconfig_choice fallback);

#endif
