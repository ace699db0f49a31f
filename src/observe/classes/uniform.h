// SPDX-License-Identifier: Apache-2.0
// Common to all uniform observers: torch's constructor arguments, and the parameters for a range of
// values (spec: torch.ao.quantization.observer.UniformQuantizationObserverBase).
#ifndef OBSERVE_CLASSES_UNIFORM_H
#define OBSERVE_CLASSES_UNIFORM_H

#include "core/error.h"
#include "core/tensor/tensor.h"
#include "core/text/text.h"
#include "observe/classes/scan.h"
#include "tare/observer.h"

/// Names of the arguments, for the `arguments` of a descriptor; a class appends its additional
/// ones.
#define UNIFORM_ARGUMENTS                                                                          \
    "dtype", "qscheme", "reduce_range", "quant_min", "quant_max", "eps", "is_dynamic"

typedef struct uniform {
    tare_dtype dtype;
    tare_qscheme qscheme;
    bool reduce_range, is_dynamic, has_custom_range;
    int64_t quant_min, quant_max; // final: defaults applied, and reduce_range
    float eps;
} uniform;

/// Python's n // 2.
static inline int64_t tare__floor_half(int64_t n) {
    return n / 2 - (n % 2 < 0);
}

/// Reads the arguments and checks them as torch's base class does. Does not check whether the class
/// allows the scheme.
tare_status tare__uniform_read(const tare_observer_args *args, tare_qscheme default_qscheme,
                               uniform *out, tare_error *err);
/// Refuses with "Cannot reduce range for symmetric .. quantization for quint8"; `gap` is the text
/// between the two words in torch's source.
tare_status tare__uniform_refuse_reduced_symmetric(const uniform *u, const char *gap,
                                                   tare_error *err);
/// Fills the fields that describe the observer, except channel_axis.
void tare__uniform_info(const uniform *u, tare_observer_info *info);

/// Computes scale and zero point for `count` > 0 ranges and passes them to the sink. A range whose
/// min exceeds its max is refused. float32 arithmetic in torch's order.
tare_status tare__uniform_qparams(const uniform *u, int64_t count, const float *min,
                                  const float *max, tare_qparams_sink sink, void *sink_user,
                                  tare_error *err);
/// The same for one range, min <= max.
void tare__uniform_range(const uniform *u, float min, float max, double *out_scale,
                         double *out_zero_point);
/// torch's parameters without any data: scale 1, zero point 0.
tare_status tare__default_qparams(tare_qparams_sink sink, void *sink_user, tare_error *err);

/// Saves `eps`, or a float32 tensor of `count` values (ndim 0 or 1).
tare_status tare__save_eps(const uniform *u, tare_state_save save, void *io, tare_error *err);
tare_status tare__save_floats(const char *name, int ndim, size_t count, const float *values,
                              tare_state_save save, void *io, tare_error *err);
/// Loads the eps of a state, if it has one.
tare_status tare__load_eps(uniform *u, tare_state_load load, void *io, tare_error *err);
/// Loads a named float32 tensor of a state, lent; a missing tensor or another type is an error.
tare_status tare__load_floats(tare_state_load load, void *io, const char *name,
                              const tare_tensor **out, tare_error *err);

/// Refuses ranges in a file that no data can give: a minimum above the maximum, except in new
/// ranges, and NaNs, except as both ends if the observer keeps NaNs (keeps_nan).
tare_status tare__range_check(const float *min, const float *max, int64_t count, bool keeps_nan,
                              tare_error *err);

/// x itself if it is float32, else its values as float32; the caller releases *out. x may be empty.
tare_status tare__observed_floats(const tare_tensor *x, tare_tensor **out, tare_error *err);
/// An update that uses the given kernels and threads.
typedef tare_status (*scan_update)(void *state, const tare_tensor *x, const float_scan *scan,
                                   tare_error *err);
/// Calls observe(state, floats, scan) with the values of x as float32; not for an empty tensor.
tare_status tare__observe_floats(void *state, const tare_tensor *x, const float_scan *scan,
                                 scan_update observe, tare_error *err);

#endif
