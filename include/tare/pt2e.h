// SPDX-License-Identifier: Apache-2.0
/// Quantization of exported programs, as in torchao's pt2e: a quantizer annotates the nodes and
/// edges of the graph with specs, which say how to quantize each tensor. This header has the specs,
/// the annotations, the interface of quantizers, and the flow.
#ifndef TARE_PT2E_H
#define TARE_PT2E_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tare/graph.h"
#include "tare/module.h"
#include "tare/observer.h"
#include "tare/quantize.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- specs ---

/// How to quantize one tensor. Immutable and reference counted; NULL is torch's None.
typedef struct tare_qspec tare_qspec;

typedef enum tare_qspec_kind {
    TARE_QSPEC_PLAIN = 1,   // QuantizationSpec: with an observer of its own
    TARE_QSPEC_FIXED = 2,   // FixedQParamsQuantizationSpec: with a known scale and zero point
    TARE_QSPEC_SHARED = 3,  // SharedQuantizationSpec: with the observer of another edge or node
    TARE_QSPEC_DERIVED = 4, // DerivedQuantizationSpec: computed from other observers' parameters
} tare_qspec_kind;

/// An edge: the value that `node` reads from `from`. With `from` NULL: the output of `node`.
typedef struct tare_edge {
    const tare_node *from;
    const tare_node *node;
} tare_edge;

/// An edge by the names of its nodes, as specs store it.
typedef struct tare_edge_name {
    const char *from; // NULL: the output of `node`
    const char *node;
} tare_edge_name;

/// The fields of torch's specs. A field is None if it is UNSET or NULL or its has_ field is false.
typedef struct tare_qspec_fields {
    uint32_t struct_size;
    tare_dtype dtype; // required, except for shared specs
    // Required for plain specs: an observer, or a fake quantizer for QAT. A class of the user's own
    // gets those of the fields below that are among its arguments; the observer that it makes must
    // agree with all fields.
    tare_observer_spec *observer;
    bool has_quant_min, has_quant_max;
    int64_t quant_min, quant_max;
    tare_qscheme qscheme;
    bool has_channel_axis;
    int64_t channel_axis;
    bool is_dynamic;
    double scale; // scale and zero_point: of fixed specs
    int64_t zero_point;
} tare_qspec_fields;

/// The parameters that an observer proposes, lent for the call. count: 1, or the number of
/// channels.
typedef struct tare_qparams_view {
    uint32_t struct_size;
    int64_t count;
    const double *scale, *zero_point; // [count]
    // [count]: the range that the observer has seen; NULL if it keeps none (fixed or derived
    // parameters) or has seen no data.
    const double *min_val, *max_val;
} tare_qparams_view;

/// Computes parameters from those of other observers, in the order of `derived_from`, and passes
/// them to one call of sink(sink_user, ..).
typedef struct tare_derive_rule {
    uint32_t struct_size;
    const char *name; // its name in files; copied
    tare_status (*derive)(void *user, const tare_qparams_view *sources, size_t count,
                          tare_qparams_sink sink, void *sink_user, tare_error *err);
    void *user; // lent; must outlive the specs with this rule and models prepared with them
    tare_dtype zero_point_dtype; // of per-channel buffers of zero points; UNSET: int32
} tare_derive_rule;

/// The rule of a bias: scale[c] = scale of source 0 (the activation) x scale[c] of source 1 (the
/// weight), zero point 0. Files name it "_derive_bias_qparams_from_act_and_weight_qparams", as
/// torchao does. Static storage.
TARE_API const tare_derive_rule *tare_derive_bias_rule(void);
/// Registers a rule under its name, so that model files read with this context may use it. The rule
/// and its name are copied; its `user` must outlive the context and these models.
/// TARE_INVALID_ARGUMENT if the name is taken, or if the name or `derive` is NULL.
TARE_API tare_status tare_context_add_derive_rule(tare_context *context,
                                                  const tare_derive_rule *rule, tare_error *err);

/// Creates a plain spec (torch's QuantizationSpec). The checks are torch's: TARE_INVALID_ARGUMENT
/// with torch's sentence for quant_min > quant_max ("quant_min 3 must be <= quant_max 1.") and a
/// negative axis ("Ch_axis is < 0."); also for fields that this kind does not have and for a failed
/// observer spec. The spec takes its own reference of the observer. The caller releases *out.
TARE_API tare_status tare_qspec_create(const tare_qspec_fields *fields, tare_qspec **out,
                                       tare_error *err);
