// SPDX-License-Identifier: Apache-2.0
// Loads backend configs and qconfig mappings by name or from files.
#ifndef CLI_CONFIGS_H
#define CLI_CONFIGS_H

#include "tare/tare.h"

/// The name of a built-in config, or a file ("-": standard input). For an unknown name the error
/// suggests the nearest one. is_qat: the name of a mapping means the one with fake quantizers.
tare_status load_backend(const char *name, tare_backend_config **out, tare_error *err);
tare_status load_mapping(const char *name, bool is_qat, tare_qconfig_mapping **out,
                         tare_error *err);
bool names_a_file(const char *name); // true if it contains a dot or a slash
bool is_default_mapping(const char *name);
bool is_builtin_backend(const char *name);
/// Names for completion; NULL at the end.
const char *backend_choice_at(const void *user, size_t index);
const char *quantizer_choice_at(const void *user, size_t index);
const char *mapping_choice_at(const void *user, size_t index);
const char *preprocess_choice_at(const void *user, size_t index);
/// A JSON file, or the short form that tare_preprocess_parse takes.
tare_status load_preprocess(const char *spec, tare_preprocess **out, tare_error *err);

#endif
