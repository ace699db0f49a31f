// SPDX-License-Identifier: Apache-2.0
// Replacing one observer node in convert, for FX mode and exported programs alike.
// Private to flow.
#ifndef FLOW_OBSERVER_SITE_H
#define FLOW_OBSERVER_SITE_H

#include "model/pass.h"
#include "ops/op.h"

typedef struct observer_site {
    pass *p;
    node *observer, *watched;
    const tare_observer_info *info;
    const char *prefix; // of buffer names; NULL: no buffers are made
} observer_site;

/// Inserts a node before the observer.
tare_status tare__site_insert(const observer_site *s, node_op op, const char *target,
                              const value *args, size_t arg_count, node **out);
/// Inserts a call of the row's function there.
tare_status tare__site_call(const observer_site *s, op_id id, const value *args, size_t count,
                            node **out);
/// Adds a buffer {prefix}{suffix}{N} with the least free N to the root, and a get_attr node that
/// reads it. It holds the numbers per channel, or if per_channel is false the only one.
tare_status tare__site_insert_numbers(const observer_site *s, const char *suffix, tare_dtype dtype,
                                      bool per_channel, int64_t count, const double *numbers,
                                      value *out);
/// Makes the observer's users read `with`, and erases the observer.
tare_status tare__site_finish(const observer_site *s, node *with);

/// Refuses group-wise parameters: values and weights of functions have no such form; modules keep
/// them as attributes.
tare_status tare__site_refuse_groups(const observer_site *s);

/// The differences between the two modes.
typedef struct decomposed_form {
    tare_dtype zero_point_dtype; // of buffers, per channel
    tare_dtype out_dtype;        // of dequantize; UNSET or float32: no such argument
    double eps;                  // of choose_qparams; 0: 2^-23
} decomposed_form;

/// Inserts quantize and dequantize of quantized_decomposed, with literal parameters per tensor, or
/// with buffers per channel.
tare_status tare__site_decompose(const observer_site *s, const qparams *q,
                                 const decomposed_form *form);
/// The same with parameters that choose_qparams computes at run time, for uint8 and int8.
tare_status tare__site_decompose_dynamic(const observer_site *s, const decomposed_form *form);
/// Converts to float16 and back, to make the rounding visible.
tare_status tare__site_decompose_half(const observer_site *s);

#endif
