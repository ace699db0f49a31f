// SPDX-License-Identifier: Apache-2.0
/// QConfig: which observers an operator asks for. QConfigMapping: which operator gets which
/// QConfig.
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

/// Takes its own references; weight may be NULL. NULL when memory is gone or an argument is NULL.
TARE_API tare_qconfig *tare_qconfig_create(tare_observer_spec *activation,
                                           tare_observer_spec *weight);
/// One of torch's named ones: "default_qconfig", "default_per_channel_qconfig", ..
TARE_API tare_status tare_qconfig_named(const char *name, tare_qconfig **out, tare_error *err);
/// Returns its argument with one more reference; NULL is fine for both.
TARE_API tare_qconfig *tare_qconfig_retain(tare_qconfig *qconfig);
TARE_API void tare_qconfig_release(tare_qconfig *qconfig);
/// Same classes with the same arguments (torch's qconfig_equals). NULL equals only NULL.
TARE_API bool tare_qconfig_equal(const tare_qconfig *a, const tare_qconfig *b);
/// `{"activation": .., "weight": ..}`; the caller frees with tare_string_free.
TARE_API tare_status tare_qconfig_to_json(const tare_qconfig *qconfig, char **out, tare_error *err);

/// The name of the i-th named qconfig; NULL past the end.
TARE_API const char *tare_qconfig_name_at(size_t index);

/// Later wins: global < object type < module name regex < module name < (module, type, index). A
/// NULL qconfig means «do not quantize». Setters keep the first error and report it where the
/// mapping is used; setting a key again replaces its qconfig and keeps its place.
typedef struct tare_qconfig_mapping tare_qconfig_mapping;

/// An empty mapping: nothing is quantized. NULL when memory is gone, which setters take.
TARE_API tare_qconfig_mapping *tare_qconfig_mapping_create(void);
TARE_API void tare_qconfig_mapping_destroy(tare_qconfig_mapping *mapping); // NULL is fine
TARE_API tare_status tare_qconfig_mapping_clone(const tare_qconfig_mapping *mapping,
                                                tare_qconfig_mapping **out, tare_error *err);
/// Setters take their own reference of the qconfig, and copy names. global: of whatever no selector
/// names.
TARE_API void tare_qconfig_mapping_set_global(tare_qconfig_mapping *mapping, tare_qconfig *qconfig);
/// object_type: a module class, a function or a bare method name.
TARE_API void tare_qconfig_mapping_set_object_type(tare_qconfig_mapping *mapping,
                                                   const char *object_type, tare_qconfig *qconfig);
/// regex: Python's syntax, matched at the start of the module's path.
TARE_API void tare_qconfig_mapping_set_module_name_regex(tare_qconfig_mapping *mapping,
                                                         const char *regex, tare_qconfig *qconfig);
/// module_name: a path ("layer1.0.conv1"); what stands below it is meant, too.
TARE_API void tare_qconfig_mapping_set_module_name(tare_qconfig_mapping *mapping,
                                                   const char *module_name, tare_qconfig *qconfig);
/// The index-th operator of that type, counted from 0, in the module of that path ("" is the
/// model).
TARE_API void tare_qconfig_mapping_set_module_name_object_type_order(tare_qconfig_mapping *mapping,
                                                                     const char *module_name,
                                                                     const char *object_type,
                                                                     int64_t index,
                                                                     tare_qconfig *qconfig);

/// torch's defaults, "x86", "fbgemm", "qnnpack", "onednn", "symmetric_qnnpack", and "tare": x86's
/// with all eight bits of activations. version < 0: the default (0 for PTQ, 1 for QAT).
TARE_API tare_status tare_qconfig_mapping_default(const char *name, bool is_qat, int version,
                                                  tare_qconfig_mapping **out, tare_error *err);
/// The mapping to use for a backend when none is named: "tare", unless the backend's constraints
/// refuse its activations everywhere and there is a default of the backend's own name.
TARE_API tare_status tare_qconfig_mapping_for_backend(const tare_backend_config *backend,
                                                      bool is_qat, tare_qconfig_mapping **out,
                                                      tare_error *err);
/// The name of the i-th default mapping; NULL past the end.
TARE_API const char *tare_qconfig_mapping_default_name_at(size_t index);

/// The forms of a JSON config: {"default": "x86"}, {"default_qat": "x86"} or in full. Errors name
/// the JSON path. to_json writes in full; the caller frees *out with tare_string_free.
TARE_API tare_status tare_qconfig_mapping_from_json(const char *json, size_t size,
                                                    tare_qconfig_mapping **out, tare_error *err);
TARE_API tare_status tare_qconfig_mapping_read(const char *path, tare_qconfig_mapping **out,
                                               tare_error *err);
TARE_API tare_status tare_qconfig_mapping_to_json(const tare_qconfig_mapping *mapping, char **out,
                                                  tare_error *err);

/// Frees a string that the library returned. NULL is fine.
TARE_API void tare_string_free(char *string);

#ifdef __cplusplus
}
#endif
#endif
