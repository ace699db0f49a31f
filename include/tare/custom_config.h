// SPDX-License-Identifier: Apache-2.0
/// Custom configs of FX mode (torch's PrepareCustomConfig, ConvertCustomConfig and
/// FuseCustomConfig): standalone, custom and non-traceable modules, quantized inputs and outputs,
/// and preserved attributes.
#ifndef TARE_CUSTOM_CONFIG_H
#define TARE_CUSTOM_CONFIG_H

#include "tare/backend_config.h"
#include "tare/qconfig.h"
#include "tare/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The three custom configs. Passes only read them. Setters copy their arguments. They return no
/// status: the config keeps their first error and reports it where it is used. They accept NULL,
/// the result of a failed create, and then do nothing. Setters of a list replace the list; the
/// others add an entry, or replace the entry of the same key.
typedef struct tare_prepare_custom_config tare_prepare_custom_config;
typedef struct tare_convert_custom_config tare_convert_custom_config;
typedef struct tare_fuse_custom_config tare_fuse_custom_config;

/// How a standalone module is prepared. Zero means torch's defaults.
typedef struct tare_standalone_module {
    uint32_t struct_size;
    const tare_qconfig_mapping *qconfig_mapping;     // NULL: the qconfig of the node that calls it
    const tare_prepare_custom_config *custom_config; // its quantized inputs and outputs; NULL: none
    const tare_backend_config *backend;              // NULL: the one of the model around it
} tare_standalone_module;

/// Creates an empty config. Returns NULL when memory is exhausted. The caller destroys it.
TARE_API tare_prepare_custom_config *tare_prepare_custom_config_create(void);
/// Frees a config. NULL is allowed.
TARE_API void tare_prepare_custom_config_destroy(tare_prepare_custom_config *config);
/// The module at a path is prepared and converted on its own; in the graph around it, it is one
/// call. The module must have its own graph in the model file. how: copied; NULL: all defaults.
TARE_API void tare_prepare_custom_config_set_standalone_module_name(
    tare_prepare_custom_config *config, const char *path, const tare_standalone_module *how);
/// As tare_prepare_custom_config_set_standalone_module_name, for every module of a class. An entry
/// by path takes precedence over one by class.
TARE_API void tare_prepare_custom_config_set_standalone_module_class(
    tare_prepare_custom_config *config, const char *class_name, const tare_standalone_module *how);
/// Prepare replaces modules of float_class by modules of observed_class, made by that class's
/// from_float, where their qconfig quantizes activations statically.
TARE_API void tare_prepare_custom_config_set_float_to_observed(tare_prepare_custom_config *config,
                                                               const char *float_class,
                                                               const char *observed_class);
/// The paths of modules that stay one call and float. The model file must already hold each as one
/// call, because a trace through it cannot be undone.
TARE_API void
tare_prepare_custom_config_set_non_traceable_module_names(tare_prepare_custom_config *config,
                                                          const char *const *paths, size_t count);
/// As tare_prepare_custom_config_set_non_traceable_module_names, for all modules of these classes.
TARE_API void tare_prepare_custom_config_set_non_traceable_module_classes(
    tare_prepare_custom_config *config, const char *const *class_names, size_t count);
/// The positions of inputs that the caller passes quantized (quint8).
TARE_API void
tare_prepare_custom_config_set_input_quantized_indexes(tare_prepare_custom_config *config,
                                                       const int64_t *indexes, size_t count);
/// The outputs that stay quantized: positions in the returned tuple or list, or 0 for a single
/// result.
TARE_API void
tare_prepare_custom_config_set_output_quantized_indexes(tare_prepare_custom_config *config,
                                                        const int64_t *indexes, size_t count);
/// The names of attributes (tensors, modules, values) that are kept although no node uses them.
TARE_API void
tare_prepare_custom_config_set_preserved_attributes(tare_prepare_custom_config *config,
                                                    const char *const *names, size_t count);
