// SPDX-License-Identifier: Apache-2.0
// The user's settings of a quantizer.
#ifndef QUANTIZERS_SETTINGS_H
#define QUANTIZERS_SETTINGS_H

#include "core/json/json.h"
#include "tare/quantizer.h"

typedef struct setting {
    char *key;
    bool is_none; // the config is None: do not quantize
    tare_quantization_config config;
} setting;

typedef struct setting_list {
    setting *items; // in the order in which they were set
    size_t count, capacity;
} setting_list;

struct tare_quantizer_settings {
    bool has_global;
    setting global;
    setting_list module_names, module_types, operators;
    bool is_lenient;
    tare_status status; // of the first setter that failed
};

/// Copies the fields of `from` that this version knows, and retains their specs.
tare_quantization_config tare__config_copy(const tare_quantization_config *from);
tare_status tare__settings_clone(const tare_quantizer_settings *from, tare_quantizer_settings **out,
                                 tare_error *err);
/// Context for reading settings: for which quantizer, and for training or not.
typedef struct settings_source {
    const char *quantizer; // its "default" configs are used
    bool is_qat;           // "default" configs are for training unless they say otherwise
} settings_source;
/// Parses a settings object.
tare_status tare__settings_from_json(const json_at *at, const settings_source *source,
                                     tare_quantizer_settings **out, tare_error *err);

#endif
