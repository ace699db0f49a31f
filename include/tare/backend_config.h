// SPDX-License-Identifier: Apache-2.0
/// BackendConfig: what a backend supports, pattern by pattern; the whole flow derives from it.
#ifndef TARE_BACKEND_CONFIG_H
#define TARE_BACKEND_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "tare/dtype.h"
#include "tare/module.h"
#include "tare/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Whether a pattern's output is watched by an observer of its own, by its input's, or by none.
typedef enum tare_observation_type {
    TARE_OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT = 0,
    TARE_OUTPUT_SHARE_OBSERVER_WITH_INPUT = 1,
    TARE_INPUT_OUTPUT_NOT_OBSERVED = 2,
} tare_observation_type;

/// Which fields of tare_dtype_constraints are set: unset is not zero.
enum {
    TARE_SET_QUANT_MIN = 1 << 0,
    TARE_SET_QUANT_MAX = 1 << 1,
    TARE_SET_SCALE_MIN = 1 << 2,
    TARE_SET_SCALE_MAX = 1 << 3,
    TARE_SET_SCALE_EXACT = 1 << 4,
    TARE_SET_ZERO_POINT_EXACT = 1 << 5,
    TARE_SET_QSCHEMES = 1 << 6,
    TARE_SET_CHANNEL_AXIS = 1 << 7,
    TARE_SET_ZERO_POINT_MIN = 1 << 8,
    TARE_SET_ZERO_POINT_MAX = 1 << 9,
    TARE_SET_POWER_OF_TWO = 1 << 10,
};
/// A set of schemes: TARE_QSCHEME_BIT(TARE_PER_TENSOR_AFFINE) | ..
#define TARE_QSCHEME_BIT(qscheme) (1u << (qscheme))

/// torch's DTypeWithConstraints, and behind its fields what accelerators need beyond it. dtype
/// UNSET: no statement about this tensor.
typedef struct tare_dtype_constraints {
    tare_dtype dtype;
    uint32_t set;
    double quant_min_lower_bound, quant_max_upper_bound; // the observer's range must lie inside
    double scale_min_lower_bound;                        // the observer's eps must be at least this
    double scale_max_upper_bound; // convert fails for a greater scale (torch only stores it)
    double scale_exact_match;     // fixed qparams operators
    int64_t zero_point_exact_match;
    uint32_t allowed_qschemes; // of TARE_QSCHEME_BIT; prepare refuses a qconfig with another
    int64_t channel_axis;      // of per-channel schemes; prepare refuses a qconfig with another
    int64_t zero_point_lower_bound, zero_point_upper_bound; // convert fails outside of them
    bool scale_power_of_two; // convert raises scales to the next power of two
} tare_dtype_constraints;

/// torch's DTypeConfig. is_dynamic: -1 unset (counts as false), 0, 1.
typedef struct tare_dtype_config {
    tare_dtype_constraints input, output, weight;
    tare_dtype bias;
    int is_dynamic;
} tare_dtype_config;
/// All fields unset; is_dynamic is -1.
TARE_API tare_dtype_config tare_dtype_config_init(void);

/// Setters keep their first error and report it where the config is used (or by check); NULL, what
/// a failed create left, is fine for them. Names and dtype configs are copied.
typedef struct tare_backend_config tare_backend_config;
typedef struct tare_pattern_config tare_pattern_config; // torch's BackendPatternConfig

/// A matched node as callbacks see it; lent for the call. Wildcards may stand for constants: those
/// are NULL nodes.
typedef struct tare_match tare_match;
TARE_API size_t
tare_match_count(const tare_match *match); // direct elements, last executed operator first
/// The i-th element as a nested match (tuple), or NULL if it is a node.
TARE_API const tare_match *tare_match_nested(const tare_match *match, size_t i);
/// An opaque handle of the i-th element's node; NULL if it is nested or a constant.
typedef struct tare_match_node tare_match_node;
TARE_API const tare_match_node *tare_match_node_at(const tare_match *match, size_t i);
TARE_API const char *tare_match_node_name(const tare_match_node *node);
/// args[i] of a node, or NULL if it is not a node.
TARE_API const tare_match_node *tare_match_node_input(const tare_match_node *node, size_t i);

