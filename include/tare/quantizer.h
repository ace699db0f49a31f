// SPDX-License-Identifier: Apache-2.0
/// Built-in quantizers (those of torchao), quantizers as files of rules, and their settings: a
/// config for the whole model, for module names, module types and operators.
#ifndef TARE_QUANTIZER_H
#define TARE_QUANTIZER_H

#include <stdbool.h>
#include <stddef.h>

#include "tare/pt2e.h"
#include "tare/writer.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- configs ---

/// Options of a quantizer's default config; zero means the default.
typedef struct tare_quantization_options {
    uint32_t struct_size;
    bool is_per_channel; // XNNPACKQuantizer: weights with one scale per output channel
    bool is_qat, is_dynamic;
    bool reduce_range;                    // X86InductorQuantizer: 7-bit activations
    bool has_act_range, has_weight_range; // XNNPACKQuantizer: the ranges below are set
    int64_t act_min, act_max, weight_min, weight_max;
} tare_quantization_options;

/// The default config of a built-in quantizer ("XNNPACKQuantizer": torchao's
/// get_symmetric_quantization_config; "X86InductorQuantizer", "ArmInductorQuantizer",
/// "XPUInductorQuantizer", "EmbeddingQuantizer": theirs). options may be NULL.
/// TARE_INVALID_ARGUMENT for options that the quantizer does not know. The caller gives *out to
/// tare_quantization_config_release.
TARE_API tare_status tare_quantization_config_default(const char *quantizer,
                                                      const tare_quantization_options *options,
                                                      tare_quantization_config *out,
                                                      tare_error *err);
/// Releases the specs of a config that the library filled, and clears it.
TARE_API void tare_quantization_config_release(tare_quantization_config *config);

// --- settings ---

/// The configs of a model's operators, for any quantizer. A NULL config means: do not quantize.
/// Setters copy names and configs and take their own references of specs. They return no status:
/// the settings keep their first error and report it where they are used. Setting a key again
/// replaces its config and keeps its position.
typedef struct tare_quantizer_settings tare_quantizer_settings;
/// Creates empty settings, which quantize nothing. Returns NULL when memory is exhausted, which
/// setters accept. The caller destroys it.
TARE_API tare_quantizer_settings *tare_quantizer_settings_create(void);
/// Frees settings and releases their specs. NULL is allowed.
TARE_API void tare_quantizer_settings_destroy(tare_quantizer_settings *settings);
/// Sets the config of operators that no other setting covers.
TARE_API void tare_quantizer_settings_set_global(tare_quantizer_settings *settings,
                                                 const tare_quantization_config *config);
/// Sets the config of the module at a path ("layer1.0") and of all modules below it.
TARE_API void tare_quantizer_settings_set_module_name(tare_quantizer_settings *settings,
                                                      const char *name,
                                                      const tare_quantization_config *config);
/// Sets the config of all modules of a class ("torch.nn.Linear").
TARE_API void tare_quantizer_settings_set_module_type(tare_quantizer_settings *settings,
                                                      const char *type,
                                                      const tare_quantization_config *config);
/// Sets the config of an aten operator ("torch.ops.aten.linear.default").
TARE_API void tare_quantizer_settings_set_operator(tare_quantizer_settings *settings,
                                                   const char *operator_name,
                                                   const tare_quantization_config *config);
/// Sets whether keys that match nothing in the model are accepted; by default they are errors.
TARE_API void tare_quantizer_settings_set_lenient(tare_quantizer_settings *settings,
                                                  bool is_lenient);
/// Parses settings, `size` bytes of JSON: {"global": CONFIG, "module_name": [[NAME, CONFIG], ..],
/// "module_type": .., "operator": ..}. A CONFIG is null, {"default": {"is_per_channel": true, ..}}
/// (the default of `quantizer` with these options), or {"input_activation": SPEC,
/// "output_activation": .., "weight": .., "bias": .., "is_qat": ..} with specs as in
/// tare_model_annotations_to_json. Errors name the JSON path. The caller destroys *out.
TARE_API tare_status tare_quantizer_settings_from_json(const char *json, size_t size,
                                                       const char *quantizer,
                                                       tare_quantizer_settings **out,
                                                       tare_error *err);
