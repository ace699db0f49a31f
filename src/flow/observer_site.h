// SPDX-License-Identifier: Apache-2.0
// What converting does at one observer node, in FX mode and for exported programs alike.
// Private to flow.
#ifndef FLOW_OBSERVER_SITE_H
#define FLOW_OBSERVER_SITE_H

#include "model/pass.h"
#include "ops/op.h"

typedef struct observer_site {
    pass *p;
    node *observer, *watched;
    const tare_observer_info *info;
    const char *prefix; // of buffer names; NULL: none are made
} observer_site;

/// A node before the observer's.
tare_status tare__site_insert(const observer_site *s, node_op op, const char *target,
                              const value *args, size_t arg_count, node **out);
/// A call of the row's function there.
tare_status tare__site_call(const observer_site *s, op_id id, const value *args, size_t count,
                            node **out);
/// A buffer {prefix}{suffix}{smallest free N} of the root, and a get_attr node that reads it: the
/// numbers by channel, or with per_channel false the one for all.
tare_status tare__site_insert_numbers(const observer_site *s, const char *suffix, tare_dtype dtype,
                                      bool per_channel, int64_t count, const double *numbers,
                                      value *out);
/// Users of the observer read `with` from now on, and the observer's node goes.
tare_status tare__site_finish(const observer_site *s, node *with);

/// Values and functions' weights have no form per group; modules keep the parameters themselves.
tare_status tare__site_refuse_groups(const observer_site *s);

/// What the two flows differ in.
typedef struct decomposed_form {
    tare_dtype zero_point_dtype; // of buffers, per channel
    tare_dtype out_dtype;        // of dequantize; UNSET or float32: not said
    double eps;                  // of choose_qparams; 0: 2^-23
} decomposed_form;

/// quantize and dequantize of quantized_decomposed: per tensor with literal parameters, per channel
/// with buffers.
tare_status tare__site_decompose(const observer_site *s, const qparams *q,
                                 const decomposed_form *form);
/// The same with parameters that choose_qparams finds at run time, for uint8 and int8.
tare_status tare__site_decompose_dynamic(const observer_site *s, const decomposed_form *form);
/// To float16 and back, rounding to be seen.
tare_status tare__site_decompose_half(const observer_site *s);

#endif
