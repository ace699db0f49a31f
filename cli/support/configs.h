// SPDX-License-Identifier: Apache-2.0
// Backend configs and qconfig mappings by what the user calls them.
#ifndef CLI_CONFIGS_H
#define CLI_CONFIGS_H

#include "tare/tare.h"

/// A built-in config's name, or a file ("-": standard input). A name that is neither is answered
/// with the nearest built-in one. is_qat: a mapping's name means that of fake quantizers.
tare_status load_backend(const char *name, tare_backend_config **out, tare_error *err);
tare_status load_mapping(const char *name, bool is_qat, tare_qconfig_mapping **out,
                         tare_error *err);
bool names_a_file(const char *name); // or could: it has a dot or a slash
bool is_default_mapping(const char *name);
bool is_builtin_backend(const char *name);
/// Names for completion: NULL ends them.
const char *backend_choice_at(const void *user, size_t index);
const char *quantizer_choice_at(const void *user, size_t index);
const char *mapping_choice_at(const void *user, size_t index);
const char *preprocess_choice_at(const void *user, size_t index);
/// A JSON file, or what tare_preprocess_parse takes.
tare_status load_preprocess(const char *spec, tare_preprocess **out, tare_error *err);

#endif
