// SPDX-License-Identifier: Apache-2.0
/// The quantizers that ship, torchao's, and what a user may ask of one: a config for the whole
/// model, for module names, module types and operators.
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

/// What a quantizer's default config may vary in; zero is the default. An option that the quantizer
/// does not know is refused.
typedef struct tare_quantization_options {
    uint32_t struct_size;
    bool is_per_channel; // XNNPACKQuantizer: weights with a scale per output channel
    bool is_qat, is_dynamic;
    bool reduce_range;                    // X86InductorQuantizer: activations of seven bits
    bool has_act_range, has_weight_range; // XNNPACKQuantizer
    int64_t act_min, act_max, weight_min, weight_max;
} tare_quantization_options;

/// The default config of a built-in quantizer ("XNNPACKQuantizer": torchao's
/// get_symmetric_quantization_config; "X86InductorQuantizer", "ArmInductorQuantizer",
/// "XPUInductorQuantizer", "EmbeddingQuantizer" theirs). options may be NULL. The caller releases
/// *out with tare_quantization_config_release.
TARE_API tare_status tare_quantization_config_default(const char *quantizer,
                                                      const tare_quantization_options *options,
                                                      tare_quantization_config *out,
                                                      tare_error *err);
/// Gives back the specs of a config that the library filled.
TARE_API void tare_quantization_config_release(tare_quantization_config *config);

// --- settings ---

/// Which part of the model gets which config, for any quantizer. Setters keep the first error and
/// report it where the settings are used; setting a key again replaces its config and keeps its
/// place. Specs are retained. A NULL config means «do not quantize».
typedef struct tare_quantizer_settings tare_quantizer_settings;
/// Nothing is quantized. NULL when memory is gone, which setters take.
TARE_API tare_quantizer_settings *tare_quantizer_settings_create(void);
TARE_API void tare_quantizer_settings_destroy(tare_quantizer_settings *settings); // NULL is fine
TARE_API void tare_quantizer_settings_set_global(tare_quantizer_settings *settings,
                                                 const tare_quantization_config *config);
/// name: a module's path ("layer1.0"); what stands below it is meant, too.
TARE_API void tare_quantizer_settings_set_module_name(tare_quantizer_settings *settings,
                                                      const char *name,
                                                      const tare_quantization_config *config);
/// type: a module class ("torch.nn.Linear").
TARE_API void tare_quantizer_settings_set_module_type(tare_quantizer_settings *settings,
                                                      const char *type,
                                                      const tare_quantization_config *config);
/// operator_name: an aten operator ("torch.ops.aten.linear.default").
TARE_API void tare_quantizer_settings_set_operator(tare_quantizer_settings *settings,
                                                   const char *operator_name,
                                                   const tare_quantization_config *config);
/// A key that nothing in the model has is an error; not so when lenient.
TARE_API void tare_quantizer_settings_set_lenient(tare_quantizer_settings *settings,
                                                  bool is_lenient);
/// {"global": CONFIG, "module_name": [[NAME, CONFIG], ..], "module_type": .., "operator": ..}. A
/// CONFIG is null, {"default": {"is_per_channel": true, ..}} (of the quantizer of that name), or
/// {"input_activation": SPEC, "output_activation": .., "weight": .., "bias": .., "is_qat": ..} with
/// specs as annotations have them. Errors name the JSON path.
TARE_API tare_status tare_quantizer_settings_from_json(const char *json, size_t size,
                                                       const char *quantizer,
                                                       tare_quantizer_settings **out,
                                                       tare_error *err);
TARE_API tare_status tare_quantizer_settings_read(const char *path, const char *quantizer,
                                                  tare_quantizer_settings **out, tare_error *err);

// --- quantizers ---

/// For transform_for_annotation: numbers among the arguments of these operators (NULL-terminated,
/// "torch.ops.aten.add.Tensor") become float32 tensors of the model, `_tensor_constant_N`, so that
/// they can be annotated as inputs. XNNPACKQuantizer does it for sums and products.
TARE_API tare_status tare_model_lift_scalars(tare_model *model, const char *const *operators,
                                             tare_error *err);

/// "XNNPACKQuantizer", "X86InductorQuantizer", "ArmInductorQuantizer", "XPUInductorQuantizer" or
/// "EmbeddingQuantizer". settings: copied; NULL: the default config for the whole model.
/// TARE_INVALID_ARGUMENT for settings that the quantizer would not honour: torchao warns and drops
/// them.
TARE_API tare_status tare_quantizer_builtin(const char *name,
                                            const tare_quantizer_settings *settings,
                                            tare_quantizer **out, tare_error *err);
/// The name of the i-th; NULL past the end.
TARE_API const char *tare_quantizer_builtin_name_at(size_t index);

