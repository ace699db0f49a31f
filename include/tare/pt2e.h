// SPDX-License-Identifier: Apache-2.0
/// Quantization of exported programs, torchao's pt2e: a quantizer annotates nodes and edges of the
/// graph with how each tensor is to be quantized. Here are the specs, the annotations and what a
/// quantizer is.
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

/// How one tensor is to be quantized. Immutable and reference counted; NULL is torch's None.
typedef struct tare_qspec tare_qspec;

typedef enum tare_qspec_kind {
    TARE_QSPEC_PLAIN = 1,   // QuantizationSpec: by an observer of its own
    TARE_QSPEC_FIXED = 2,   // FixedQParamsQuantizationSpec: by a scale and zero point known before
    TARE_QSPEC_SHARED = 3,  // SharedQuantizationSpec: by another edge's or node's observer
    TARE_QSPEC_DERIVED = 4, // DerivedQuantizationSpec: computed from other observers' parameters
} tare_qspec_kind;

/// What `node` reads from `from`; with from NULL, what `node` itself gives.
typedef struct tare_edge {
    const tare_node *from;
    const tare_node *node;
} tare_edge;

/// The same by the nodes' names, as specs keep it: "" and NULL mean as above.
typedef struct tare_edge_name {
    const char *from; // NULL: the output of `node`
    const char *node;
} tare_edge_name;

/// The fields of torch's specs. A has_ that is false and what is UNSET or NULL are None.
typedef struct tare_qspec_fields {
    uint32_t struct_size;
    tare_dtype dtype; // needed but for shared specs
    // Plain specs need one: an observer, or a fake quantizer for QAT. A class of a context is told
    // those of these fields that are among its arguments; what it makes must agree with all of
    // them.
    tare_observer_spec *observer;
    bool has_quant_min, has_quant_max;
    int64_t quant_min, quant_max;
    tare_qscheme qscheme;
    bool has_channel_axis;
    int64_t channel_axis;
    bool is_dynamic;
    double scale; // fixed ones
    int64_t zero_point;
} tare_qspec_fields;

/// Parameters that an observer proposes, lent for the call. count: 1, or the channels.
typedef struct tare_qparams_view {
    uint32_t struct_size;
    int64_t count;
    const double *scale, *zero_point; // [count]
} tare_qparams_view;

/// Computes parameters from those of other observers, in the order of `derived_from`: one call of
/// sink(sink_user, ..).
typedef struct tare_derive_rule {
    uint32_t struct_size;
    const char *name; // how files name it; copied
    tare_status (*derive)(void *user, const tare_qparams_view *sources, size_t count,
                          tare_qparams_sink sink, void *sink_user, tare_error *err);
    void *user; // lent; lives as long as specs with this rule and models prepared by them
    tare_dtype zero_point_dtype; // of buffers of zero points, per channel; UNSET: int32
} tare_derive_rule;

/// scale[c] = scale of source 0 x scale[c] of source 1, zero point 0: a bias of an activation and
/// a weight. Named "_derive_bias_qparams_from_act_and_weight_qparams" in files, as in torchao.
TARE_API const tare_derive_rule *tare_derive_bias_rule(void);
/// Makes a rule known to files that name it: models read with this context may have specs derived
/// by it. The rule is copied, its name too; its user is lent for as long as the context and these
/// models live. TARE_INVALID_ARGUMENT if the name is taken, or it or derive is NULL.
TARE_API tare_status tare_context_add_derive_rule(tare_context *context,
                                                  const tare_derive_rule *rule, tare_error *err);

/// Checks as torch does: TARE_INVALID_ARGUMENT with its sentence for quant_min > quant_max
/// ("quant_min 3 must be <= quant_max 1.") and a negative axis ("Ch_axis is < 0."); for fields that
/// the kind does not have; for a failed observer spec. The observer is retained.
TARE_API tare_status tare_qspec_create(const tare_qspec_fields *fields, tare_qspec **out,
                                       tare_error *err);
TARE_API tare_status tare_qspec_create_fixed(const tare_qspec_fields *fields, tare_qspec **out,
                                             tare_error *err);
TARE_API tare_status tare_qspec_create_shared(tare_edge target, tare_qspec **out, tare_error *err);
TARE_API tare_status tare_qspec_create_derived(const tare_qspec_fields *fields,
                                               const tare_edge *derived_from, size_t count,
                                               const tare_derive_rule *rule, tare_qspec **out,
                                               tare_error *err);
