// SPDX-License-Identifier: Apache-2.0
/// QConfig: the observers for an operator's activations and weight. QConfigMapping: which operator
/// gets which QConfig.
#ifndef TARE_QCONFIG_H
#define TARE_QCONFIG_H

#include "tare/backend_config.h"
#include "tare/observer.h"
#include "tare/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A pair of observer specs, for an operator's activations and its weight. Immutable, reference
/// counted.
typedef struct tare_qconfig tare_qconfig;

/// Creates a qconfig from two specs and takes its own references of them. weight may be NULL.
/// Returns NULL when memory is exhausted or activation is NULL. The caller releases it.
TARE_API tare_qconfig *tare_qconfig_create(tare_observer_spec *activation,
                                           tare_observer_spec *weight);
/// One of torch's named qconfigs: "default_qconfig", "default_per_channel_qconfig", ..
/// TARE_NOT_FOUND, with a suggestion, for other names. The caller releases *out.
TARE_API tare_status tare_qconfig_named(const char *name, tare_qconfig **out, tare_error *err);
/// Adds a reference and returns its argument. NULL is allowed.
TARE_API tare_qconfig *tare_qconfig_retain(tare_qconfig *qconfig);
/// Drops a reference; the last one frees the qconfig. NULL is allowed.
TARE_API void tare_qconfig_release(tare_qconfig *qconfig);
/// Have both the same classes with the same arguments (torch's qconfig_equals)? NULL equals only
/// NULL.
TARE_API bool tare_qconfig_equal(const tare_qconfig *a, const tare_qconfig *b);
/// Writes {"activation": .., "weight": ..} as JSON. The caller frees *out with tare_string_free.
TARE_API tare_status tare_qconfig_to_json(const tare_qconfig *qconfig, char **out, tare_error *err);

/// The name of the index-th named qconfig; NULL past the end. Static storage.
TARE_API const char *tare_qconfig_name_at(size_t index);

/// Which operator gets which qconfig. If several selectors match an operator, the most specific one
/// counts; from general to specific: global, object type, module name regex, module name, (module,
/// type, index). A NULL qconfig means: do not quantize. Setters copy names and take their own
/// references of qconfigs. They return no status: the mapping keeps their first error and reports
/// it where it is used. Setting a key again replaces its qconfig and keeps its position.
typedef struct tare_qconfig_mapping tare_qconfig_mapping;

/// Creates an empty mapping, which quantizes nothing. Returns NULL when memory is exhausted, which
/// setters accept. The caller destroys it.
TARE_API tare_qconfig_mapping *tare_qconfig_mapping_create(void);
/// Frees a mapping and drops its references of qconfigs. NULL is allowed.
TARE_API void tare_qconfig_mapping_destroy(tare_qconfig_mapping *mapping);
/// Copies a mapping. Fails with the first error of a setter, and with TARE_INVALID_ARGUMENT
/// for NULL. The caller destroys *out.
TARE_API tare_status tare_qconfig_mapping_clone(const tare_qconfig_mapping *mapping,
                                                tare_qconfig_mapping **out, tare_error *err);
/// Sets the qconfig of operators that no other selector matches.
TARE_API void tare_qconfig_mapping_set_global(tare_qconfig_mapping *mapping, tare_qconfig *qconfig);
/// Sets the qconfig of every operator of a type: a module class, a function or a bare method name.
TARE_API void tare_qconfig_mapping_set_object_type(tare_qconfig_mapping *mapping,
                                                   const char *object_type, tare_qconfig *qconfig);
/// Sets the qconfig of modules whose path matches a regular expression in Python's syntax, anchored
/// at the start of the path (re.match).
TARE_API void tare_qconfig_mapping_set_module_name_regex(tare_qconfig_mapping *mapping,
                                                         const char *regex, tare_qconfig *qconfig);
/// Sets the qconfig of the module at a path ("layer1.0.conv1") and of all modules below it.
TARE_API void tare_qconfig_mapping_set_module_name(tare_qconfig_mapping *mapping,
                                                   const char *module_name, tare_qconfig *qconfig);
/// Sets the qconfig of the index-th operator of a type, counted from 0, in the module at a path (""
/// is the model).
TARE_API void tare_qconfig_mapping_set_module_name_object_type_order(tare_qconfig_mapping *mapping,
                                                                     const char *module_name,
                                                                     const char *object_type,
                                                                     int64_t index,
                                                                     tare_qconfig *qconfig);

/// Creates a default mapping. name: torch's "x86", "fbgemm", "qnnpack", "onednn" or
/// "symmetric_qnnpack"; one of torchao's configs with weights per group or per channel
/// ("int8_weight_only", "int4_weight_only_g32", .., "int8_dynamic_activation_int8_weight",
/// "int8_dynamic_activation_int4_weight_g32", ..); or "tare": torch's x86 mapping with activations
/// of all eight bits, under which passes also leave values float that a single scale cannot
/// represent, namely sums in front of norms, and masks (docs/differences.md). version < 0: the
/// default version (0 for PTQ, 1 for QAT). TARE_NOT_FOUND, with a suggestion, for other names. The
/// caller destroys *out.
TARE_API tare_status tare_qconfig_mapping_default(const char *name, bool is_qat, int version,
                                                  tare_qconfig_mapping **out, tare_error *err);
/// Creates the mapping for a backend when the user names none: "tare", unless the backend's
/// constraints refuse its activations everywhere and a default mapping has the backend's name. In
/// "tare", the observers of int8 weights get the narrowest range and the largest minimum scale that
/// the backend demands. The caller destroys *out.
TARE_API tare_status tare_qconfig_mapping_for_backend(const tare_backend_config *backend,
                                                      bool is_qat, tare_qconfig_mapping **out,
                                                      tare_error *err);
/// The name of the index-th default mapping; NULL past the end. Static storage.
TARE_API const char *tare_qconfig_mapping_default_name_at(size_t index);
/// The built-in backend that a default mapping needs: "tare" for mappings with weights per group
/// ("int4_weight_only_g32"), which no other built-in backend accepts. NULL for other names. Static
/// storage.
TARE_API const char *tare_qconfig_mapping_default_backend(const char *name);

/// Parses a mapping, `size` bytes of JSON: {"default": "x86"}, {"default_qat": "x86"}, or all
/// selectors (docs/qconfig.md). TARE_MALFORMED_FILE names the JSON path. The caller destroys *out.
TARE_API tare_status tare_qconfig_mapping_from_json(const char *json, size_t size,
                                                    tare_qconfig_mapping **out, tare_error *err);
/// As tare_qconfig_mapping_from_json, from a file ("-": standard input). Errors also name the file.
TARE_API tare_status tare_qconfig_mapping_read(const char *path, tare_qconfig_mapping **out,
                                               tare_error *err);
/// Writes all selectors as JSON. Fails with the first error of a setter, and with
/// TARE_INVALID_ARGUMENT for NULL. The caller frees *out with tare_string_free.
TARE_API tare_status tare_qconfig_mapping_to_json(const tare_qconfig_mapping *mapping, char **out,
                                                  tare_error *err);

/// Frees a string that the library returned through `char **out`. NULL is allowed.
TARE_API void tare_string_free(char *string);

#ifdef __cplusplus
}
#endif
#endif