/// Creates a spec with a known scale and zero point (FixedQParamsQuantizationSpec). Errors as for
/// tare_qspec_create.
TARE_API tare_status tare_qspec_create_fixed(const tare_qspec_fields *fields, tare_qspec **out,
                                             tare_error *err);
/// Creates a spec that uses the observer of another edge or node (SharedQuantizationSpec). The
/// names of the nodes are copied. TARE_INVALID_ARGUMENT for an edge without a node.
TARE_API tare_status tare_qspec_create_shared(tare_edge target, tare_qspec **out, tare_error *err);
/// Creates a spec whose parameters a rule computes from those of `count` other edges
/// (DerivedQuantizationSpec). The rule and the names of the nodes are copied. Errors as for
/// tare_qspec_create, and for an edge without a node.
TARE_API tare_status tare_qspec_create_derived(const tare_qspec_fields *fields,
                                               const tare_edge *derived_from, size_t count,
                                               const tare_derive_rule *rule, tare_qspec **out,
                                               tare_error *err);
/// Adds a reference and returns its argument. NULL is allowed.
TARE_API tare_qspec *tare_qspec_retain(tare_qspec *spec);
/// Drops a reference; the last one frees the spec. NULL is allowed.
TARE_API void tare_qspec_release(tare_qspec *spec);

/// Which of torch's four specs it is.
TARE_API tare_qspec_kind tare_qspec_get_kind(const tare_qspec *spec);
/// Copies the fields to *out. The observer in it is lent by the spec.
TARE_API void tare_qspec_get_fields(const tare_qspec *spec, tare_qspec_fields *out);
/// Reads the index-th edge that the spec refers to: a shared spec has one, a derived spec those of
/// derived_from, other specs none. Names are lent by the spec. False past the end.
TARE_API bool tare_qspec_target(const tare_qspec *spec, size_t index, tare_edge_name *out);
/// The rule of a derived spec, lent by the spec; NULL for other specs.
TARE_API const tare_derive_rule *tare_qspec_rule(const tare_qspec *spec);
/// Have both the same kind, fields, edges and rule? NULL equals only NULL.
TARE_API bool tare_qspec_equal(const tare_qspec *a, const tare_qspec *b);

// --- a quantizer's settings ---

/// torchao's QuantizationConfig; NULL is None. The caller owns the specs.
typedef struct tare_quantization_config {
    uint32_t struct_size;
    tare_qspec *input_activation, *output_activation, *weight, *bias;
    bool is_qat;
} tare_quantization_config;

/// The spec of input activations, lent by the config (torchao's get_input_act_qspec); *out is NULL
/// for a NULL config or field. TARE_INVALID_ARGUMENT, with *out NULL, for specs that are not per
/// tensor.
TARE_API tare_status tare_input_act_qspec(const tare_quantization_config *config, tare_qspec **out,
                                          tare_error *err);
/// The spec of output activations, lent by the config (torchao's get_output_act_qspec). Results as
/// for tare_input_act_qspec.
TARE_API tare_status tare_output_act_qspec(const tare_quantization_config *config, tare_qspec **out,
                                           tare_error *err);
/// The spec of weights, lent by the config (torchao's get_weight_qspec); *out is NULL for a NULL
/// config or field. TARE_INVALID_ARGUMENT, with *out NULL, for specs that are not symmetric.
TARE_API tare_status tare_weight_qspec(const tare_quantization_config *config, tare_qspec **out,
                                       tare_error *err);
/// The spec of biases, lent by the config (torchao's get_bias_qspec); *out is NULL for a NULL
/// config or field. TARE_INVALID_ARGUMENT, with *out NULL, for dtypes other than float32.
TARE_API tare_status tare_bias_qspec(const tare_quantization_config *config, tare_qspec **out,
                                     tare_error *err);

// --- annotations ---

/// The annotation of one node: a spec for each input, in order, and one for its output. The model
/// owns it; clones and passes keep it.
typedef struct tare_annotation tare_annotation;

/// The annotation of a node, lent until it changes; NULL: none.
TARE_API const tare_annotation *tare_model_annotation(const tare_model *model,
                                                      const tare_node *node);
