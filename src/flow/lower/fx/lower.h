// SPDX-License-Identifier: Apache-2.0
// Lowering in FX mode: rewrites reference patterns to integer modules and functions.
#ifndef FLOW_LOWER_FX_LOWER_H
#define FLOW_LOWER_FX_LOWER_H

#include "flow/fx/convert.h"
#include "flow/lower/rewrite.h"

/// How torch lowers an operator without a weight between dequantize and quantize (spec/fx_passes
/// §7.9).
typedef enum special_group {
    SPECIAL_NONE = 0,
    SPECIAL_FIXED,   // fixed output parameters
    SPECIAL_DEFAULT, // functions take output_scale and output_zero_point; some modules have a
                     // quantized class
    SPECIAL_COPY,    // values keep the input's parameters, or the general rule applies
    SPECIAL_SHAPE,   // only moves values
    SPECIAL_OTHER,   // cat
} special_group;
special_group tare__special_function(const char *name);
special_group tare__special_method(const char *name);
special_group tare__special_module(const module_class *class);
/// dequantize - operator (- relu) - quantize.
typedef struct static_match {
    node *quantize, *relu, *reference, *scale, *zero_point; // relu may be NULL
} static_match;
/// Matches the pattern that ends at `n`. `accepts` selects the operators. argument_count: number of
/// positional arguments that must be dequantized or no nodes (0: `accepts` checks them itself).
bool tare__match_static(const convert_pass *c, node *n,
                        bool (*accepts)(const convert_pass *c, const node *reference),
                        size_t argument_count, static_match *out);
bool tare__is_half_node(const node *n); // x.to(torch.float16)
bool tare__is_relu_node(const convert_pass *c, const node *n);
/// The quantize_per_tensor_dynamic node that `dequantize` reads; NULL: there is none.
node *tare__dynamic_quantize(const node *dequantize);
/// A module with several calls becomes an integer module only if all its calls are between
/// dequantize and quantize, because a call with a float input could not run it. True also for a
/// module that an earlier call replaced, and for a module with one call.
bool tare__calls_agree(const convert_pass *c, const node *call);

/// Stores the tensors from which a call's weights were packed in their module: those that `wanted`
/// depends on, the largest first.
tare_status tare__keep_original_weights(convert_pass *c, module *packed, const value *wanted,
                                        size_t count, const node *before);
/// The tensor of a get_attr node.
tare_tensor *tare__attribute(const convert_pass *c, const node *get_attr);
/// Creates a quantized module from a float or reference module and its output's parameters; if
/// class is NULL, *out is NULL.
tare_status tare__quantized_from(convert_pass *c, const module *from, fused_with fused,
                                 tare_tensor *scale, tare_tensor *zero_point, module **out);
/// Replaces the module that a node calls by its quantized class, if it has one, with the parameters
/// that two get_attr nodes read.
tare_status tare__swap_quantized(convert_pass *c, const node *call, const node *scale,
                                 const node *zero_point);

tare_status
tare__lower_averages(convert_pass *c); // tare's own; before the operators around them are lowered
tare_status tare__lower_modules(convert_pass *c); // §7.1, §7.2, §7.3
tare_status tare__lower_weights(convert_pass *c); // §7.5, §7.6, §7.10
tare_status tare__lower_binary(convert_pass *c);  // §7.7
tare_status tare__lower_shapes(convert_pass *c);  // §7.8
tare_status tare__lower_special(convert_pass *c); // §7.9

#endif
