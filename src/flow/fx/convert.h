// SPDX-License-Identifier: Apache-2.0
// Convert: observers become quantize and dequantize, float modules reference modules.
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

/// What the backend demands of the parameters of one module (an observer, or one with a weight).
typedef struct convert_limit {
    const module *module;
    const tare_dtype_constraints *constraints;
    const tare_pattern_config *config; // that they stand in
    const char *node;                  // the operator's, for messages
} convert_limit;

typedef struct convert_pass {
    pass *base;
    const tare_convert_options *options;
    convert_form form;
    const prepared_state *prepared;           // of the source model
    const tare_convert_custom_config *custom; // never NULL
    size_t first_new;                         // id of the first node that was not there before
    bool *gives_quantized;                    // by id below that: calls of quantized custom modules
    convert_limit *limits;                    // in base->scratch
    size_t limit_count, limit_capacity;
    bool *switched_off; // by index in prepared->nodes: by convert's own mapping or choices; NULL:
                        // none
    map left_float;     // of a model that comes converted, without `prepared`: names of nodes
    map call_counts;    // while lowering: a module's path -> how many nodes call it
} convert_pass;

/// Step, before observers go: which demands on scales and zero points (scale_max_upper_bound,
/// zero_point_*_bound, scale_power_of_two) apply to which module. Quick where the backend has none.
tare_status tare__convert_find_limits(convert_pass *c);
/// Raises the scales of *q (replaced by new parameters) to powers of two where that is demanded of
/// `m`, then checks the bounds: an error, or with is_lenient a warning in the record. n: the node
/// that the record and messages name.
tare_status tare__convert_apply_limits(convert_pass *c, const node *n, const module *m,
                                       const qparams **q);

/// Step: which nodes a mapping given at convert switches off.
tare_status tare__convert_apply_mapping(convert_pass *c);
/// Step: which nodes stay float because the options name them (convert_choices.c).
tare_status tare__convert_apply_choices(convert_pass *c);
/// Step, under tare's own mapping: what bounds read is quantized as their results are.
tare_status tare__convert_bounds(convert_pass *c);
/// Step: observers, and what the custom configs ask for, in the order of the nodes.
tare_status tare__convert_nodes(convert_pass *c);
/// A standalone module by itself, of what prepare made and kept of it. path: where it stands.
tare_status tare__convert_standalone(convert_pass *c, const module *observed,
                                     const prepared_state *state, const char *path, module **out);
/// Step: every weighted module.
tare_status tare__convert_modules(convert_pass *c);
/// Erases what nothing uses, impure operators excepted.
tare_status tare__convert_eliminate_dead(pass *p);
/// Step (spec §7): reference patterns to integer modules and functions.
tare_status tare__lower_steps(convert_pass *c);
/// Step, when it is known what computes in integers: why the others, which were observed, do not.
tare_status tare__lower_explain_floats(convert_pass *c);

/// Refuses what no tensor can be quantized by: not finite scales (of data with NaNs or infinities
/// in it), zero points outside the dtype, several scales per tensor.
tare_status tare__convert_check(const qparams *q, tare_error *err);
/// The qconfig that prepare gave to a node; *is_listed: prepare knew the node at all.
tare_qconfig *tare__convert_qconfig(const convert_pass *c, const node *n, bool *is_listed);
/// The node is in prepare's list, with «do not quantize».
bool tare__convert_has_no_qconfig(const convert_pass *c, const node *n);

/// Step: the observers of functions' weights look at them once more.
tare_status tare__convert_observe_weights(convert_pass *c);
/// A reference module of this class, made of a float one under a qconfig: fresh weight observers
/// look at the weights. n: the node that calls `called`, for what the backend demands of them;
/// NULL: nothing is demanded.
tare_status tare__convert_reference(convert_pass *c, const char *class_name,
                                    const module *float_module, const tare_qconfig *q,
                                    const node *n, const module *called, module **out);
/// A reference module of `float_module` with the parameters of its weights, at least one. The class
/// is a built-in one or the user's, which sees the first weight.
tare_status tare__reference_from_float(const tare_context *context, const char *class_name,
                                       const module *float_module, const weight_qparams *weights,
                                       size_t count, module **out, tare_error *err);

#endif