/// The root (weighted) node of a match; NULL: no root, an error.
typedef const tare_match_node *(*tare_root_node_getter)(void *user, const tare_match *match);
/// Writes up to `capacity` extra inputs to append to the root's; returns their number.
typedef size_t (*tare_extra_inputs_getter)(void *user, const tare_match *match,
                                           const tare_match_node **out, size_t capacity);

/// Modules that a fuser gets are lent.
/// Fuses modules[0..count) (data-flow order for simple patterns, pattern order for complex ones;
/// NULL where the pattern's element is a function: see function_names[i]; both are NULL for a
/// wildcard). *out: a new module (tare_module_*).
typedef tare_status (*tare_fuser)(void *user, bool is_qat, const tare_module *const *modules,
                                  const char *const *function_names, size_t count,
                                  tare_module **out, tare_error *err);

/// A config without patterns; NULL when memory is gone. name NULL: "".
TARE_API tare_backend_config *tare_backend_config_create(const char *name);
TARE_API void tare_backend_config_destroy(tare_backend_config *config); // NULL is fine
TARE_API tare_status tare_backend_config_clone(const tare_backend_config *config,
                                               tare_backend_config **out, tare_error *err);
TARE_API void tare_backend_config_set_name(tare_backend_config *config, const char *name);
TARE_API const char *tare_backend_config_name(const tare_backend_config *config);

/// A pattern config of one's own, to be given to set. Setters keep the first error.
TARE_API tare_pattern_config *tare_pattern_config_create(void);
TARE_API void tare_pattern_config_destroy(tare_pattern_config *pattern); // not after set took it
/// Stores `pattern` (consumed) under its pattern in complex form: an equal key is replaced in its
/// place.
TARE_API void tare_backend_config_set(tare_backend_config *config, tare_pattern_config *pattern);
/// create, set_pattern and set in one: returns the stored config, lent, to be filled in.
TARE_API tare_pattern_config *tare_backend_config_add(tare_backend_config *config, const char *a,
                                                      const char *b, const char *c);
/// The first error of any setter, if one failed; else the first thing that tare_backend_config_lint
/// calls an error. Every pass that is given a config asks this first. NULL is what a failed create
/// left: TARE_OUT_OF_MEMORY.
TARE_API tare_status tare_backend_config_check(const tare_backend_config *config, tare_error *err);
/// The pattern configs in their order, lent until the next set; NULL past the end.
TARE_API size_t tare_backend_config_count(const tare_backend_config *config);
TARE_API const tare_pattern_config *tare_backend_config_at(const tare_backend_config *config,
                                                           size_t index);

/// Operators in forward order: a, then b, then c; NULL ends. Names of module classes, functions, or
/// bare method names.
TARE_API void tare_pattern_config_set_pattern(tare_pattern_config *pattern, const char *a,
                                              const char *b, const char *c);
/// Reverse nested form as JSON: ["torch.nn.ReLU", ["operator.add", "MatchAllNode",
/// ["torch.nn.BatchNorm2d", ..]]].
TARE_API void tare_pattern_config_set_pattern_complex(tare_pattern_config *pattern,
                                                      const char *json);
/// USE_DIFFERENT_OBSERVER when it was never set, as in torch.
TARE_API void tare_pattern_config_set_observation_type(tare_pattern_config *pattern,
                                                       tare_observation_type type);
/// The dtypes that the pattern supports; any one that fits the qconfig will do.
TARE_API void tare_pattern_config_add_dtype_config(tare_pattern_config *pattern,
                                                   const tare_dtype_config *dtype_config);
/// Replaces the list by copies.
TARE_API void tare_pattern_config_set_dtype_configs(tare_pattern_config *pattern,
                                                    const tare_dtype_config *dtype_configs,
                                                    size_t count);
/// Module classes by qualified name; NULL: unset. root: the float class with the weight; qat: what
/// it becomes for training; reference: what convert makes of it; fused: what the fuser makes.
TARE_API void tare_pattern_config_set_root_module(tare_pattern_config *pattern, const char *type);
TARE_API void tare_pattern_config_set_qat_module(tare_pattern_config *pattern, const char *type);
TARE_API void tare_pattern_config_set_reference_quantized_module(tare_pattern_config *pattern,
                                                                 const char *type);