/// Returns its argument with one more reference; NULL is fine for both.
TARE_API tare_qspec *tare_qspec_retain(tare_qspec *spec);
TARE_API void tare_qspec_release(tare_qspec *spec);

TARE_API tare_qspec_kind tare_qspec_get_kind(const tare_qspec *spec);
/// Its fields, lent.
TARE_API void tare_qspec_get_fields(const tare_qspec *spec, tare_qspec_fields *out);
/// The targets: one of a shared spec, derived_from of a derived one, none of others. False past the
/// end. Lent.
TARE_API bool tare_qspec_target(const tare_qspec *spec, size_t index, tare_edge_name *out);
/// The rule of a derived spec; NULL for others.
TARE_API const tare_derive_rule *tare_qspec_rule(const tare_qspec *spec);
/// Same kind and fields. NULL equals only NULL.
TARE_API bool tare_qspec_equal(const tare_qspec *a, const tare_qspec *b);

// --- a quantizer's settings ---

/// torchao's QuantizationConfig; NULL is None. The caller owns the specs.
typedef struct tare_quantization_config {
    uint32_t struct_size;
    tare_qspec *input_activation, *output_activation, *weight, *bias;
    bool is_qat;
} tare_quantization_config;

/// torchao's get_*_qspec: the field, lent, in *out; NULL for a NULL config or field.
/// TARE_INVALID_ARGUMENT for activations that are not per tensor, weights that are not symmetric
/// and biases that are not float32.
TARE_API tare_status tare_input_act_qspec(const tare_quantization_config *config, tare_qspec **out,
                                          tare_error *err);
TARE_API tare_status tare_output_act_qspec(const tare_quantization_config *config, tare_qspec **out,
                                           tare_error *err);
TARE_API tare_status tare_weight_qspec(const tare_quantization_config *config, tare_qspec **out,
                                       tare_error *err);
TARE_API tare_status tare_bias_qspec(const tare_quantization_config *config, tare_qspec **out,
                                     tare_error *err);

// --- annotations ---

/// What a quantizer says of one node: specs of its inputs in order, one of its output. They belong
/// to the model; clones and passes keep them.
typedef struct tare_annotation tare_annotation;

/// The annotation of a node, lent until it changes; NULL: none.
TARE_API const tare_annotation *tare_model_annotation(const tare_model *model,
                                                      const tare_node *node);
/// Specs of what the node reads from `input` and of what it gives. An entry that is set again keeps
/// its place. The annotation is made if there is none. The spec is retained. TARE_INVALID_ARGUMENT
/// for nodes of another model, and for an `input` that the node does not read.
TARE_API tare_status tare_model_annotate_input(tare_model *model, const tare_node *node,
                                               const tare_node *input, tare_qspec *spec,
                                               tare_error *err);
TARE_API tare_status tare_model_annotate_output(tare_model *model, const tare_node *node,
                                                tare_qspec *spec, tare_error *err);
/// Do the node's input edges share the observers of other readers whose specs agree? New
/// annotations do.
TARE_API tare_status tare_model_annotate_sharing(tare_model *model, const tare_node *node,
                                                 bool allows_implicit_sharing, tare_error *err);
/// The mark `_annotated`, by which quantizers tell what is done. Makes the annotation if there is
/// none.
TARE_API tare_status tare_model_mark_annotated(tare_model *model, const tare_node *node,
                                               bool is_annotated, tare_error *err);
/// By which of its rules a quantizer annotates the node ("conv_relu"): tare explain tells it. The
/// name is copied.
TARE_API tare_status tare_model_annotate_rule(tare_model *model, const tare_node *node,
                                              const char *rule, tare_error *err);
TARE_API void tare_model_clear_annotation(tare_model *model, const tare_node *node);
TARE_API void tare_model_clear_annotations(tare_model *model);

TARE_API size_t tare_annotation_input_count(const tare_annotation *annotation);
/// The index-th entry in order of setting: the input's name, lent, and its spec (may be NULL); NULL
/// past the end.
TARE_API const char *tare_annotation_input_at(const tare_annotation *annotation, size_t index,
                                              tare_qspec **spec);
/// The entry of an input; false: there is none.
TARE_API bool tare_annotation_input(const tare_annotation *annotation, const tare_node *input,
                                    tare_qspec **spec);