/// A quantizer that is data: a JSON file of rules, so that most backends need no code.
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
/// CODE is a pattern as in tare/subgraph.h; its dictionary has the names that `annotations` speaks
/// of. A SPEC there is a name of `specs` or of a part of the config, a spec as annotations have
/// them whose edges and nodes are names of the pattern, or null. Rules are tried in order; a node
/// that has been matched is not matched again. keeps_observer: operators that go on with their
/// first input's observer, where it has one. joins_inputs: operators whose inputs and output share
/// one. lifts_scalars: see tare_model_lift_scalars. docs/pt2e.md tells of the other keys of a rule:
/// matcher, examples, sources, training_only, marks. settings: as for built-in quantizers, in place
/// of `config`; NULL: that config for the whole model; a setting by module or operator holds for
/// all calls of a match. Reading is strict: errors name the JSON path, the rule and the form.
TARE_API tare_status tare_quantizer_from_json(const char *json, size_t size,
                                              const tare_quantizer_settings *settings,
                                              tare_quantizer **out, tare_error *err);
TARE_API tare_status tare_quantizer_read(const char *path, const tare_quantizer_settings *settings,
                                         tare_quantizer **out, tare_error *err);

/// What one setting asks of a coded quantizer, lent for the call.
typedef struct tare_quantizer_level tare_quantizer_level;
/// What its nodes shall get; NULL: nothing, they are to be marked and left float.
TARE_API const tare_quantization_config *tare_level_config(const tare_quantizer_level *level);
/// May these nodes, the calls of one pattern, be annotated now? None is marked yet, all are of the
/// module or class that the setting names (for settings by operator and for the whole model: of
/// none that settings name), and one calls the operator that it names.
TARE_API bool tare_level_takes(const tare_quantizer_level *level, const tare_node *const *nodes,
                               size_t count);
/// Annotates and marks what the level takes.
typedef tare_status (*tare_level_annotator)(void *self, tare_model *model,
                                            const tare_quantizer_level *level, tare_error *err);
/// A coded quantizer that users ask as they ask any other: annotate_level is called for every
/// setting, by module name, module type and operator in the order in which they were set, then for
/// the whole model; after that annotate of the class, which may be NULL, for what propagates. A
/// setting that fits nothing in the model is an error, unless lenient. Takes `self` over on
/// success; settings are copied.
TARE_API tare_status tare_quantizer_create_leveled(const tare_quantizer_class *quantizer_class,
                                                   void *self, tare_level_annotator annotate_level,
                                                   const tare_quantizer_settings *settings,
                                                   tare_quantizer **out, tare_error *err);

/// Several quantizers, one after the other (torchao's ComposableQuantizer). Takes the quantizers
/// over on success. Annotating fails where a later one replaces or removes what an earlier one
/// said.
TARE_API tare_status tare_quantizer_compose(tare_quantizer *const *quantizers, size_t count,
                                            tare_quantizer **out, tare_error *err);

/// Zero means the default everywhere; struct_size as in tare/status.h.
typedef struct tare_quantizer_open_options {
    uint32_t struct_size;
    const char *settings_path; // a settings file; NULL: the quantizer's own config for all
    bool is_qat;               // for tare_prepare_qat_pt2e
    bool is_lenient;           // as tare_quantizer_settings_set_lenient
} tare_quantizer_open_options;
/// A quantizer as users name it: a built-in one, a file of rules (a name with a dot or a slash, or
/// "-"), or several with ',' between, composed. Settings of several are {"quantizers": {NAME:
/// SETTINGS, ..}}; those left out have their own config. is_qat: default configs are of training,
/// and so must be what the files say; the other way about, too (TARE_INVALID_ARGUMENT, as for two
/// quantizers of one name). The caller destroys *out. options may be NULL. Errors name file and
/// JSON path.
TARE_API tare_status tare_quantizer_open(const char *names,
                                         const tare_quantizer_open_options *options,
                                         tare_quantizer **out, tare_error *err);

/// What the quantizer does where nobody asks for anything else, by which rules, and which operators
/// settings may name: for people, or as JSON (docs/schemas/quantizer_show.json). Of a coded one
/// only its name is known.
TARE_API tare_status tare_quantizer_show(const tare_quantizer *quantizer, bool as_json,
                                         tare_writer write, void *user, tare_error *err);

/// What a file of rules can say, but cannot mean. Strings are lent for the call.
typedef struct tare_quantizer_finding {
    uint32_t struct_size;
    const char *path;    // of the place: "$.rules[3]"
    const char *problem; // a sentence
    const char *remedy;  // what to do, as an order
    /// true: it cannot work, so that prepare takes no quantizer with it. false: it has no effect,
    /// or not the one that was meant.
    bool is_error;
} tare_quantizer_finding;
/// Receives one finding; TARE_OK to go on.
typedef tare_status (*tare_quantizer_finding_visitor)(void *user,
                                                      const tare_quantizer_finding *finding,
                                                      tare_error *err);
/// Looks through a file of rules: specs that cannot work (errors) or that nothing uses, operators
/// that nobody knows or that no exporter calls, rules that an earlier one always takes. *count: the
/// findings; 0 for other quantizers.
TARE_API tare_status tare_quantizer_lint(const tare_quantizer *quantizer,
                                         tare_quantizer_finding_visitor visit, void *user,
                                         size_t *count, tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
