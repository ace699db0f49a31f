// SPDX-License-Identifier: Apache-2.0
// Lowering: what turns a reference pattern into an integer module or function.
#ifndef FLOW_LOWER_FX_LOWER_H
#define FLOW_LOWER_FX_LOWER_H

#include "flow/fx/convert.h"
#include "flow/lower/rewrite.h"

/// How torch lowers an operator between dequantize and quantize that has no weight (spec/fx_passes
/// §7.9).
typedef enum special_group {
    SPECIAL_NONE = 0,
    SPECIAL_FIXED,   // fixed output parameters
    SPECIAL_DEFAULT, // functions take output_scale and output_zero_point; some modules have a
                     // quantized class
    SPECIAL_COPY,    // values keep the input's parameters, or the general rule holds
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
/// Does the pattern end at `n`? `accepts` says which operators count; argument_count: of positional
/// arguments that must be dequantized, or any other non-node (0: `accepts` looks at them itself).
bool tare__match_static(const convert_pass *c, node *n,
                        bool (*accepts)(const convert_pass *c, const node *reference),
                        size_t argument_count, static_match *out);
bool tare__is_half_node(const node *n); // x.to(torch.float16)
bool tare__is_relu_node(const convert_pass *c, const node *n);
/// The quantize_per_tensor_dynamic node whose quantized values `dequantize` reads; NULL if it is
/// none such.
node *tare__dynamic_quantize(const node *dequantize);
/// A module that several nodes call becomes an integer one only where every call stands between
/// dequantize and quantize: a call that reads floats could not run it. True for a module that an
/// earlier call swapped, and for one that is called once.
bool tare__calls_agree(const convert_pass *c, const node *call);

/// Puts what the packed weights of a call were made of into their module: the tensors that `wanted`
/// depends on, the greatest first.
tare_status tare__keep_original_weights(convert_pass *c, module *packed, const value *wanted,
                                        size_t count, const node *before);
/// The value of a get_attr node's tensor.
tare_tensor *tare__attribute(const convert_pass *c, const node *get_attr);
/// A quantized module made from a float or reference module and its output's parameters; NULL
/// class: `*out` is NULL.
tare_status tare__quantized_from(convert_pass *c, const module *from, fused_with fused,
                                 tare_tensor *scale, tare_tensor *zero_point, module **out);
/// The module that a node calls becomes its quantized class, if it has one, with the parameters
/// that two get_attr nodes read.
tare_status tare__swap_quantized(convert_pass *c, const node *call, const node *scale,
                                 const node *zero_point);

tare_status tare__lower_averages(convert_pass *c); // ours, before what they read is lowered
tare_status tare__lower_modules(convert_pass *c); // §7.1, §7.2, §7.3
tare_status tare__lower_weights(convert_pass *c); // §7.5, §7.6, §7.10
tare_status tare__lower_binary(convert_pass *c);  // §7.7
tare_status tare__lower_shapes(convert_pass *c);  // §7.8
tare_status tare__lower_special(convert_pass *c); // §7.9

#endif
