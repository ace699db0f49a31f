// SPDX-License-Identifier: Apache-2.0
// Helpers that many reading rules share.
// Private to io/onnx.
#ifndef IO_ONNX_READ_RULES_COMMON_H
#define IO_ONNX_READ_RULES_COMMON_H

#include "io/onnx/read/import.h"

#define ONNX_VALUES(...)                                                                           \
    (const value[]){__VA_ARGS__}, sizeof((const value[]){__VA_ARGS__}) / sizeof(value)
/// *out = function(a, b, ..) or a.method(b, ..)
#define ONNX_CALL(c, out, function, ...)                                                           \
    tare__onnx_call(c, false, function, ONNX_VALUES(__VA_ARGS__), out)
#define ONNX_METHOD(c, out, method, ...)                                                           \
    tare__onnx_call(c, true, method, ONNX_VALUES(__VA_ARGS__), out)
tare_status tare__onnx_call(onnx_call *c, bool is_method, const char *target, const value *args,
                            size_t count, value *out);

/// Input 0, which must be a tensor, and its shape and dtype.
tare_status tare__onnx_need_first(onnx_call *c, const char *name, value *x, const tare_tensor **t);
/// Sets output 0.
tare_status tare__onnx_give(onnx_call *c, const value *v);
/// Sets output 0 in the dtype that ONNX specifies, where torch's function has another one.
tare_status tare__onnx_finish(onnx_call *c, const value *v, tare_dtype dtype);
tare_status tare__onnx_to(onnx_call *c, const value *v, tare_dtype dtype, value *out);
/// An axis from an attribute or constant: [-ndim, ndim) becomes [0, ndim).
tare_status tare__onnx_axis(onnx_call *c, int64_t axis, int ndim, int64_t *out);
/// The attribute of this name as an axis.
tare_status tare__onnx_attr_axis(onnx_call *c, const char *name, int64_t otherwise, int ndim,
                                 int64_t *out);
/// Axes: from the attribute before opset `input_since`, from input `i` since then. *given is false
/// if there are none.
tare_status tare__onnx_axes(onnx_call *c, int input_since, size_t i, int ndim,
                            int64_t axes[TARE_MAX_DIMS], size_t *count, bool *given);
/// x with its dimensions in this order; adds no call if that is the present order.
tare_status tare__onnx_permute(onnx_call *c, const value *x, const int64_t *order, size_t count,
                               value *out);
/// A constant float32 tensor of this shape, to be filled by the caller.
tare_status tare__onnx_new_floats(onnx_call *c, int ndim, const int64_t *shape, tare_tensor **out);
/// An attribute that must be one of `names`; *out is its index.
tare_status tare__onnx_attr_choice(onnx_call *c, const char *name, const char *otherwise,
                                   const char *const *names, size_t count, size_t *out);
#define ONNX_CHOICE(c, name, otherwise, out, ...)                                                  \
    tare__onnx_attr_choice(c, name, otherwise, (const char *const[]){__VA_ARGS__},                 \
                           sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), out)

#endif
