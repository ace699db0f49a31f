// SPDX-License-Identifier: Apache-2.0
/// BackendConfig: the operator patterns that a backend supports, with their dtypes, constraints and
/// fusions. Fusing, preparing and converting follow it.
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

/// Which observer watches a pattern's output: one of its own, its input's, or none.
typedef enum tare_observation_type {
    TARE_OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT = 0,
    TARE_OUTPUT_SHARE_OBSERVER_WITH_INPUT = 1,
    TARE_INPUT_OUTPUT_NOT_OBSERVED = 2,
} tare_observation_type;

/// Bits of tare_dtype_constraints.set: the fields that are set. A field whose bit is not set is
/// unset, whatever its value.
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

/// torch's DTypeWithConstraints, and after its fields further constraints that accelerators need.
/// dtype UNSET: the config says nothing about this tensor.
typedef struct tare_dtype_constraints {
    tare_dtype dtype;
    uint32_t set;
    double quant_min_lower_bound, quant_max_upper_bound; // the observer's range must lie inside
    double scale_min_lower_bound;                        // the observer's eps must be at least this
    double scale_max_upper_bound; // convert fails for a larger scale (torch stores this and ignores
                                  // it)
    double scale_exact_match;     // for operators with fixed parameters: the scale must be this
    int64_t zero_point_exact_match;
    uint32_t allowed_qschemes; // TARE_QSCHEME_BITs; prepare refuses a qconfig with another scheme
    int64_t channel_axis; // of per-channel schemes; prepare refuses a qconfig with another axis
    int64_t zero_point_lower_bound,
        zero_point_upper_bound; // convert fails for a zero point outside
    bool scale_power_of_two;    // convert rounds scales up to the next power of two
} tare_dtype_constraints;

/// Sets quant_min_lower_bound and quant_max_upper_bound and their bits in `set`. A field that is
/// assigned without its bit has no effect; tare_backend_config_lint reports that.
TARE_API void tare_dtype_constraints_set_quant_range(tare_dtype_constraints *c, double least,
                                                     double greatest);
/// As tare_dtype_constraints_set_quant_range, for scale_min_lower_bound.
TARE_API void tare_dtype_constraints_set_scale_min(tare_dtype_constraints *c, double least);
/// As tare_dtype_constraints_set_quant_range, for scale_max_upper_bound.
TARE_API void tare_dtype_constraints_set_scale_max(tare_dtype_constraints *c, double greatest);
/// As tare_dtype_constraints_set_quant_range, for scale_exact_match and zero_point_exact_match.
TARE_API void tare_dtype_constraints_set_exact(tare_dtype_constraints *c, double scale,
                                               int64_t zero_point);
/// As tare_dtype_constraints_set_quant_range, for allowed_qschemes: TARE_QSCHEME_BIT(..) | ..
TARE_API void tare_dtype_constraints_set_qschemes(tare_dtype_constraints *c, uint32_t allowed);
/// As tare_dtype_constraints_set_quant_range, for channel_axis.
TARE_API void tare_dtype_constraints_set_channel_axis(tare_dtype_constraints *c, int64_t axis);
/// As tare_dtype_constraints_set_quant_range, for zero_point_lower_bound and
/// zero_point_upper_bound.
TARE_API void tare_dtype_constraints_set_zero_point_range(tare_dtype_constraints *c, int64_t least,
                                                          int64_t greatest);
/// As tare_dtype_constraints_set_quant_range, for scale_power_of_two.
TARE_API void tare_dtype_constraints_set_power_of_two(tare_dtype_constraints *c);

/// torch's DTypeConfig. is_dynamic: -1 unset (counts as false), 0, 1.
typedef struct tare_dtype_config {
    tare_dtype_constraints input, output, weight;
    tare_dtype bias;
    int is_dynamic;
} tare_dtype_config;
/// A dtype config with all fields unset; is_dynamic is -1.
TARE_API tare_dtype_config tare_dtype_config_init(void);