/// Parses JSON with the keys of torch's to_dict: `standalone_module_name` and
/// `standalone_module_class` (lists of [key, qconfig mapping, example inputs, prepare custom
/// config, backend]; all but the key may be null, example inputs must be),
/// `float_to_observed_custom_module_class` ({"static": {float class: observed class}}),
/// `non_traceable_module_name`, `non_traceable_module_class`, `input_quantized_idxs`,
/// `output_quantized_idxs`, `preserved_attributes`. TARE_MALFORMED_FILE, with the path, for unknown
/// keys. The caller destroys *out.
TARE_API tare_status tare_prepare_custom_config_from_json(const char *json, size_t size,
                                                          tare_prepare_custom_config **out,
                                                          tare_error *err);
/// As tare_prepare_custom_config_from_json, from a file ("-": standard input). Errors also
/// name the file.
TARE_API tare_status tare_prepare_custom_config_read(const char *path,
                                                     tare_prepare_custom_config **out,
                                                     tare_error *err);
/// Writes the keys that are not empty as JSON. Fails with the first error of a setter. The caller
/// frees *out with tare_string_free.
TARE_API tare_status tare_prepare_custom_config_to_json(const tare_prepare_custom_config *config,
                                                        char **out, tare_error *err);

/// Creates an empty config. Returns NULL when memory is exhausted. The caller destroys it.
TARE_API tare_convert_custom_config *tare_convert_custom_config_create(void);
/// Frees a config. NULL is allowed.
TARE_API void tare_convert_custom_config_destroy(tare_convert_custom_config *config);
/// Convert replaces modules of observed_class by modules of quantized_class, made by that class's
/// from_float (torch's from_observed).
TARE_API void tare_convert_custom_config_set_observed_to_quantized(
    tare_convert_custom_config *config, const char *observed_class, const char *quantized_class);
/// The names of attributes that are kept although no node uses them.
TARE_API void
tare_convert_custom_config_set_preserved_attributes(tare_convert_custom_config *config,
                                                    const char *const *names, size_t count);
/// Parses JSON with the keys `observed_to_quantized_custom_module_class` ({"static": {observed
/// class: quantized class}}) and `preserved_attributes`. TARE_MALFORMED_FILE, with the path, for
/// other keys. The caller destroys *out.
TARE_API tare_status tare_convert_custom_config_from_json(const char *json, size_t size,
                                                          tare_convert_custom_config **out,
                                                          tare_error *err);
/// As tare_convert_custom_config_from_json, from a file ("-": standard input). Errors also
/// name the file.
TARE_API tare_status tare_convert_custom_config_read(const char *path,
                                                     tare_convert_custom_config **out,
                                                     tare_error *err);
/// Writes the keys that are not empty as JSON. Fails with the first error of a setter. The caller
/// frees *out with tare_string_free.
TARE_API tare_status tare_convert_custom_config_to_json(const tare_convert_custom_config *config,
                                                        char **out, tare_error *err);

/// Creates an empty config. Returns NULL when memory is exhausted. The caller destroys it.
TARE_API tare_fuse_custom_config *tare_fuse_custom_config_create(void);
/// Frees a config. NULL is allowed.
TARE_API void tare_fuse_custom_config_destroy(tare_fuse_custom_config *config);
/// The names of attributes that are kept although no node uses them.
TARE_API void tare_fuse_custom_config_set_preserved_attributes(tare_fuse_custom_config *config,
                                                               const char *const *names,
                                                               size_t count);
/// Parses JSON with the key `preserved_attributes`. TARE_MALFORMED_FILE, with the path, for other
/// keys. The caller destroys *out.
TARE_API tare_status tare_fuse_custom_config_from_json(const char *json, size_t size,
                                                       tare_fuse_custom_config **out,
                                                       tare_error *err);
/// As tare_fuse_custom_config_from_json, from a file ("-": standard input). Errors also name the
/// file.
TARE_API tare_status tare_fuse_custom_config_read(const char *path, tare_fuse_custom_config **out,
                                                  tare_error *err);
/// Writes the keys that are not empty as JSON. Fails with the first error of a setter. The caller
/// frees *out with tare_string_free.
TARE_API tare_status tare_fuse_custom_config_to_json(const tare_fuse_custom_config *config,
                                                     char **out, tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