TARE_API tare_qspec *tare_annotation_output(const tare_annotation *annotation); // NULL: None
TARE_API bool tare_annotation_allows_sharing(const tare_annotation *annotation);
/// False for NULL.
TARE_API bool tare_annotation_is_marked(const tare_annotation *annotation);
/// torchao's is_valid_annotation: there is an input entry or an output's spec. False for NULL.
TARE_API bool tare_annotation_is_valid(const tare_annotation *annotation);

/// Annotations as JSON: {NODE: {"input_qspec_map": [[INPUT, SPEC], ..], "output_qspec": SPEC,
/// "allow_implicit_sharing": .., "_annotated": ..}, ..}. The caller frees *out with
/// tare_string_free.
TARE_API tare_status tare_model_annotations_to_json(const tare_model *model, char **out,
                                                    tare_error *err);
/// Replaces the model's annotations. rules: what derive_qparams_fn may name besides the bias rule
/// (NULL: nothing). Errors name the JSON path; TARE_NOT_FOUND for nodes that the model lacks.
TARE_API tare_status tare_model_annotations_from_json(tare_model *model, const char *json,
                                                      size_t size, const tare_derive_rule *rules,
                                                      size_t rule_count, tare_error *err);

// --- what the exporter knew of a node ---

typedef struct tare_value_info {
    tare_dtype dtype;
    size_t rank;
    const int64_t *shape; // [rank]; -1: a symbolic size
} tare_value_info;

typedef struct tare_source_info {
    const char *name;     // nn_module_stack: the module's path, "" at the top
    const char *function; // nn_module_stack: the module's class
} tare_source_info;

/// A node's meta, read from what the file says of it. The caller destroys it.
typedef struct tare_node_meta {
    uint32_t struct_size;
    size_t module_count; // nn_module_stack, outermost first: path and class
    const tare_source_info *modules;
    size_t source_count; // source_fn_stack, outermost first: name and function
    const tare_source_info *sources;
    size_t value_count; // val: 1, or the tensors of a tuple
    const tare_value_info *values;
    bool has_value, value_is_tuple;
    // torch_fn of exports that do not trace Python: the call's name ("add_1") and its function
    // ("method_descriptor.add"); NULL: not said.
    const char *torch_call, *torch_function;
} tare_node_meta;
TARE_API tare_status tare_node_meta_read(const tare_node *node, tare_node_meta **out,
                                         tare_error *err);
TARE_API void tare_node_meta_destroy(tare_node_meta *meta); // NULL is fine
/// torchao's get_module_name_filter: is `name` the path of one of the modules that ran, so that
/// what stands below it counts, too? A leading "L['self']." of paths does not count. Nodes without
/// a stack, as those that read weights, are in no module.
TARE_API bool tare_node_meta_in_module(const tare_node_meta *meta, const char *name);
/// Does one of the modules that ran have this class ("torch.nn.Linear", in any of its spellings)?
TARE_API bool tare_node_meta_in_class(const tare_node_meta *meta, const char *class_name);

// --- quantizers ---

/// Every annotated edge and node and its observer, before they are inserted.
typedef struct tare_observer_map tare_observer_map;
/// The number of edges and nodes; the index-th: its names, lent, and its observer (NULL: none).
/// Those that share have the same observer. False past the end.
TARE_API size_t tare_observer_map_count(const tare_observer_map *map);
TARE_API bool tare_observer_map_at(const tare_observer_map *map, size_t index, tare_edge_name *edge,
                                   const tare_module **observer);
/// A new observer of this spec for it and all that it shares with.
TARE_API tare_status tare_observer_map_replace(tare_observer_map *map, size_t index,
                                               const tare_observer_spec *spec, tare_error *err);

/// What a quantizer does. Functions but annotate may be NULL.
typedef struct tare_quantizer_class {
    uint32_t struct_size;
    const char *name; // "XNNPACKQuantizer"; copied
    /// Changes the graph before it is annotated.
    tare_status (*transform_for_annotation)(void *self, tare_model *model, tare_error *err);
    tare_status (*annotate)(void *self, tare_model *model, tare_error *err);
    tare_status (*validate)(void *self, const tare_model *model, tare_error *err);
    /// Called when all observers are made; may replace them.
    tare_status (*prepare_obs_or_fq_callback)(void *self, const tare_model *model,
                                              tare_observer_map *map, tare_error *err);
    void (*destroy)(void *self);
} tare_quantizer_class;