/// A list of pattern configs under a name. Setters return no status: the config keeps their first
/// error and reports it where it is used, or in tare_backend_config_check. Setters accept NULL, the
/// result of a failed create, and then do nothing. They copy names and dtype configs.
typedef struct tare_backend_config tare_backend_config;
typedef struct tare_pattern_config tare_pattern_config; // torch's BackendPatternConfig

/// A match of a pattern, as callbacks see it; lent for the call. Its elements are nodes, nested
/// matches, or constants that a wildcard matched.
typedef struct tare_match tare_match;
/// The number of direct elements of a match, the operator that runs last first. 0 for NULL.
TARE_API size_t tare_match_count(const tare_match *match);
/// The i-th element as a nested match (a tuple of the pattern); NULL if it is a node, and past the
/// end.
TARE_API const tare_match *tare_match_nested(const tare_match *match, size_t i);
/// A node of a match; opaque.
typedef struct tare_match_node tare_match_node;
/// The i-th element as a node, lent for the call; NULL if it is nested or a constant, and past the
/// end.
TARE_API const tare_match_node *tare_match_node_at(const tare_match *match, size_t i);
/// The node's name, unique in its graph; NULL for NULL.
TARE_API const char *tare_match_node_name(const tare_match_node *node);
/// The node that is the i-th positional argument, lent for the call; NULL if the argument is not a
/// node, and past the end.
TARE_API const tare_match_node *tare_match_node_input(const tare_match_node *node, size_t i);

/// Returns the root of a match, the node with the weight. NULL means that there is none; the pass
/// then fails.
typedef const tare_match_node *(*tare_root_node_getter)(void *user, const tare_match *match);
/// Writes up to `capacity` nodes to `out`, which are appended to the root's inputs, and returns
/// their number.
typedef size_t (*tare_extra_inputs_getter)(void *user, const tare_match *match,
                                           const tare_match_node **out, size_t capacity);

/// Fuses modules[0..count), which are lent for the call: in data-flow order for simple patterns, in
/// pattern order for complex ones. Where an element of the pattern is a function, modules[i] is
/// NULL and function_names[i] is its name; for a wildcard both are NULL. *out: a new module
/// (tare_module_create), which the caller of the fuser takes over.
typedef tare_status (*tare_fuser)(void *user, bool is_qat, const tare_module *const *modules,
                                  const char *const *function_names, size_t count,
                                  tare_module **out, tare_error *err);

/// Creates a config without patterns. name is copied; NULL: "". Returns NULL when memory is
/// exhausted. The caller destroys it.
TARE_API tare_backend_config *tare_backend_config_create(const char *name);
/// Frees a config and its pattern configs. NULL is allowed.
TARE_API void tare_backend_config_destroy(tare_backend_config *config);
/// Copies a config, including the error that it keeps. The caller destroys *out.
TARE_API tare_status tare_backend_config_clone(const tare_backend_config *config,
                                               tare_backend_config **out, tare_error *err);
/// Sets the name (copied; NULL: "").
TARE_API void tare_backend_config_set_name(tare_backend_config *config, const char *name);
/// The name, lent until it is set again.
TARE_API const char *tare_backend_config_name(const tare_backend_config *config);

/// Creates an empty pattern config. Returns NULL when memory is exhausted. The caller gives it to
/// tare_backend_config_set, or destroys it.
TARE_API tare_pattern_config *tare_pattern_config_create(void);
/// Frees a pattern config that no backend config has taken. NULL is allowed.
TARE_API void tare_pattern_config_destroy(tare_pattern_config *pattern);
/// Adds a pattern config and takes it over, even where the call fails and keeps an error. It
/// replaces a pattern config with an equal pattern (compared in complex form) and keeps its
/// position.
TARE_API void tare_backend_config_set(tare_backend_config *config, tare_pattern_config *pattern);
/// Creates a pattern config, sets its pattern (as tare_pattern_config_set_pattern) and adds it. The
/// result is lent by the config, for setters to fill in; NULL if it could not be added.
TARE_API tare_pattern_config *tare_backend_config_add(tare_backend_config *config, const char *a,
                                                      const char *b, const char *c);
