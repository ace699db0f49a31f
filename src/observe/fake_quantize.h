// SPDX-License-Identifier: Apache-2.0
// Fake quantizers: modules that round their input to the values that the quantized type can
// represent. Each contains an observer, the child "activation_post_process". Their state (switches,
// scale, zero point) consists of tensors of the module, so that copying and serialization need no
// special rules.
#ifndef OBSERVE_FAKE_QUANTIZE_H
#define OBSERVE_FAKE_QUANTIZE_H

#include "observe/observer.h"
#include "ops/call.h"

/// The differences of the four classes: the `user` of their descriptors.
typedef struct fake_quantize_kind {
    tare_dtype switch_dtype;      // of fake_quant_enabled and observer_enabled
    const char *observer_switch;  // the tensor that switches observing
    const char *const *own;       // arguments that are not passed to its observer, NULL-terminated
    bool needs_observer;          // `observer` has no default
    int64_t quant_min, quant_max; // defaults of the arguments; quant_max 0: no defaults
    bool limits_must_differ;      // quant_min and quant_max must not be equal
    bool (*fits)(const tare_observer_class *inner); // is this observer allowed inside? NULL: any is
    const char *misfit;                             // the message if it is not
    /// Adds the tensors and constructor values other than the switches, scale 1 and zero point 0.
    tare_status (*fill)(module *m, const tare_observer_spec *spec, tare_error *err);
    /// Observes x, of float32, and updates scale and zero point.
    tare_status (*step)(module *m, const tare_tensor *x, tare_error *err);
    void (*describe)(const module *m, text *out); // NULL: nothing
} fake_quantize_kind;

/// The kind of a class or module; NULL: it is not a fake quantizer.
const fake_quantize_kind *tare__fake_quantize_kind(const tare_observer_class *class);
const fake_quantize_kind *tare__fake_quantize_kind_of(const module *m);
/// The inner observer; const if the module is, as in tare__module_child.
const module *tare__fake_quantize_observer_const(const module *m);
module *tare__fake_quantize_observer_mutable(module *m);
// NOLINTNEXTLINE(readability-identifier-naming)
#define tare__fake_quantize_observer(m) MODULE_AS_CONST(m, tare__fake_quantize_observer)(m)

/// The spec of the inner observer: the argument `observer` with all arguments that are not the fake
/// quantizer's own. The caller releases *out.
tare_status tare__fake_quantize_inner(const tare_observer_class *class,
                                      const tare_observer_spec *spec, tare_observer_spec **out,
                                      tare_error *err);
tare_status tare__fake_quantize_info(const observer_classes *classes,
                                     const tare_observer_class *class,
                                     const tare_observer_spec *spec, tare_observer_info *out,
                                     tare_error *err);
tare_status tare__fake_quantize_create(const observer_classes *classes, const module_class *row,
                                       const tare_observer_spec *spec, module **out,
                                       tare_error *err);

/// The same as the module's forward, but computes no output.
tare_status tare__fake_quantize_update(module *m, const tare_tensor *x, tare_error *err);
/// The parameters for convert: the observer's, or the learned ones.
tare_status tare__fake_quantize_qparams(const module *m, const qparams **out, bool *is_calibrated,
                                        tare_error *err);

/// The functions of the module classes.
tare_status tare__fake_quantize_describe(const module *m, text *out, tare_error *err);
tare_status tare__fake_quantize_shape(op_call *call);
tare_status tare__fake_quantize_forward(op_call *call);
tare_status tare__fake_quantize_module_check(const module *m, tare_error *err);

/// Reads an integer argument; *has: whether it was given. Another type is an error.
tare_status tare__spec_int(const tare_observer_spec *spec, const char *name, bool *has,
                           int64_t *out, tare_error *err);
/// Reads a number; *out is unchanged if it was not given.
tare_status tare__spec_double(const tare_observer_spec *spec, const char *name, double *out,
                              tare_error *err);
/// Sets a buffer of one element.
tare_status tare__fake_quantize_set_buffer(module *m, const char *name, tare_dtype dtype, double v,
                                           tare_error *err);
/// Replaces scale and zero point by `count` values; their dtypes stay.
tare_status tare__fake_quantize_set(module *m, int64_t count, const double *scale,
                                    const double *zero_point, tare_error *err);
tare_status tare__fake_quantize_switch(module *m, const char *switch_name, bool on,
                                       tare_error *err);
bool tare__fake_quantize_is_on(const module *m, const char *switch_name);

#endif
