// SPDX-License-Identifier: Apache-2.0
// Rows of options for commands that quantize: the target, the calibration data, and improvements.
// `field` is a quantize_options within the command's struct `type`. not_fuse: the options with
// which these have no effect, "stop=fuse" or NULL; not_state: the same and "state"; needs: the
// option that requests a ladder of steps, or NULL.
#ifndef CLI_QUANTIZE_FLOW_OPTIONS_H
#define CLI_QUANTIZE_FLOW_OPTIONS_H

#include "quantize/quantize.h"
#include "support/configs.h"

// clang-format off
#define FLOW_OPTIONS(type, field, not_fuse)                                                     \
    {.name = "backend",                                                                         \
     .value = "NAME|FILE",                                                                      \
     .help = "backend config to quantize for",                                                  \
     .kind = OPTION_FILE,                                                                       \
     .choice_at = backend_choice_at,                                                            \
     .excludes = "quantizer",                                                                   \
     .offset = offsetof(type, field.backend)},                                                  \
    {.name = "qconfig",                                                                         \
     .value = "NAME|FILE",                                                                      \
     .help = "qconfig mapping",                                                                 \
     .details = "A default mapping or a mapping file. The mapping tare is torch's for x86 with all " \
                "eight bits of activations; for a backend that does not support it, the default " \
                "mapping of the backend's name is used.",                                       \
     .library_default = "tare, or the backend's",                                               \
     .kind = OPTION_FILE,                                                                       \
     .choice_at = mapping_choice_at,                                                            \
     .requires = "backend",                                                                     \
     .excludes = not_fuse,                                                                      \
     .offset = offsetof(type, field.qconfig)},                                                  \
    {.name = "quantizer",                                                                       \
     .value = "NAME|FILE[,..]",                                                                 \
     .help = "quantizers of an exported program",                                               \
     .details = "Built-in quantizers and files of rules, applied one after the other. A prepared " \
                "program (--stop prepare) needs none.",                                         \
     .kind = OPTION_FILE,                                                                       \
     .choice_at = quantizer_choice_at,                                                          \
     .excludes = not_fuse,                                                                      \
     .offset = offsetof(type, field.quantizer)},                                                \
    {.name = "quantizer-config",                                                                \
     .value = "FILE",                                                                           \
     .help = "settings of the quantizer by module and operator",                                \
     .details = "JSON with configs under global, module_name, module_type and operator; for "   \
                "several quantizers {\"quantizers\": {NAME: settings, ..}}.",                   \
     .kind = OPTION_FILE,                                                                       \
     .requires = "quantizer",                                                                   \
     .offset = offsetof(type, field.quantizer_config)}

#define CALIBRATION_OPTIONS(type, field, not_fuse, not_state)                                   \
    {.name = "calibrate",                                                                       \
     .value = "DATA",                                                                           \
     .help = "data to calibrate on",                                                            \
     .kind = OPTION_FILE,                                                                       \
     .excludes = not_state,                                                                     \
     .offset = offsetof(type, field.calibrate)},                                                \
    {.name = "state",                                                                           \
     .value = "STATE",                                                                          \
     .help = "a state that tare calibrate wrote, instead of data",                              \
     .kind = OPTION_FILE,                                                                       \
     .excludes = not_fuse,                                                                      \
     .offset = offsetof(type, field.state)},                                                    \
    {.name = "batch",                                                                           \
     .value = "N",                                                                              \
     .help = "samples per calibration batch",                                                   \
     .default_value = "16",                                                                     \
     .kind = OPTION_NUMBER,                                                                     \
     .requires = "calibrate",                                                                   \
     .offset = offsetof(type, field.batch)},                                                    \
    {.name = "limit",                                                                           \
     .value = "N",                                                                              \
     .help = "calibrate on the first N samples",                                                \
     .kind = OPTION_NUMBER,                                                                     \
     .requires = "calibrate",                                                                   \
     .offset = offsetof(type, field.limit)},                                                    \
    {.name = "preprocess",                                                                      \
     .value = "STEPS",                                                                          \
     .help = "image preprocessing; stored in OUT",                                              \
     .details = "STEPS as for tare preprocess.",                                                \
     .kind = OPTION_FILE,                                                                       \
     .choice_at = preprocess_choice_at,                                                         \
     .offset = offsetof(type, field.preprocess)}

#define LADDER_OPTIONS(type, field, needs)                                                      \
    {.name = "max-slower",                                                                      \
     .value = "PERCENT",                                                                        \
     .help = "largest slowdown of a run that steps may cost",                                   \
     .details = "Of the first model's time, or, where some layers are faster in float, "        \
                "of that of the fastest choice for each. Steps get 95 % of it, as times " \
                "have errors. Without this option up to 100 if the outputs of all models "      \
                "within it have less than 5 dB, since such a model is of no use.",             \
     .library_default = "10",                                                                   \
     .kind = OPTION_NUMBER,                                                                     \
     .requires = needs,                                                                         \
     .offset = offsetof(type, field.max_slower)},                                               \
    {.name = "max-larger",                                                                      \
     .value = "PERCENT",                                                                        \
     .help = "largest growth of the model's tensors that steps may cost",                       \
     .details = "Of the first model's bytes. Without this option those of the fastest choice " \
                "for each layer, if they are more, and up to 100 if the outputs of all models " \
                "within the limits have less than 5 dB.",                                       \
     .library_default = "25",                                                                   \
     .kind = OPTION_NUMBER,                                                                     \
     .requires = needs,                                                                         \
     .offset = offsetof(type, field.max_larger)},                                               \
    {.name = "budget",                                                                          \
     .value = "S",                                                                              \
     .help = "seconds for the steps, the last of which is bias correction",                          \
     .default_value = "300",                                                                    \
     .kind = OPTION_NUMBER,                                                                     \
     .requires = needs,                                                                         \
     .offset = offsetof(type, field.budget)},                                                   \
    {.name = "steps",                                                                           \
     .value = "NAME,..",                                                                        \
     .help = "steps to try, in this order",                                                     \
     .details = "per-channel, equalization, smoothing, rotation, observers, dynamic, "         \
                "precision, awq, weight-clipping, gptq, adaround, bias-correction.",           \
     .library_default = "all",                                                                  \
     .kind = OPTION_TEXT,                                                                       \
     .requires = needs,                                                                         \
     .offset = offsetof(type, field.steps)},                                                    \
    {.name = "ladder",                                                                          \
     .value = "FILE",                                                                           \
     .help = "store the results of steps in FILE, and continue from it",                        \
     .details = "If interrupted, the same command skips steps whose results are in FILE.",      \
     .kind = OPTION_FILE,                                                                       \
     .requires = needs,                                                                         \
     .offset = offsetof(type, field.ladder)}

// clang-format on

#endif