/// Returns the first error of a setter, or else the first error that tare_backend_config_lint
/// finds. Every pass checks its config this way. TARE_OUT_OF_MEMORY for NULL, the result of a
/// failed create.
TARE_API tare_status tare_backend_config_check(const tare_backend_config *config, tare_error *err);
/// The number of pattern configs.
TARE_API size_t tare_backend_config_count(const tare_backend_config *config);
/// The index-th pattern config, in the order of adding, lent until the next call that adds one;
/// NULL past the end.
TARE_API const tare_pattern_config *tare_backend_config_at(const tare_backend_config *config,
                                                           size_t index);
/// As tare_backend_config_at, for setters to change: for example, to give a built-in config another
/// fuser. Its pattern cannot be changed, because it is its key in the backend config; setting it
/// keeps an error. NULL past the end, and for NULL.
TARE_API tare_pattern_config *tare_backend_config_mutable_at(tare_backend_config *config,
                                                             size_t index);

/// The operators in forward order: a, then b, then c; NULL ends the list. Each is a module class, a
/// function or a bare method name.
TARE_API void tare_pattern_config_set_pattern(tare_pattern_config *pattern, const char *a,
                                              const char *b, const char *c);
/// The pattern in torch's reverse nested form, as JSON: ["torch.nn.ReLU", ["operator.add",
/// "MatchAllNode", ["torch.nn.BatchNorm2d", ..]]].
TARE_API void tare_pattern_config_set_pattern_complex(tare_pattern_config *pattern,
                                                      const char *json);
/// How the output is observed. The default is TARE_OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT, as in
/// torch.
TARE_API void tare_pattern_config_set_observation_type(tare_pattern_config *pattern,
                                                       tare_observation_type type);
/// Adds a combination of dtypes that the pattern supports (copied). A qconfig must fit one of them,
/// or the pattern stays float.
TARE_API void tare_pattern_config_add_dtype_config(tare_pattern_config *pattern,
                                                   const tare_dtype_config *dtype_config);
/// Replaces all dtype configs by copies of these.
TARE_API void tare_pattern_config_set_dtype_configs(tare_pattern_config *pattern,
                                                    const tare_dtype_config *dtype_configs,
                                                    size_t count);
/// The qualified name of the float module class that holds the weight; NULL: unset.
TARE_API void tare_pattern_config_set_root_module(tare_pattern_config *pattern, const char *type);
/// The module class that replaces the root for quantization-aware training; NULL: unset.
TARE_API void tare_pattern_config_set_qat_module(tare_pattern_config *pattern, const char *type);
/// The reference module class that convert makes from the root; NULL: unset.
TARE_API void tare_pattern_config_set_reference_quantized_module(tare_pattern_config *pattern,
                                                                 const char *type);
/// The module class that the fuser makes; NULL: unset.
TARE_API void tare_pattern_config_set_fused_module(tare_pattern_config *pattern, const char *type);
/// A built-in fuser by its name in config files
/// ("torch.ao.quantization.fuser_method_mappings.fuse_conv_bn").
TARE_API void tare_pattern_config_set_fuser_method(tare_pattern_config *pattern, const char *name);
/// A fuser of the user's own. `user` is passed to each call and must outlive the config and its
/// clones.
TARE_API void tare_pattern_config_set_fuser_callback(tare_pattern_config *pattern, tare_fuser fuser,
                                                     void *user);
/// A function that finds the root node of a match. `user` is passed to each call and must outlive
/// the config and its clones. Without one, the root is the operator of the pattern that runs first.
TARE_API void tare_pattern_config_set_root_node_getter(tare_pattern_config *pattern,
                                                       tare_root_node_getter getter, void *user);
/// A function that finds inputs to append to the root's. `user` is passed to each call and must
/// outlive the config and its clones.
TARE_API void tare_pattern_config_set_extra_inputs_getter(tare_pattern_config *pattern,
                                                          tare_extra_inputs_getter getter,
                                                          void *user);