/// Sets the spec of the value that `node` reads from `input`. The annotation is created if there is
/// none; setting an entry again keeps its position. The model takes its own reference of the spec.
/// TARE_INVALID_ARGUMENT for nodes of another model, and for an `input` that the node does not
/// read.
TARE_API tare_status tare_model_annotate_input(tare_model *model, const tare_node *node,
                                               const tare_node *input, tare_qspec *spec,
                                               tare_error *err);
/// Sets the spec of the node's output. The annotation is created if there is none. The model takes
/// its own reference of the spec; NULL is None. TARE_INVALID_ARGUMENT for nodes of another model.
TARE_API tare_status tare_model_annotate_output(tare_model *model, const tare_node *node,
                                                tare_qspec *spec, tare_error *err);
/// Sets whether the node's input edges may share the observers of other readers with equal specs
/// (torchao's allow_implicit_sharing). New annotations allow it. TARE_INVALID_ARGUMENT for nodes of
/// another model.
TARE_API tare_status tare_model_annotate_sharing(tare_model *model, const tare_node *node,
                                                 bool allows_implicit_sharing, tare_error *err);
/// Sets the mark `_annotated`, by which quantizers recognize nodes that are annotated already. The
/// annotation is created if there is none. TARE_INVALID_ARGUMENT for nodes of another model.
TARE_API tare_status tare_model_mark_annotated(tare_model *model, const tare_node *node,
                                               bool is_annotated, tare_error *err);
/// Records the name of the quantizer's rule that annotates the node ("conv_relu"), which
/// tare_model_explain shows. The name is copied; NULL keeps the earlier one. TARE_INVALID_ARGUMENT
/// for nodes of another model.
TARE_API tare_status tare_model_annotate_rule(tare_model *model, const tare_node *node,
                                              const char *rule, tare_error *err);
/// Removes the annotation of a node, if it has one.
TARE_API void tare_model_clear_annotation(tare_model *model, const tare_node *node);
/// Removes all annotations of the model.
TARE_API void tare_model_clear_annotations(tare_model *model);

/// The number of input entries.
TARE_API size_t tare_annotation_input_count(const tare_annotation *annotation);
/// The index-th input entry, in the order of setting: returns the input's name and sets *spec (may
/// be NULL), both lent. Past the end both are NULL.
TARE_API const char *tare_annotation_input_at(const tare_annotation *annotation, size_t index,
                                              tare_qspec **spec);
/// Looks up the entry of an input and sets *spec, lent (NULL if there is no entry). False if there
/// is none.
TARE_API bool tare_annotation_input(const tare_annotation *annotation, const tare_node *input,
                                    tare_qspec **spec);
/// The spec of the output, lent; NULL is None.
TARE_API tare_qspec *tare_annotation_output(const tare_annotation *annotation);
/// The value that tare_model_annotate_sharing set; true by default.
TARE_API bool tare_annotation_allows_sharing(const tare_annotation *annotation);
/// The value that tare_model_mark_annotated set. False for NULL.
TARE_API bool tare_annotation_is_marked(const tare_annotation *annotation);
/// Has the annotation an input entry or a spec of the output (torchao's is_valid_annotation)? False
/// for NULL.
TARE_API bool tare_annotation_is_valid(const tare_annotation *annotation);

/// Writes all annotations as JSON: {NODE: {"input_qspec_map": [[INPUT, SPEC], ..], "output_qspec":
/// SPEC, "allow_implicit_sharing": .., "_annotated": ..}, ..}. The caller frees *out with
/// tare_string_free.
TARE_API tare_status tare_model_annotations_to_json(const tare_model *model, char **out,
                                                    tare_error *err);
/// Replaces the model's annotations by those in JSON. rules: [rule_count], the rules that
/// derive_qparams_fn may name besides the bias rule; NULL: none. Errors name the JSON path.
/// TARE_NOT_FOUND for nodes that the model does not have.
TARE_API tare_status tare_model_annotations_from_json(tare_model *model, const char *json,
                                                      size_t size, const tare_derive_rule *rules,
                                                      size_t rule_count, tare_error *err);

// --- metadata of nodes, from the exporter ---

/// The dtype and shape of a value in an exported program.
typedef struct tare_value_info {
    tare_dtype dtype;
    size_t rank;
    const int64_t *shape; // [rank]; -1: a symbolic size
} tare_value_info;

