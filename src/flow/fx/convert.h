// SPDX-License-Identifier: Apache-2.0
// Convert in FX mode: observers become quantize and dequantize, float modules become reference
// modules.
#ifndef FLOW_FX_CONVERT_H
#define FLOW_FX_CONVERT_H

#include "model/pass.h"
#include "ops/classes/reference.h"

/// The three shapes of a converted model.
typedef enum convert_form {
    CONVERT_REFERENCE,  // torch.quantize_per_tensor with parameters as buffers
    CONVERT_DECOMPOSED, // quantized_decomposed operators with literal parameters
    CONVERT_LOWERED,    // reference, then lowered
} convert_form;

/// The backend's constraints on the parameters of a module (an observer, or one with a weight).
typedef struct convert_limit {
    const module *module;
    const tare_dtype_constraints *constraints;
    const tare_pattern_config *config; // the config with the constraints
    const char *node;                  // name of the operator's node, for messages
} convert_limit;

typedef struct convert_pass {
    pass *base;
    const tare_convert_options *options;
    convert_form form;
    const prepared_state *prepared;           // state of the source model
    const tare_convert_custom_config *custom; // never NULL
    size_t first_new;                         // id of the first node that convert adds
    bool *gives_quantized; // by id below that: calls of custom modules with a quantized result
    convert_limit *limits; // in base->scratch
    size_t limit_count, limit_capacity;
    bool *switched_off;      // by index in prepared->nodes: by convert's mapping or choices; NULL:
                             // none are
    bool has_kept_observers; // some are left in the graph, because nothing can replace them
    map left_float;  // for a model that was read converted, without `prepared`: names of nodes
    map call_counts; // while lowering: path of a module -> number of calls
} convert_pass;

/// Step, before observers are removed: finds which constraints on scales and zero points
/// (scale_max_upper_bound, zero_point_*_bound, scale_power_of_two) apply to which module.
tare_status tare__convert_find_limits(convert_pass *c);
/// Rounds the scales of *q up to powers of two (in new parameters) if required for `m`, then checks
/// the bounds: a violation is an error, or with is_lenient a warning in the record. n: the node for
/// record and messages.
tare_status tare__convert_apply_limits(convert_pass *c, const node *n, const module *m,
                                       const qparams **q);

/// Step: finds the nodes that a mapping given to convert switches off.
tare_status tare__convert_apply_mapping(convert_pass *c);
/// Step: finds the nodes that stay float because the options name them (convert_choices.c).
tare_status tare__convert_apply_choices(convert_pass *c);
/// Step, under tare's own mapping: quantizes the input of a bound with the parameters of its
/// result.
tare_status tare__convert_bounds(convert_pass *c);
/// Step: replaces observers, and applies the custom configs, in the order of the nodes.
tare_status tare__convert_nodes(convert_pass *c);
/// Converts a standalone module with the state that prepare kept for it. path: of the module.
tare_status tare__convert_standalone(convert_pass *c, const module *observed,
                                     const prepared_state *state, const char *path, module **out);
/// Step: converts every module with a weight.
tare_status tare__convert_modules(convert_pass *c);
/// Erases unused nodes, except impure operators.
tare_status tare__convert_eliminate_dead(pass *p);
/// Step (spec §7): rewrites reference patterns to integer modules and functions.
tare_status tare__lower_steps(convert_pass *c);
/// Step, after lowering: records why observed operators are not computed with integers.
tare_status tare__lower_explain_floats(convert_pass *c);

/// Refuses parameters that no quantized tensor can have: scales that are not finite (from data with
/// NaNs or infinities), zero points outside the dtype, several scales for a whole tensor.
tare_status tare__convert_check(const qparams *q, tare_error *err);
/// The qconfig that prepare assigned to a node; *is_listed: prepare knew the node.
tare_qconfig *tare__convert_qconfig(const convert_pass *c, const node *n, bool *is_listed);
/// True if prepare decided not to quantize the node.
bool tare__convert_has_no_qconfig(const convert_pass *c, const node *n);

/// Step: runs the weight observers of functions once more.
tare_status tare__convert_observe_weights(convert_pass *c);
/// Creates a reference module of this class from a float module and a qconfig; new weight observers
/// look at the weights. n: the node that calls `called`, for the backend's constraints; NULL:
/// without constraints.
tare_status tare__convert_reference(convert_pass *c, const char *class_name,
                                    const module *float_module, const tare_qconfig *q,
                                    const node *n, const module *called, module **out);
/// Creates a reference module from `float_module` and the parameters of its weights, at least one.
/// The class is built-in or custom; a custom one gets the first weight's parameters.
tare_status tare__reference_from_float(const tare_context *context, const char *class_name,
                                       const module *float_module, const weight_qparams *weights,
                                       size_t count, module **out, tare_error *err);

#endif