/// As tare_quantizer_settings_from_json, from a file ("-": standard input). Errors also name the
/// file.
TARE_API tare_status tare_quantizer_settings_read(const char *path, const char *quantizer,
                                                  tare_quantizer_settings **out, tare_error *err);

// --- quantizers ---

/// Replaces numbers among the arguments of these operators ("torch.ops.aten.add.Tensor"; the list
/// ends with NULL) by float32 tensors of the model, `_tensor_constant_N`, so that they can be
/// annotated as inputs. For use in transform_for_annotation; XNNPACKQuantizer does this for sums
/// and products.
TARE_API tare_status tare_model_lift_scalars(tare_model *model, const char *const *operators,
                                             tare_error *err);

/// Creates a built-in quantizer: "XNNPACKQuantizer", "X86InductorQuantizer",
/// "ArmInductorQuantizer", "XPUInductorQuantizer" or "EmbeddingQuantizer". settings: copied; NULL:
/// the default config for the whole model. TARE_INVALID_ARGUMENT for settings that the quantizer
/// does not support (torchao warns and ignores them); TARE_NOT_FOUND, with a suggestion, for other
/// names. The caller destroys *out.
TARE_API tare_status tare_quantizer_builtin(const char *name,
                                            const tare_quantizer_settings *settings,
                                            tare_quantizer **out, tare_error *err);
/// The name of the index-th built-in quantizer; NULL past the end. Static storage.
TARE_API const char *tare_quantizer_builtin_name_at(size_t index);

/// Creates a quantizer from rules, `size` bytes of JSON. Most backends then need no code of their
/// own.
///
///   {"format": "tare-quantizer", "version": 1, "name": "my_backend",
///    "specs": {"int8": SPEC, "int8_weight": SPEC},
///    "config": {"input_activation": "int8", "output_activation": "int8", "weight": "int8_weight"},
///    "rules": [{"name": "conv_relu", "pattern": [CODE, ..], "match_literals": false,
///      "annotations": {
///        "conv": {"input_qspec_map": [["input", "input_activation"], ["weight", "weight"]]},
///        "relu": {"output_qspec": "output_activation"}}}, ..],
///    "keeps_observer": ["torch.ops.aten.max_pool2d.default", ..],
///    "joins_inputs": ["torch.ops.aten.cat.default"],
///    "lifts_scalars": ["torch.ops.aten.add.Tensor"]}
///
/// CODE is a pattern as in tare/subgraph.h, whose dictionary defines the names in `annotations`. A
/// SPEC is the name of an entry of `specs` or `config`, a spec as in tare_model_annotations_to_json
/// whose edges and nodes are names of the pattern, or null. Rules are tried in order; a node that a
/// rule has matched is not matched again. keeps_observer: operators whose output uses the observer
/// of their first input, if that has one. joins_inputs: operators whose inputs and output share one
/// observer. lifts_scalars: see tare_model_lift_scalars. docs/pt2e.md describes the other keys of a
/// rule: matcher, examples, sources, training_only, marks.
///
/// settings: as for built-in quantizers, instead of `config`; NULL: `config` for the whole model. A
/// setting by module or operator must cover all calls of a match. TARE_MALFORMED_FILE for unknown
/// keys; errors name the JSON path, the rule and the form. The caller destroys *out.
TARE_API tare_status tare_quantizer_from_json(const char *json, size_t size,
                                              const tare_quantizer_settings *settings,
                                              tare_quantizer **out, tare_error *err);
/// As tare_quantizer_from_json, from a file ("-": standard input). Errors also name the file.
TARE_API tare_status tare_quantizer_read(const char *path, const tare_quantizer_settings *settings,
                                         tare_quantizer **out, tare_error *err);

/// One setting, for a quantizer written in C; lent for the call.
typedef struct tare_quantizer_level tare_quantizer_level;
/// The config of this setting, lent; NULL: mark its nodes and leave them float.
TARE_API const tare_quantization_config *tare_level_config(const tare_quantizer_level *level);
/// Does this setting cover these nodes, the calls of one pattern? True if none is marked yet, all
/// belong to the module or class of the setting (for settings by operator and for the whole model:
/// to none that another setting names), and, for a setting by operator, one of them calls that
/// operator.
TARE_API bool tare_level_takes(const tare_quantizer_level *level, const tare_node *const *nodes,
                               size_t count);