TARE_API void tare_pattern_config_set_fused_module(tare_pattern_config *pattern, const char *type);
/// A built-in fuser by its name in the files
/// ("torch.ao.quantization.fuser_method_mappings.fuse_conv_bn").
TARE_API void tare_pattern_config_set_fuser_method(tare_pattern_config *pattern, const char *name);
/// A fuser, or getters, of the user's own; `user` is handed to each call and must outlive the
/// config.
TARE_API void tare_pattern_config_set_fuser_callback(tare_pattern_config *pattern, tare_fuser fuser,
                                                     void *user);
TARE_API void tare_pattern_config_set_root_node_getter(tare_pattern_config *pattern,
                                                       tare_root_node_getter getter, void *user);
TARE_API void tare_pattern_config_set_extra_inputs_getter(tare_pattern_config *pattern,
                                                          tare_extra_inputs_getter getter,
                                                          void *user);
/// The observation type of operators whose root has so many tensor arguments; where any is set, one
/// that is not listed is an error.
TARE_API void tare_pattern_config_set_num_tensor_args_to_observation_type(
    tare_pattern_config *pattern, int64_t tensor_arg_count, tare_observation_type type);
/// input: "weight" or "bias" (or "input", as torch's tensorrt writes it).
TARE_API void tare_pattern_config_set_input_type_to_index(tare_pattern_config *pattern,
                                                          const char *input, int64_t index);

/// Built-in configs: "native", "fbgemm", "qnnpack", "x86", "onednn", "tensorrt", "executorch", .. A
/// new copy.
TARE_API tare_status tare_backend_config_builtin(const char *name, tare_backend_config **out,
                                                 tare_error *err);
TARE_API const char *tare_backend_config_builtin_name_at(size_t index); // NULL past the end

/// JSON in torch's to_dict form, both ways. Unknown keys are refused; errors name the JSON path. A
/// config that holds callbacks of the user's own has no JSON form: TARE_UNSUPPORTED. The caller
/// frees the text of to_json with tare_string_free.
TARE_API tare_status tare_backend_config_from_json(const char *json, size_t size,
                                                   tare_backend_config **out, tare_error *err);
TARE_API tare_status tare_backend_config_read(const char *path, tare_backend_config **out,
                                              tare_error *err);
TARE_API tare_status tare_backend_config_to_json(const tare_backend_config *config, char **out,
                                                 tare_error *err);

/// What can be written down, but cannot be meant. Strings are lent for the call.
typedef struct tare_backend_finding {
    uint32_t struct_size;
    const char *path;    // of the place: "$.configs[3].dtype_configs[0].input_dtype"
    const char *pattern; // "(torch.nn.Conv2d, torch.nn.ReLU)"
    const char *problem; // a sentence
    const char *remedy;  // what to do, as an order
    /// true: nothing can satisfy it, so that no pass takes the config (tare_backend_config_check).
    /// false: it has no effect, or not the one that was meant.
    bool is_error;
} tare_backend_finding;
/// Receives one finding; TARE_OK to go on.
typedef tare_status (*tare_backend_finding_visitor)(void *user, const tare_backend_finding *finding,
                                                    tare_error *err);
/// Looks through a config: patterns that no operator or class has, or that an earlier one always
/// takes; a fused module that nothing makes; a root without its reference module; constraints that
/// contradict each other or the dtype. context: the user's classes, which patterns may name; NULL:
/// built-in ones only. *count: the findings.
TARE_API tare_status tare_backend_config_lint(const tare_backend_config *config,
                                              const tare_context *context,
                                              tare_backend_finding_visitor visit, void *user,
                                              size_t *count, tare_error *err);
/// Writes a listing for people, a block per pattern: dtypes, observation, modules, fuser.
TARE_API tare_status tare_backend_config_show(const tare_backend_config *config, tare_writer write,
                                              void *user, tare_error *err);

/// Writes a Markdown page with a table, a row per pattern and dtype config.
TARE_API tare_status tare_backend_config_table(const tare_backend_config *config, tare_writer write,
                                               void *user, tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