typedef struct tare_quantizer tare_quantizer;
/// Takes `self` over on success; it goes to every function of the class.
TARE_API tare_status tare_quantizer_create(const tare_quantizer_class *quantizer_class, void *self,
                                           tare_quantizer **out, tare_error *err);
TARE_API void tare_quantizer_destroy(tare_quantizer *quantizer); // NULL is fine
TARE_API const char *tare_quantizer_name(const tare_quantizer *quantizer);
/// transform_for_annotation, annotate and validate, as prepare calls them. What a failed annotate
/// left is not undone.
TARE_API tare_status tare_quantizer_transform(const tare_quantizer *quantizer, tare_model *model,
                                              tare_error *err);
TARE_API tare_status tare_quantizer_annotate(const tare_quantizer *quantizer, tare_model *model,
                                             tare_error *err);

// --- the flow ---

/// Is it a program of torch.export, as quantizers annotate them: does it call aten operators?
TARE_API bool tare_model_is_exported(const tare_model *model);
/// Is it prepared, and by a quantizer? Convert it with tare_convert_pt2e.
TARE_API bool tare_model_is_prepared_pt2e(const tare_model *model);

/// Folds batch norms, lets the quantizer transform and annotate, and inserts observers. Calibrate
/// with tare_calibrate. TARE_NOT_FOUND and TARE_INVALID_ARGUMENT for specs on edges that do not
/// exist, for specs that share with what is not annotated or only with each other, and for derived
/// specs of what is not observed: each names the edges.
TARE_API tare_status tare_prepare_pt2e(const tare_model *model, const tare_quantizer *quantizer,
                                       tare_model **out, tare_error *err);
/// The same for quantization-aware training: a convolution and its batch norm become torch's
/// training pattern, whose weight is scaled before it is fake quantized.
TARE_API tare_status tare_prepare_qat_pt2e(const tare_model *model, const tare_quantizer *quantizer,
                                           tare_model **out, tare_error *err);

/// Zero means the default everywhere; struct_size as in tare/status.h.
typedef struct tare_convert_pt2e_options {
    uint32_t struct_size;
    bool keeps_quantize; // weights stay float, with their quantize operators (fold_quantize=False)
    bool is_lenient;     // an observer that saw nothing gives scale 1 and a warning, not an error
    bool use_reference_representation; // int8 operators as arithmetic on integers, as backends
                                       // compute them: what a backend is compared with
    /// Nodes to leave float; observers between such nodes alone go, too. TARE_NOT_FOUND for a name
    /// that the program does not have, TARE_INVALID_ARGUMENT for one that stays float anyway.
    const tare_float_choice *float_choices;
    size_t float_choice_count;
} tare_convert_pt2e_options;
/// Observers become quantize and dequantize operators with literal parameters, quantized weights
/// constants. Observers of weights need no calibration. options may be NULL. TARE_INVALID_ARGUMENT
/// for observers that have seen no data.
TARE_API tare_status tare_convert_pt2e(const tare_model *prepared,
                                       const tare_convert_pt2e_options *options, tare_model **out,
                                       tare_error *err);

/// Zero means the default everywhere; struct_size as in tare/status.h.
typedef struct tare_lower_pt2e_options {
    uint32_t struct_size;
    /// Whose rounding the integer layers take. The default rounds as the quantize operators do:
    /// products first, then the zero point is added (rule F; with an int32 bias of the scale
    /// activation x weight rule Q, which adds it to the exact sum). A residual joins before that.
    tare_engine engine;
} tare_lower_pt2e_options;
/// Lowers a converted program to integers, as tare_convert_fx does: quantize and dequantize of
/// bytes become those of quantized tensors, and what stands between them becomes integer functions
/// (torch.ops.quantized.*) on codes and packed weights. The codes are those of the converted
/// program; they may differ by one step where a real result lies at the middle between two codes,
/// as far as float32 can tell. What stays float is said in the record, with the reason. options
/// may be NULL. TARE_INVALID_ARGUMENT for models that are not converted.
TARE_API tare_status tare_lower_pt2e(const tare_model *converted,
                                     const tare_lower_pt2e_options *options, tare_model **out,
                                     tare_error *err);

#ifdef __cplusplus
}
#endif
#endif