/// Annotates and marks the nodes that the level covers.
typedef tare_status (*tare_level_annotator)(void *self, tare_model *model,
                                            const tare_quantizer_level *level, tare_error *err);
/// Creates a quantizer written in C that accepts settings like the built-in ones. annotate_level is
/// called once per setting: first those by module name, then by module type, then by operator, each
/// in the order in which they were set, and at last for the whole model. Then annotate of the class
/// is called, which may be NULL here. A setting that covers nothing in the model is an error,
/// unless the settings are lenient. settings are copied; on success the quantizer takes `self`
/// over. The caller destroys *out.
TARE_API tare_status tare_quantizer_create_leveled(const tare_quantizer_class *quantizer_class,
                                                   void *self, tare_level_annotator annotate_level,
                                                   const tare_quantizer_settings *settings,
                                                   tare_quantizer **out, tare_error *err);

/// Creates a quantizer that runs several others in order (torchao's ComposableQuantizer). On
/// success it takes them over. Annotating fails if a quantizer replaces or removes an annotation of
/// an earlier one. The caller destroys *out.
TARE_API tare_status tare_quantizer_compose(tare_quantizer *const *quantizers, size_t count,
                                            tare_quantizer **out, tare_error *err);

/// Zero means the default everywhere; struct_size as in tare/status.h.
typedef struct tare_quantizer_open_options {
    uint32_t struct_size;
    const char *settings_path; // a settings file; NULL: the quantizer's default config
    bool is_qat;               // for tare_prepare_qat_pt2e
    bool is_lenient;           // as tare_quantizer_settings_set_lenient
} tare_quantizer_open_options;
/// Creates a quantizer by name: a built-in one, a file of rules (a name with a dot or a slash, or
/// "-"), or several of them, separated by ',' and composed. Settings for several have the form
/// {"quantizers": {NAME: SETTINGS, ..}}; a quantizer that is left out uses its default config.
/// is_qat selects the default configs. TARE_INVALID_ARGUMENT if is_qat disagrees with the configs
/// in the files, and for two quantizers of one name. options may be NULL. Errors name the file and
/// the JSON path. The caller destroys *out.
TARE_API tare_status tare_quantizer_open(const char *names,
                                         const tare_quantizer_open_options *options,
                                         tare_quantizer **out, tare_error *err);

/// Writes the quantizer's default config, its rules and the operators that settings may name, as
/// text or as JSON (docs/schemas/quantizer_show.json). For a quantizer written in C only the name
/// is known. TARE_IO if `write` returns false.
TARE_API tare_status tare_quantizer_show(const tare_quantizer *quantizer, bool as_json,
                                         tare_writer write, void *user, tare_error *err);

/// An entry that is valid but probably a mistake. Strings are lent for the call.
typedef struct tare_quantizer_finding {
    uint32_t struct_size;
    const char *path;    // the JSON path: "$.rules[3]"
    const char *problem; // a sentence
    const char *remedy;  // what to do, an imperative sentence
    /// true: it cannot work, so prepare refuses the quantizer. false: it has no effect, or probably
    /// not the intended one.
    bool is_error;
} tare_quantizer_finding;
/// Receives one finding. Any status but TARE_OK ends the check, which returns it.
typedef tare_status (*tare_quantizer_finding_visitor)(void *user,
                                                      const tare_quantizer_finding *finding,
                                                      tare_error *err);
/// Checks the rules of a quantizer from a file and reports each finding to `visit`: specs that
/// cannot work (errors) or that are not used, operators that are unknown or that no exporter calls,
/// rules that never match because an earlier rule always does. *count becomes the number of
/// findings; 0 for other quantizers.
TARE_API tare_status tare_quantizer_lint(const tare_quantizer *quantizer,
                                         tare_quantizer_finding_visitor visit, void *user,
                                         size_t *count, tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