/// An entry of a node's stacks: what the node came from.
typedef struct tare_source_info {
    const char *name; // in module stacks: the module's path, "" at the top; else the call's name
    const char *function; // in module stacks: the module's class; else the called function
} tare_source_info;

/// A node's metadata, parsed.
typedef struct tare_node_meta {
    uint32_t struct_size;
    size_t module_count; // nn_module_stack, outermost first
    const tare_source_info *modules;
    size_t source_count; // source_fn_stack, outermost first
    const tare_source_info *sources;
    size_t value_count; // val: 1, or the number of tensors in a tuple
    const tare_value_info *values;
    bool has_value, value_is_tuple;
    // torch_fn of non-strict exports: the call's name ("add_1") and its function
    // ("method_descriptor.add"); NULL: not in the file.
    const char *torch_call, *torch_function;
} tare_node_meta;
/// Parses the metadata of a node; a node without metadata gives an empty one. TARE_MALFORMED_FILE,
/// with the node's name, for metadata in another form. The caller destroys *out.
TARE_API tare_status tare_node_meta_read(const tare_node *node, tare_node_meta **out,
                                         tare_error *err);
/// Frees metadata and the strings in it. NULL is allowed.
TARE_API void tare_node_meta_destroy(tare_node_meta *meta);
/// Was the node traced inside the module at path `name`, or inside a module within it (torchao's
/// get_module_name_filter)? A leading "L['self']." in recorded paths is ignored. Nodes without a
/// module stack, such as reads of weights, are in no module.
TARE_API bool tare_node_meta_in_module(const tare_node_meta *meta, const char *name);
/// Was the node traced inside a module of this class ("torch.nn.Linear", in any of its spellings)?
TARE_API bool tare_node_meta_in_class(const tare_node_meta *meta, const char *class_name);

// --- quantizers ---

/// The annotated edges and nodes with their observers, before these are inserted.
typedef struct tare_observer_map tare_observer_map;
/// The number of annotated edges and nodes.
TARE_API size_t tare_observer_map_count(const tare_observer_map *map);
/// Reads the index-th edge or node: its names and its observer (NULL: none), all lent by the map.
/// Edges that share an observer have the same one. False past the end.
TARE_API bool tare_observer_map_at(const tare_observer_map *map, size_t index, tare_edge_name *edge,
                                   const tare_module **observer);
/// Replaces the observer of the index-th edge, and of all edges that share it, by a new one made
/// from this spec. TARE_INVALID_ARGUMENT past the end; also fails with the errors of the spec.
TARE_API tare_status tare_observer_map_replace(tare_observer_map *map, size_t index,
                                               const tare_observer_spec *spec, tare_error *err);

/// The functions of a quantizer. All but annotate may be NULL.
typedef struct tare_quantizer_class {
    uint32_t struct_size;
    const char *name; // "XNNPACKQuantizer"; copied
    /// Changes the graph before it is annotated.
    tare_status (*transform_for_annotation)(void *self, tare_model *model, tare_error *err);
    /// Annotates the nodes to quantize.
    tare_status (*annotate)(void *self, tare_model *model, tare_error *err);
    /// Checks the annotated model; a failure ends prepare.
    tare_status (*validate)(void *self, const tare_model *model, tare_error *err);
    /// Called when all observers are made, before they are inserted; may replace them.
    tare_status (*prepare_obs_or_fq_callback)(void *self, const tare_model *model,
                                              tare_observer_map *map, tare_error *err);
    void (*destroy)(void *self);
} tare_quantizer_class;

typedef struct tare_quantizer tare_quantizer;
/// Creates a quantizer from a class, which is copied. `self` is passed to every function; on
/// success the quantizer takes it over and passes it to destroy at its end. TARE_INVALID_ARGUMENT
/// if the name or annotate is missing. The caller destroys *out.
TARE_API tare_status tare_quantizer_create(const tare_quantizer_class *quantizer_class, void *self,
                                           tare_quantizer **out, tare_error *err);
/// Frees a quantizer and calls the class's destroy. NULL is allowed.
TARE_API void tare_quantizer_destroy(tare_quantizer *quantizer);
/// The name of the quantizer's class, lent by the quantizer.
TARE_API const char *tare_quantizer_name(const tare_quantizer *quantizer);
/// Calls transform_for_annotation, as prepare does; does nothing where the class has none.
TARE_API tare_status tare_quantizer_transform(const tare_quantizer *quantizer, tare_model *model,
                                              tare_error *err);