/// The observation type of operators whose root has this number of tensor arguments. Where any is
/// set, a number that is not listed is an error of prepare.
TARE_API void tare_pattern_config_set_num_tensor_args_to_observation_type(
    tare_pattern_config *pattern, int64_t tensor_arg_count, tare_observation_type type);
/// The position of an input among the operator's arguments. input: "weight" or "bias" (or "input",
/// as torch's tensorrt config has it).
TARE_API void tare_pattern_config_set_input_type_to_index(tare_pattern_config *pattern,
                                                          const char *input, int64_t index);

// --- reading a pattern config, whether it was built by setters, read from a file or is built in
// ---

/// The pattern as JSON: a name, a list in the order in which the operators run, or torch's reverse
/// nested form (*is_complex), as it was set; "null" before. The caller frees *out with
/// tare_string_free. is_complex may be NULL.
TARE_API tare_status tare_pattern_config_get_pattern(const tare_pattern_config *pattern, char **out,
                                                     bool *is_complex, tare_error *err);
/// How the output is observed.
TARE_API tare_observation_type
tare_pattern_config_get_observation_type(const tare_pattern_config *pattern);
/// The number of dtype configs.
TARE_API size_t tare_pattern_config_dtype_config_count(const tare_pattern_config *pattern);
/// The index-th dtype config, lent until dtype configs are added or replaced; NULL past the end.
TARE_API const tare_dtype_config *
tare_pattern_config_dtype_config_at(const tare_pattern_config *pattern, size_t index);
/// The root module as it was spelled, lent until it is set again; NULL: unset. The same holds for
/// the getters below.
TARE_API const char *tare_pattern_config_get_root_module(const tare_pattern_config *pattern);
/// As tare_pattern_config_get_root_module, for the training module.
TARE_API const char *tare_pattern_config_get_qat_module(const tare_pattern_config *pattern);
/// As tare_pattern_config_get_root_module, for the reference module.
TARE_API const char *
tare_pattern_config_get_reference_quantized_module(const tare_pattern_config *pattern);
/// As tare_pattern_config_get_root_module, for the fused module.
TARE_API const char *tare_pattern_config_get_fused_module(const tare_pattern_config *pattern);
/// As tare_pattern_config_get_root_module, for the fuser's name. NULL also for a callback that has
/// no name.
TARE_API const char *tare_pattern_config_get_fuser_method(const tare_pattern_config *pattern);
/// As tare_pattern_config_get_fuser_method, for the getter of root nodes.
TARE_API const char *tare_pattern_config_get_root_node_getter(const tare_pattern_config *pattern);
/// As tare_pattern_config_get_fuser_method, for the getter of extra inputs.
TARE_API const char *
tare_pattern_config_get_extra_inputs_getter(const tare_pattern_config *pattern);
/// The index-th entry of num_tensor_args_to_observation_type. False past the end.
TARE_API bool tare_pattern_config_tensor_arg_count_at(const tare_pattern_config *pattern,
                                                      size_t index, int64_t *tensor_arg_count,
                                                      tare_observation_type *type);
/// The index-th entry of input_type_to_index; *input has static storage. False past the end.
TARE_API bool tare_pattern_config_input_index_at(const tare_pattern_config *pattern, size_t entry,
                                                 const char **input, int64_t *index);

/// A new copy of a built-in config: "native", "fbgemm", "qnnpack", "x86", "onednn", "tensorrt",
/// "executorch", .. TARE_NOT_FOUND, with a suggestion, for other names. The caller destroys *out.
TARE_API tare_status tare_backend_config_builtin(const char *name, tare_backend_config **out,
                                                 tare_error *err);
/// The name of the index-th built-in config; NULL past the end. Static storage.
TARE_API const char *tare_backend_config_builtin_name_at(size_t index);

