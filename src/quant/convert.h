// SPDX-License-Identifier: Apache-2.0
// Convert: observers become quantize and dequantize, float modules reference modules.
#ifndef QUANT_CONVERT_H
#define QUANT_CONVERT_H

#include "quant/pass.h"

/// The three shapes of a converted model.
typedef enum convert_form {
    CONVERT_REFERENCE,  // torch.quantize_per_tensor with parameters as buffers
    CONVERT_DECOMPOSED, // quantized_decomposed operators with literal parameters
    CONVERT_LOWERED,    // reference, then lowered
} convert_form;

typedef struct convert_pass {
    pass *base;
    const tare_convert_options *options;
    convert_form form;
    const prepared_state *prepared; // of the source model
} convert_pass;

/// Step: every observer node.
tare_status tare__convert_observers(convert_pass *c);
/// Step: every weighted module.
tare_status tare__convert_modules(convert_pass *c);
/// Erases what nothing uses, impure operators excepted.
tare_status tare__convert_eliminate_dead(pass *p);
/// Step (spec §7): reference patterns to integer modules and functions.
tare_status tare__lower_steps(convert_pass *c);

/// Refuses what no tensor can be quantized by: not finite scales (of data with NaNs or infinities
/// in it), zero points outside the dtype, several scales per tensor.
tare_status tare__convert_check(const qparams *q, tare_error *err);
/// The qconfig that prepare gave to a node; *is_listed: prepare knew the node at all.
tare_qconfig *tare__convert_qconfig(const convert_pass *c, const node *n, bool *is_listed);
/// The node is in prepare's list, with «do not quantize».
bool tare__convert_has_no_qconfig(const convert_pass *c, const node *n);

/// Do the dtype configs of this class accept the qconfig (torch's
/// _is_qconfig_supported_by_dtype_configs)?
tare_status tare__convert_supports(convert_pass *c, const char *class_name, const tare_qconfig *q,
                                   bool *out);
/// A reference module of `float_module` with its weight's parameters. The class is a built-in one
/// or the user's.
tare_status tare__reference_from_float(const tare_context *context, const char *class_name,
                                       const module *float_module, const qparams *weight,
                                       module **out, tare_error *err);

#endif