/// Calls annotate, then validate, as prepare does. After a failure the annotations that were made
/// stay.
TARE_API tare_status tare_quantizer_annotate(const tare_quantizer *quantizer, tare_model *model,
                                             tare_error *err);

// --- the flow ---

/// Is the model a program of torch.export: was it read from one, or does its graph call aten
/// operators? Quantizers annotate such models.
TARE_API bool tare_model_is_exported(const tare_model *model);
/// Was the model prepared by a quantizer? tare_convert_pt2e converts it.
TARE_API bool tare_model_is_prepared_pt2e(const tare_model *model);

/// Folds batch norms, calls the quantizer to transform and annotate, and inserts observers; `model`
/// is not changed. tare_calibrate and tare_calibrate_data calibrate the result. TARE_NOT_FOUND and
/// TARE_INVALID_ARGUMENT name the edges: for specs on edges that do not exist, for shared specs
/// whose target is not annotated or that only refer to each other, and for derived specs whose
/// sources have no observer. The caller destroys *out.
TARE_API tare_status tare_prepare_pt2e(const tare_model *model, const tare_quantizer *quantizer,
                                       tare_model **out, tare_error *err);
/// As tare_prepare_pt2e, for quantization-aware training: a convolution and its batch norm become
/// torch's training pattern, which scales the weight before the fake quantizer.
TARE_API tare_status tare_prepare_qat_pt2e(const tare_model *model, const tare_quantizer *quantizer,
                                           tare_model **out, tare_error *err);

/// Zero means the default everywhere; struct_size as in tare/status.h.
typedef struct tare_convert_pt2e_options {
    uint32_t struct_size;
    bool keeps_quantize; // weights stay float, followed by quantize (fold_quantize=False)
    bool is_lenient;     // an observer without data gives scale 1 and a warning, not an error
    /// Writes int8 operators as arithmetic on integers, as backends compute them, so that a backend
    /// can be compared with the program.
    bool use_reference_representation;
    /// Nodes to leave float, in a graph that an operator of control flow runs as GRAPH/NODE;
    /// observers that stand only between such nodes are removed.
    /// TARE_NOT_FOUND for a name that the program does not have, TARE_INVALID_ARGUMENT for a node
    /// that stays float anyway.
    const tare_float_choice *float_choices;
    size_t float_choice_count;
} tare_convert_pt2e_options;
/// Replaces observers by quantize and dequantize operators with literal parameters, and weights by
/// quantized constants; `prepared` is not changed. Observers of weights need no calibration.
/// options may be NULL. TARE_INVALID_ARGUMENT for observers that have seen no data, unless
/// is_lenient; but a graph of control flow that calibration did not run stays float, with a warning
/// in the record. The caller destroys *out.
TARE_API tare_status tare_convert_pt2e(const tare_model *prepared,
                                       const tare_convert_pt2e_options *options, tare_model **out,
                                       tare_error *err);

/// Zero means the default everywhere; struct_size as in tare/status.h.
typedef struct tare_lower_pt2e_options {
    uint32_t struct_size;
    /// The engine whose rounding rule the integer layers follow. The default rounds as the quantize
    /// operators do: it scales first and then adds the zero point (rule F). A layer whose bias is
    /// int32, with the scale of activation x weight, follows rule Q, which adds the zero point to
    /// the exact sum. A residual is added before rounding.
    tare_engine engine;
} tare_lower_pt2e_options;
/// Lowers a converted program to integers, as tare_convert_fx does; `converted` is not changed.
/// quantize and dequantize of int8 tensors become those of quantized tensors, and the operators
/// between them become integer functions (torch.ops.quantized.*) with packed weights. The integers
/// equal those of the converted program, except that they may differ by one where the real result
/// lies halfway between two integers within the precision of float32. The record says which
/// operators stay float, and why. options may be NULL. TARE_INVALID_ARGUMENT for models that are
/// not converted. The caller destroys *out.
TARE_API tare_status tare_lower_pt2e(const tare_model *converted,
                                     const tare_lower_pt2e_options *options, tare_model **out,
                                     tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