/// Functions of the user's own, registered under one name so that JSON files can refer to them.
/// Members that are not provided are NULL; at least one is provided.
typedef struct tare_backend_function {
    uint32_t struct_size;
    const char *name; // "my_backend.fuse_conv_relu"
    tare_fuser fuser;
    tare_root_node_getter root_node_getter;
    tare_extra_inputs_getter extra_inputs_getter;
    void *user; // passed to each call; must outlive the configs that name the functions
} tare_backend_function;
/// Registers functions for configs that are read with this context. The name is copied.
/// TARE_INVALID_ARGUMENT if the name is taken (by a built-in function, too) or if the name or all
/// functions are missing.
TARE_API tare_status tare_context_add_backend_function(tare_context *context,
                                                       const tare_backend_function *function,
                                                       tare_error *err);
/// As tare_backend_config_from_json; `fuser_method`, `root_node_getter` and `extra_inputs_getter`
/// may also name functions of the context (NULL: built-in ones only). tare_backend_config_to_json
/// writes these names. The config copies the functions and does not need the context afterwards.
TARE_API tare_status tare_backend_config_from_json_with(const tare_context *context,
                                                        const char *json, size_t size,
                                                        tare_backend_config **out, tare_error *err);
/// As tare_backend_config_from_json_with, from a file ("-": standard input). Errors also name the
/// file.
TARE_API tare_status tare_backend_config_read_with(const tare_context *context, const char *path,
                                                   tare_backend_config **out, tare_error *err);

/// Parses a config in the form of torch's to_dict, `size` bytes of JSON. TARE_MALFORMED_FILE, with
/// the JSON path, for unknown keys and wrong values. The caller destroys *out.
TARE_API tare_status tare_backend_config_from_json(const char *json, size_t size,
                                                   tare_backend_config **out, tare_error *err);
/// As tare_backend_config_from_json, from a file ("-": standard input). Errors also name the file.
TARE_API tare_status tare_backend_config_read(const char *path, tare_backend_config **out,
                                              tare_error *err);
/// Writes the form that tare_backend_config_from_json reads. TARE_UNSUPPORTED for callbacks of the
/// user's own, which have no JSON form. The caller frees *out with tare_string_free.
TARE_API tare_status tare_backend_config_to_json(const tare_backend_config *config, char **out,
                                                 tare_error *err);

/// An entry that is valid but probably a mistake. Strings are lent for the call.
typedef struct tare_backend_finding {
    uint32_t struct_size;
    const char *path;    // the JSON path: "$.configs[3].dtype_configs[0].input_dtype"
    const char *pattern; // "(torch.nn.Conv2d, torch.nn.ReLU)"
    const char *problem; // a sentence
    const char *remedy;  // what to do, an imperative sentence
    /// true: nothing can satisfy the entry, so every pass refuses the config
    /// (tare_backend_config_check). false: the entry has no effect, or probably not the intended
    /// one.
    bool is_error;
} tare_backend_finding;
/// Receives one finding. Any status but TARE_OK ends the check, which returns it.
typedef tare_status (*tare_backend_finding_visitor)(void *user, const tare_backend_finding *finding,
                                                    tare_error *err);
/// Checks a config and reports each finding to `visit`: patterns that name no known operator or
/// class, or that an earlier pattern always matches; a fused module that no fuser makes; a root
/// without a reference module; constraints that contradict each other or the dtype. context: the
/// user's classes that patterns may name; NULL: built-in ones only. *count becomes the number of
/// findings.
TARE_API tare_status tare_backend_config_lint(const tare_backend_config *config,
                                              const tare_context *context,
                                              tare_backend_finding_visitor visit, void *user,
                                              size_t *count, tare_error *err);
/// Writes a readable listing, one block per pattern: dtypes, observation, modules, fuser. TARE_IO
/// if `write` returns false.
TARE_API tare_status tare_backend_config_show(const tare_backend_config *config, tare_writer write,
                                              void *user, tare_error *err);

/// Writes a Markdown page with a table, one row per pattern and dtype config. TARE_IO if `write`
/// returns false.
TARE_API tare_status tare_backend_config_table(const tare_backend_config *config, tare_writer write,
                                               void *user, tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
